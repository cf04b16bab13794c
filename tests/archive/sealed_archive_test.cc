// Goal: an encrypted archive has nothing in its files that tells of keys, values or families, and
// can be restored with its keys only, of which the first may be replaced while it goes on. What is
// not encrypted is not taken for a part of it. Method: words that are looked for in all files, key
// files that change, and archives that were begun without keys.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "nacre/archive.h"
#include "nacre/db.h"
#include "tests/archive/archive_fixture.h"
#include "tests/support/key_file.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Code = Status::Code;

constexpr char kArchiveNeedle[] = "word-to-be-found";

class SealedArchiveTest : public ArchiveFixture {
 protected:
  /// Writes words that can be looked for, to the log and to tables.
  void WriteNeedles() {
    for (int i = 0; i < 50; ++i) {
      const std::string key = std::string(kArchiveNeedle) + "-key" + std::to_string(i);
      model_[key] = std::string(kArchiveNeedle) + "-value" + std::to_string(i);
      ASSERT_TRUE(IsOk(db_->Put({}, key, model_[key])));
    }
    models_[db_->GetLatestSequenceNumber()] = model_;
  }
  std::vector<std::filesystem::path> AllFiles() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir())) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  }
  /// How many have anything of the database: log, descriptions and tables.
  uint64_t FilesWithContents() const {
    uint64_t count = 0;
    for (const std::filesystem::path& path : AllFiles()) {
      const std::string name = path.filename();
      if (name != "LOCK" && name != "DATABASE" && name != "FAMILIES") ++count;
    }
    EXPECT_GE(count, 3u);
    return count;
  }
  /// Where the words are.
  std::set<std::string> Tellers() const {
    std::set<std::string> tellers;
    for (const std::filesystem::path& path : AllFiles()) {
      std::ifstream file(path, std::ios::binary);
      std::ostringstream bytes;
      bytes << file.rdbuf();
      if (bytes.str().find(kArchiveNeedle) != std::string::npos) tellers.insert(path.filename());
    }
    return tellers;
  }
  void ArchiveNeedles() {
    ASSERT_NO_FATAL_FAILURE(WriteNeedles());
    ColumnFamilyHandle* made = nullptr;
    ASSERT_TRUE(IsOk(db_->CreateColumnFamily(OwnerOptions(), kArchiveNeedle, &made)));
    ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(made)));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_NO_FATAL_FAILURE(OpenArchiver());
    ASSERT_NO_FATAL_FAILURE(AwaitBase());
    ASSERT_NO_FATAL_FAILURE(WriteNeedles());
    ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  }
  std::map<std::string, uint64_t> Keys() const {
    ArchiveInfo info;
    EXPECT_TRUE(IsOk(GetArchive(dir(), &info, key_file_)));
    return info.files_by_key;
  }
};

TEST_F(SealedArchiveTest, TellsNothing) {
  UseKeys({"one"});
  ASSERT_NO_FATAL_FAILURE(ArchiveNeedles());
  EXPECT_EQ(Tellers(), std::set<std::string>());
  archiver_.reset();
  EXPECT_EQ(Tellers(), std::set<std::string>());
  EXPECT_EQ(Keys(), (std::map<std::string, uint64_t>{{"one", FilesWithContents()}}));
}

TEST_F(SealedArchiveTest, WithoutKeysTheSearchFindsTheWords) {
  ASSERT_NO_FATAL_FAILURE(ArchiveNeedles());
  // Log, tables and, for the family, the description.
  EXPECT_EQ(Tellers().size(), FilesWithContents());
  EXPECT_EQ(Keys(), (std::map<std::string, uint64_t>{{"", FilesWithContents()}}));
}

