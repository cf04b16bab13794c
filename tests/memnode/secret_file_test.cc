// Goal: a file with secrets is read as its format says, or refused with the line and without the
// secret. Method: files of both kinds, good ones and each way to be bad; what is written is read.

#include "pool/connect/secret_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/status_assert.h"

namespace nacre::pool {
namespace {

constexpr char kA[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
constexpr char kB[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
constexpr char kC[] = "cccccccccccccccccccccccccccccccc";

std::string Listed(const std::string& lines) { return "nacre-secrets 1\n" + lines; }

TEST(RightsTest, EachLetsItsHolderDoWhatItSaysAndNoMore) {
  struct Case {
    std::string word;
    bool administer;
    bool write;
    std::vector<std::string> writable;
    std::vector<std::string> others;
  };
  const std::vector<Case> cases = {
      {"read", false, false, {}, {"orders", ""}},
      {"write", false, true, {"orders", "x", ""}, {}},
      {"write:orders", false, true, {"orders"}, {"order", "orders2", "billing", ""}},
      {"write:bill*,orders", false, true, {"bill", "billing", "orders"}, {"bil", "orders2"}},
      {"write:*", false, true, {"orders", ""}, {}},
      {"admin", true, true, {"orders", "x"}, {}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.word);
    Rights rights;
    ASSERT_TRUE(IsOk(Rights::Parse(each.word, &rights)));
    EXPECT_EQ(rights.ToString(), each.word);
    EXPECT_EQ(rights.may_administer(), each.administer);
    EXPECT_EQ(rights.may_write(), each.write);
    for (const std::string& name : each.writable) EXPECT_TRUE(rights.MayWriteTo(name)) << name;
    for (const std::string& name : each.others) EXPECT_FALSE(rights.MayWriteTo(name)) << name;
  }
  Rights rights;
  ASSERT_TRUE(IsOk(Rights::Parse("read", &rights)));
  ASSERT_TRUE(IsOk(Rights::Parse("", &rights)));
  EXPECT_TRUE(rights.may_administer()) << "the one secret of a pool";
}

TEST(RightsTest, WhatAreNoRightsIsRefusedAndNotTold) {
  Rights rights;
  for (const std::string word : {"Read", "reader", "write:", "write:,a", "write:a,", "write:a*b",
                                 "write:a**", "writes", "admin:a", "all", kA}) {
    const Status status = Rights::Parse(word, &rights);
    EXPECT_TRUE(IsFailure(status, Status::Code::kInvalidArgument)) << word;
    EXPECT_EQ(status.message().find(kA), std::string_view::npos) << status.ToString();
  }
  EXPECT_TRUE(rights.may_administer()) << "a failure leaves what there was";
}

TEST(SecretFileTest, AFileWithoutTheHeaderIsAllOneSecretThatLetsDoEverything) {
  for (const std::string& content :
       {std::string("word"), std::string("read aaaaaaaaaaaaaaaaaaaaaaaa"),
        std::string("two\nlines"), std::string("nacre-secrets 2\nread x"),
        std::string(" nacre-secrets 1\nread x"), std::string("\0\xff", 2)}) {
    SecretFile file;
    ASSERT_TRUE(IsOk(ParseSecretFile(content + "\n", &file)));
    EXPECT_TRUE(file.bare);
    ASSERT_EQ(file.lines.size(), 1u);
    EXPECT_EQ(file.own().secret, content);
    EXPECT_TRUE(file.own().rights.may_administer());
    ASSERT_EQ(file.Terms().size(), 1u);
    EXPECT_TRUE(file.Terms()[0].may_write);
  }
}

TEST(SecretFileTest, AFileWithRightsIsReadLineByLine) {
  SecretFile file;
  ASSERT_TRUE(IsOk(ParseSecretFile(
      Listed("# who may do what\r\n\n  read  " + std::string(kA) + "\n" + "write:orders,b-*\t" +
             kB + " owner\r\n" + "quota orders 64GiB\nquota b-* 0\nadmin " + kC + " ops"),
      &file)));
  EXPECT_FALSE(file.bare);
  ASSERT_EQ(file.lines.size(), 3u);
  EXPECT_EQ(file.lines[0].secret, kA);
  EXPECT_EQ(file.lines[0].name, "");
  EXPECT_FALSE(file.lines[0].rights.may_write());
  EXPECT_EQ(file.lines[1].secret, kB);
  EXPECT_EQ(file.lines[1].name, "owner");
  EXPECT_EQ(file.lines[1].rights.ToString(), "write:orders,b-*");
  EXPECT_TRUE(file.lines[2].rights.may_administer());
  EXPECT_EQ(file.quotas,
            (std::vector<SecretFile::Quota>{{"orders", uint64_t{64} << 30}, {"b-*", 0}}));

  EXPECT_EQ(file.own().secret, kC) << "the first that may do everything";
  const std::vector<rdma::SecretTerms> terms = file.Terms();
  ASSERT_EQ(terms.size(), 3u);
  EXPECT_EQ(terms[0], (rdma::SecretTerms{.secret = kC, .name = "ops", .rights = "admin"}));
  EXPECT_EQ(terms[1].secret, kA);
  EXPECT_EQ(terms[1].name.size(), 8u) << "its id: " << terms[1].name;
  EXPECT_FALSE(terms[1].may_write);
  EXPECT_TRUE(terms[2].may_write);
}

TEST(SecretFileTest, WithoutASecretOfAnAdministratorTheFirstIsTheOwn) {
  SecretFile file;
  ASSERT_TRUE(IsOk(
      ParseSecretFile(Listed("read " + std::string(kA) + "\nwrite " + std::string(kB)), &file)));
  EXPECT_EQ(file.own().secret, kA);
}

TEST(SecretFileTest, ARetiredSecretIsNotProven) {
  SecretFile file;
  ASSERT_TRUE(IsOk(ParseSecretFile(
      Listed("retired admin " + std::string(kA) + " old\nread " + kB + "\nadmin " + kC + "\n"),
      &file)));
  ASSERT_EQ(file.lines.size(), 3u);
  EXPECT_TRUE(file.lines[0].retired);
  EXPECT_EQ(file.lines[0].name, "old");
  EXPECT_EQ(file.own().secret, kC);
  EXPECT_EQ(file.Terms()[0].secret, kC);
  EXPECT_TRUE(file.Terms()[1].retired);
}

TEST(SecretFileTest, WhatMakesNoSenseIsNamedByItsLineAndNotTold) {
  const std::string a = kA;
  const std::string b = kB;
  struct Case {
    std::string lines;
    std::string named;
  };
  const std::vector<Case> cases = {
      {"", "there is no secret"},
      {"# only a comment\n", "there is no secret"},
      {"quota orders 1GiB\n", "there is no secret"},
      {"retired admin " + a + "\n", "not retired"},
      {"retired\n", "line 2"},
      {"retired " + a + "\n", "line 2"},
      {"read " + a + "\n" + b + "\n", "line 3"},
      {"read\n", "line 2"},
      {"raed " + a + "\n", "line 2"},
      {"read " + a + " name more\n", "line 2"},
      {"read tooshort\n", "line 2"},
      {"read " + a + "\xff\n", "line 2"},
      {"read " + std::string(kMaxSecretBytes + 1, 's') + "\n", "line 2"},
      {"read " + a + " " + std::string(65, 'n') + "\n", "line 2"},
      {"write: " + a + "\n", "line 2"},
      {"read " + a + "\nquota orders\n", "line 3"},
      {"read " + a + "\nquota orders lots\n", "line 3"},
      {"read " + a + "\nquota a*b 1GiB\n", "line 3"},
      {"read " + a + "\nquota x 1GiB\nquota x 2GiB\n", "line 4"},
      {"read " + a + "\nwrite " + a + " again\n", "'again' is there twice"},
      {"read " + a + " same\nread " + b + " same\n", "'same' is there twice"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.named);
    SecretFile file;
    file.bare = true;
    const Status status = ParseSecretFile(Listed(each.lines), &file);
    EXPECT_TRUE(IsFailure(status, Status::Code::kInvalidArgument));
    EXPECT_NE(status.message().find(each.named), std::string_view::npos) << status.ToString();
    EXPECT_EQ(status.message().find(a), std::string_view::npos) << status.ToString();
    EXPECT_EQ(status.message().find(b), std::string_view::npos) << status.ToString();
    EXPECT_TRUE(file.bare) << "a failure leaves what there was";
  }
}

TEST(SecretFileTest, WhatIsWrittenIsRead) {
  for (const std::string rights : {"read", "write", "write:a,b*", "admin"}) {
    for (const std::string name : {"", "a-name", "retired"}) {
      SecretFile::Line line{.rights = {}, .secret = kA, .name = name, .retired = name.empty()};
      ASSERT_TRUE(IsOk(Rights::Parse(rights, &line.rights)));
      SecretFile file;
      ASSERT_TRUE(IsOk(ParseSecretLine(FormatSecretLine(line), &file)));
      ASSERT_EQ(file.lines.size(), 1u);
      EXPECT_EQ(file.lines[0].secret, line.secret);
      EXPECT_EQ(file.lines[0].name, line.name);
      EXPECT_EQ(file.lines[0].retired, line.retired);
      EXPECT_EQ(file.lines[0].rights.ToString(), rights);
    }
  }
}

}  // namespace
}  // namespace nacre::pool
