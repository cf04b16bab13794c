// Goal: nacre-ctl makes, changes and shows files with secrets, keeps what else is in them, and
// tells a secret once. Method: the tool as a process, and the parser of the nodes over what it
// leaves.

#include "ctl/secrets_command.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "pool/connect/pool_secret.h"
#include "pool/connect/secret_file.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"

namespace nacre::ctl {
namespace {

using pool::SecretFile;

class SecretsCommandTest : public testing::Test {
 protected:
  ProcessResult Ctl(std::vector<std::string> words) {
    words.insert(words.begin(), "secrets");
    return RunBinary("nacre-ctl", words);
  }
  void Ok(const std::vector<std::string>& words) {
    const ProcessResult result = Ctl(words);
    EXPECT_EQ(result.exit_code, 0) << result.output;
  }
  std::string Fails(const std::vector<std::string>& words) {
    const ProcessResult result = Ctl(words);
    EXPECT_EQ(result.exit_code, 1) << result.output;
    return result.output;
  }
  SecretFile Read() {
    SecretFile file;
    EXPECT_TRUE(IsOk(pool::ReadSecretFile(path_, nullptr, &file)));
    return file;
  }
  std::string Content() {
    std::ostringstream content;
    content << std::ifstream(path_).rdbuf();
    return content.str();
  }
  void Write(const std::string& content) { std::ofstream(path_) << content; }

  const TempFolder folder_;
  const std::string path_ = folder_.File("secrets");
};

TEST_F(SecretsCommandTest, AddMakesTheFileAndPrintsTheSecretOnce) {
  const ProcessResult added = Ctl({"add", path_, "admin", "ops"});
  EXPECT_EQ(added.exit_code, 0) << added.output;
  const SecretFile file = Read();
  ASSERT_EQ(file.lines.size(), 1u);
  EXPECT_EQ(file.lines[0].name, "ops");
  EXPECT_EQ(file.lines[0].secret.size(), 64u);
  EXPECT_NE(added.output.find(file.lines[0].secret + "\n"), std::string::npos) << added.output;
  struct stat attributes;
  ASSERT_EQ(stat(path_.c_str(), &attributes), 0);
  EXPECT_EQ(attributes.st_mode & 0777, 0600u);

  Ok({"add", path_, "write:orders,b*"});
  EXPECT_EQ(Read().lines.size(), 2u);
  EXPECT_NE(Read().lines[0].secret, Read().lines[1].secret);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"list", path_}, {"list", path_, "--json"}}) {
    const ProcessResult listed = Ctl(words);
    EXPECT_EQ(listed.exit_code, 0) << listed.output;
    EXPECT_NE(listed.output.find("ops"), std::string::npos) << listed.output;
    EXPECT_NE(listed.output.find("write:orders,b*"), std::string::npos) << listed.output;
    for (const SecretFile::Line& line : Read().lines) {
      EXPECT_EQ(listed.output.find(line.secret), std::string::npos) << listed.output;
      EXPECT_NE(listed.output.find(pool::NameOf(line)), std::string::npos) << listed.output;
    }
  }
}

TEST_F(SecretsCommandTest, ChangesKeepEverythingElse) {
  const std::string a(32, 'a');
  const std::string b(32, 'b');
  const std::string c(32, 'c');
  Write("nacre-secrets 1\n# ours\nadmin " + a + " old\n\nread " + b + "\nquota x* 1GiB\nadmin " +
        c + " new\n");
  EXPECT_EQ(Read().own().secret, a);
  Ok({"prefer", path_, "new"});
  EXPECT_EQ(Read().own().secret, c);
  Ok({"retire", path_, "old"});
  EXPECT_TRUE(Read().lines[1].retired);
  EXPECT_EQ(Read().lines[1].secret, a);
  Ok({"revoke", path_, "old"});
  // By its id, for want of a name.
  Ok({"revoke", path_, pool::NameOf({.rights = {}, .secret = b, .name = ""})});
  EXPECT_EQ(Content(), "nacre-secrets 1\nadmin " + c + " new\n# ours\n\nquota x* 1GiB\n");
}

TEST_F(SecretsCommandTest, AFileOfOneSecretIsTakenOver) {
  Write(std::string(32, 's') + "\n");
  Ok({"add", path_, "read", "reader"});
  const SecretFile file = Read();
  ASSERT_EQ(file.lines.size(), 2u);
  EXPECT_EQ(file.own().secret, std::string(32, 's'));
  EXPECT_EQ(file.own().name, "first");
  EXPECT_TRUE(file.own().rights.may_administer());

  const std::string unlisted = "a secret with spaces in it, of some length\n";
  Write(unlisted);
  EXPECT_NE(Fails({"add", path_, "read"}).find("cannot be listed"), std::string::npos);
  EXPECT_EQ(Content(), unlisted);
}

TEST_F(SecretsCommandTest, WhatCannotBeDoneChangesNothing) {
  Fails({"list", path_});
  Fails({"revoke", path_, "x"});
  EXPECT_FALSE(std::filesystem::exists(path_));
  Ok({"add", path_, "admin", "ops"});
  const std::string before = Content();
  EXPECT_NE(Fails({"add", path_, "root"}).find("'read'"), std::string::npos);
  EXPECT_NE(Fails({"add", path_, "read", "ops"}).find("twice"), std::string::npos);
  EXPECT_NE(Fails({"revoke", path_, "nobody"}).find("no secret is named"), std::string::npos);
  EXPECT_NE(Fails({"retire", path_, "ops"}).find("not retired"), std::string::npos);
  EXPECT_NE(Fails({"prefer", path_, "nobody"}).find("no secret is named"), std::string::npos);
  EXPECT_NE(Fails({"revoke", path_, "ops"}).find("is not retired"), std::string::npos);
  Fails({"add", path_});
  EXPECT_EQ(Content(), before);

  std::ofstream(path_ + ".new") << "left over";
  EXPECT_NE(Fails({"add", path_, "read"}).find("another edit"), std::string::npos);
  EXPECT_EQ(Content(), before);
  std::filesystem::remove(path_ + ".new");
  Ok({"add", path_, "read"});
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(SecretsCommandTest, ALinkStaysOne) {
  Ok({"add", path_, "admin", "ops"});
  const std::string link = folder_.File("link");
  ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
  Ok({"add", link, "read", "reader"});
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(Read().lines.size(), 2u);
}

}  // namespace
}  // namespace nacre::ctl