TEST_F(SealedArchiveTest, NothingIsDoneWithoutItsKey) {
  UseKeys({"one"});
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  WriteMany(50);
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  archiver_.reset();
  std::map<std::string, uint64_t> before;
  for (const auto& file : AllFiles()) before[file] = std::filesystem::file_size(file);
  const std::string keys = key_file_;
  const auto expect_refused = [&](const std::string& culprit) {
    ArchiveInfo info;
    EXPECT_TRUE(IsFailure(GetArchive(dir(), &info, key_file_), Code::kInvalidArgument, culprit));
    EXPECT_TRUE(IsFailure(Restore(), Code::kInvalidArgument, culprit));
    Options reading = OwnerOptions();
    std::unique_ptr<Archiver> archiver;
    EXPECT_TRUE(IsFailure(Archiver::Open(reading, "db", dir(), Encrypted(), &archiver),
                          Code::kInvalidArgument, culprit));
  };
  key_file_ = "";
  expect_refused("'one'");
  expect_refused(".log");
  UseKeys({"two"});
  expect_refused("'one'");
  std::ofstream(keys, std::ios::trunc) << "one " << TestKey("another");
  expect_refused("'one'");
  std::filesystem::permissions(keys, std::filesystem::perms(0644));
  expect_refused("chmod 600");
  for (const auto& file : AllFiles()) {
    EXPECT_EQ(before[file], std::filesystem::file_size(file)) << file;
  }
  UseKeys({"one"});
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  ASSERT_TRUE(IsOk(Restore()));
  ASSERT_NO_FATAL_FAILURE(CheckRestored(model_));
}

TEST_F(SealedArchiveTest, OfADatabaseThatIsEncrypted) {
  database_key_file_ = folder_.File("database");
  WriteKeyFile(database_key_file_, {"database"});
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();
  ASSERT_TRUE(IsOk(DB::Open(OwnerOptions(), "db", &db_)));
  EXPECT_TRUE(IsFailure(Archiver::Open(OwnerOptions(), "db", dir(), {}, &archiver_),
                        Code::kInvalidArgument, "encrypted"));
  UseKeys({"one"});
  ASSERT_NO_FATAL_FAILURE(WriteNeedles());
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  ASSERT_NO_FATAL_FAILURE(WriteNeedles());
  WriteMany(100);
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  EXPECT_EQ(Tellers(), std::set<std::string>());
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  ASSERT_TRUE(IsOk(Restore()));
  ASSERT_NO_FATAL_FAILURE(CheckRestored(model_));
}

TEST_F(SealedArchiveTest, KeysAreReplacedWhileItGoesOn) {
  UseKeys({"one"});
  const ArchiveOptions options{
      .base_interval = seconds(1), .log_file_bytes = 16 << 10, .keep_for = seconds(1)};
  ASSERT_NO_FATAL_FAILURE(OpenArchiver(options));
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  WriteMany(200);
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_NO_FATAL_FAILURE(AwaitBase(2));
  // The archiver notices by itself; what it has, it keeps.
  UseKeys({"two", "one"});
  WriteMany(200);
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  const std::map<std::string, uint64_t> both = Keys();
  EXPECT_TRUE(both.contains("one") && both.contains("two")) << both.size();
  const Model then = model_;
  const uint64_t sequence = models_.rbegin()->first;
  // What the old key sealed goes with what is not kept any more.
  ASSERT_TRUE(Eventually([&] {
    EXPECT_NO_FATAL_FAILURE(WriteMany(20));
    EXPECT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    return !Keys().contains("one") || HasFailure();
  }));
  UseKeys({"two"});
  WriteMany(50);
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  EXPECT_EQ(archiver_->GetStatus().gaps, 0u);
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  ASSERT_TRUE(IsOk(Restore()));
  ASSERT_NO_FATAL_FAILURE(CheckRestored(model_));
  EXPECT_GT(restored_, sequence);
}

TEST_F(SealedArchiveTest, BasesAcrossAReplacementShareTheirTables) {
  UseKeys({"one"});
  WriteMany(300);
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  archiver_.reset();
  const uint64_t sequence = db_->GetLatestSequenceNumber();
  const Model then = model_;
  UseKeys({"two", "one"});
  WriteMany(100);
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_NO_FATAL_FAILURE(OpenArchiver({.base_interval = seconds(1)}));
  WriteMany(1);
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  WriteMany(100);
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  std::map<std::string, uint64_t> files;
  ASSERT_TRUE(IsOk(GetCheckpointKeys(dir() + "/base", &files)));
  EXPECT_GT(files["one"], 1u) << "the first base's tables were written anew";
  ArchiveInfo info;
  ASSERT_NO_FATAL_FAILURE(GetInfo(&info));
  EXPECT_EQ(info.bases.front().key_id, "one");
  EXPECT_EQ(info.bases.back().key_id, "two");
  ASSERT_TRUE(IsOk(Restore()));
  ASSERT_NO_FATAL_FAILURE(CheckRestored(model_));
  ASSERT_TRUE(IsOk(Restore({.to_sequence = sequence}, "earlier")));
  ASSERT_NO_FATAL_FAILURE(CheckRestored(then, "earlier"));
}

TEST_F(SealedArchiveTest, OneThatWasPlainIsEncryptedFromThenOn) {
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  WriteMany(100);
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  archiver_.reset();
  const Model then = model_;
  const uint64_t sequence = models_.rbegin()->first;
  UseKeys({"one"});
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  ASSERT_NO_FATAL_FAILURE(WriteNeedles());
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  EXPECT_EQ(archiver_->GetStatus().gaps, 0u);
  EXPECT_EQ(Tellers(), std::set<std::string>());
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  const std::map<std::string, uint64_t> keys = Keys();
  EXPECT_TRUE(keys.contains("") && keys.contains("one")) << keys.size();
  // All that is needed for its end is encrypted.
  ASSERT_TRUE(IsOk(Restore()));
  ASSERT_NO_FATAL_FAILURE(CheckRestored(model_));
  // What is from before is not, and may be anyone's.
  EXPECT_TRUE(IsFailure(Restore({.to_sequence = sequence - 1}, "earlier"), Code::kInvalidArgument,
                        "accept_plain"));
  ArchiveRestoreOptions plain{.to_sequence = sequence};
  plain.restore.encryption.accept_plain = true;
  ASSERT_TRUE(IsOk(Restore(plain, "allowed")));
  ASSERT_NO_FATAL_FAILURE(CheckRestored(then, "allowed"));
}

TEST_F(SealedArchiveTest, WhatIsPutThereIsNotTakenForAPartOfIt) {
  UseKeys({"one"});
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  WriteMany(100);
  ASSERT_TRUE(IsOk(db_->Flush({})));
  // The same database has a plain archive, whose base is within the log of the encrypted one.
  const std::string plain = folder_.File("plain");
  {
    Options reading = OwnerOptions();
    reading.pool = archive_pool_;
    std::unique_ptr<Archiver> second;
    ASSERT_TRUE(IsOk(Archiver::Open(reading, "db", plain, {}, &second)));
    WriteMany(10);
    ASSERT_TRUE(IsOk(second->WaitForArchive(db_->GetLatestSequenceNumber(), kPatience)));
  }
  WriteMany(100);
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  const auto log_of = [](const std::string& archive) {
    return std::filesystem::directory_iterator(archive + "/log")->path();
  };
  const std::string saved = folder_.File("saved");
  std::filesystem::copy(dir(), saved, std::filesystem::copy_options::recursive);
  const auto begin_again = [&] {
    std::filesystem::remove_all(dir());
    std::filesystem::copy(saved, dir(), std::filesystem::copy_options::recursive);
  };
  // A plain file in the place of one of its log.
  std::filesystem::copy_file(log_of(plain), log_of(dir()),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_FALSE(Restore({}, "log").ok());
  begin_again();
  // A plain base that is later than its own.
  for (const auto& file : std::filesystem::directory_iterator(plain + "/base")) {
    const std::string name = file.path().filename();
    const bool is_description = name.starts_with("CHECKPOINT-");
    std::filesystem::copy_file(file,
                               dir() + "/base/" + (is_description ? "CHECKPOINT-000009" : name),
                               std::filesystem::copy_options::overwrite_existing);
  }
  EXPECT_TRUE(IsFailure(Restore({}, "base"), Code::kCorruption, "checkpoint 9"));
  begin_again();
  // One that is its only base, with a file of the log that goes on behind it.
  for (const auto& file : std::filesystem::directory_iterator(dir() + "/base")) {
    std::filesystem::remove(file);
  }
  for (const auto& file : std::filesystem::directory_iterator(plain + "/base")) {
    std::filesystem::copy_file(file, dir() + "/base/" + file.path().filename().string());
  }
  EXPECT_TRUE(IsFailure(Restore({}, "only"), Code::kInvalidArgument, "accept_plain"));
  begin_again();
  // Itself as another archive.
  {
    std::ifstream from(dir() + "/DATABASE");
    uint64_t database = 0;
    uint64_t archive = 0;
    std::string name;
    ASSERT_TRUE(from >> database >> archive >> name);
    std::ofstream(dir() + "/DATABASE", std::ios::trunc)
        << database << ' ' << archive + 1 << ' ' << name << '\n';
  }
  EXPECT_TRUE(IsFailure(Restore({}, "identity"), Code::kInvalidArgument, "another file"));
  begin_again();
  ASSERT_TRUE(IsOk(Restore()));
  ASSERT_NO_FATAL_FAILURE(CheckRestored(model_));
}

}  // namespace
}  // namespace nacre
