// Goal: an encrypted checkpoint has nothing in its files that tells of keys and values, is restored
// as any other one, and only with its keys; what was changed, exchanged or put in its place is
// refused, with the file named. Keys are replaced while checkpoints share their tables.
// Method: a database beside a model, whose files are searched, changed byte by byte, and exchanged.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nacre/checkpoint.h"
#include "tests/support/checkpoint_fixture.h"
#include "tests/support/key_file.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

using Code = Status::Code;

constexpr char kSealedNeedle[] = "a-word-to-be-found";

class DBSealedCheckpointTest : public CheckpointFixture {
 protected:
  void SetUp() override {
    UseKeys({"first"});
    options_.disable_auto_compactions = true;
    options_.chunk_size = 4 << 10;
    ASSERT_NO_FATAL_FAILURE(Open("none", 2));
    ASSERT_NO_FATAL_FAILURE(Write(""));
  }
  void UseKeys(const std::vector<std::string>& ids) {
    encryption_.key_file = folder_.File("keys");
    encryption_.context = "a folder";
    WriteKeyFile(encryption_.key_file, ids);
  }
  /// Makes a table with words that can be looked for.
  void Write(const std::string& ending) {
    for (int i = 0; i < 300; ++i) {
      const std::string key = std::string(kSealedNeedle) + "-key" + std::to_string(i) + ending;
      model_[key] = std::string(kSealedNeedle) + "-value" + std::to_string(i) + ending;
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, model_[key])));
    }
    ASSERT_TRUE(IsOk(db_->Flush({})));
  }
  CheckpointOptions Reading() const {
    CheckpointOptions options;
    options.encryption = encryption_;
    return options;
  }
  Status Verify(uint64_t number = 0) const { return VerifyCheckpoint(dir(), number, Reading()); }
  bool IsToldByAFile() const {
    for (const std::string& file : Files("")) {
      if (ReadAll(file).find(kSealedNeedle) != std::string::npos) return true;
    }
    return false;
  }
  std::map<std::string, uint64_t> Keys() const {
    std::map<std::string, uint64_t> keys;
    EXPECT_TRUE(IsOk(GetCheckpointKeys(dir(), &keys)));
    return keys;
  }
  /// What is wrong with `file` now is found, and named.
  void ExpectRefused(const std::string& file, Code code) {
    EXPECT_TRUE(IsFailure(Verify(), code, file));
    EXPECT_TRUE(IsFailure(Restore("copy"), code, file));
    DestroyDB("copy", options_).IgnoreError();
  }
};

TEST_F(DBSealedCheckpointTest, IsRestoredAndTellsNothing) {
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  EXPECT_EQ(Files(".sealed").size(), 1u);
  EXPECT_TRUE(Files(".table").empty());
  EXPECT_FALSE(IsToldByAFile());
  EXPECT_EQ(Keys(), (std::map<std::string, uint64_t>{{"first", 2}}));
  std::vector<CheckpointInfo> all;
  ASSERT_TRUE(IsOk(GetCheckpoints(dir(), &all, encryption_)));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].key_id, "first");
  ASSERT_TRUE(IsOk(Verify()));
  ASSERT_TRUE(IsOk(Restore("copy")));
  ASSERT_NO_FATAL_FAILURE(TurnTo("copy"));
  ASSERT_NO_FATAL_FAILURE(Check());
  // The search finds what is there.
  const FileEncryption sealed = std::exchange(encryption_, {});
  std::filesystem::remove_all(dir());
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  EXPECT_TRUE(IsToldByAFile());
}

TEST_F(DBSealedCheckpointTest, WithoutItsKeyItIsNamedAndLeftAlone) {
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  const std::string description = Files("CHECKPOINT-000001").front();
  const std::vector<std::string> before = Files("");
  std::vector<CheckpointInfo> all;
  EXPECT_TRUE(IsFailure(GetCheckpoints(dir(), &all), Code::kInvalidArgument, description));
  EXPECT_TRUE(IsFailure(GetCheckpoints(dir(), &all), Code::kInvalidArgument, "'first'"));
  EXPECT_TRUE(IsFailure(DeleteCheckpoint(dir(), 2), Code::kInvalidArgument, description));
  const FileEncryption right = std::exchange(encryption_, {});
  EXPECT_TRUE(IsFailure(Restore("copy"), Code::kInvalidArgument, description));
  encryption_ = right;
  UseKeys({"second"});
  EXPECT_TRUE(IsFailure(Restore("copy"), Code::kInvalidArgument, "'first'"));
  // Its table is sealed with a key that is gone, too: it is neither used nor written over.
  EXPECT_TRUE(IsFailure(MakeCheckpoint(), Code::kInvalidArgument, ".sealed"));
  EXPECT_EQ(Files(""), before);
  UseKeys({"first"});
  ASSERT_TRUE(IsOk(Verify()));
  encryption_.context = "another folder";
  EXPECT_TRUE(IsFailure(Restore("copy"), Code::kInvalidArgument, description));
  encryption_.key_file = folder_.File("nowhere");
  EXPECT_TRUE(IsFailure(Restore("copy"), Code::kIOError, "nowhere"));
}

TEST_F(DBSealedCheckpointTest, KeysAreReplacedWhileTablesAreShared) {
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  UseKeys({"second", "first"});
  ASSERT_NO_FATAL_FAILURE(Write("+"));
  CheckpointInfo info;
  ASSERT_TRUE(IsOk(MakeCheckpoint(&info)));
  EXPECT_LT(info.bytes_new, info.bytes) << "the first table is shared";
  EXPECT_EQ(Keys(), (std::map<std::string, uint64_t>{{"first", 2}, {"second", 2}}));
  ASSERT_TRUE(IsOk(Verify(1)));
  ASSERT_TRUE(IsOk(Verify(2)));
  // The old key goes when no file has it: the first description does, the table when it is merged.
  ASSERT_TRUE(IsOk(DeleteCheckpoint(dir(), 1, encryption_)));
  EXPECT_EQ(Keys(), (std::map<std::string, uint64_t>{{"first", 1}, {"second", 2}}));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  ASSERT_TRUE(IsOk(DeleteCheckpoint(dir(), 2, encryption_)));
  EXPECT_EQ(Keys(), (std::map<std::string, uint64_t>{{"second", 2}}));
  UseKeys({"second"});
  ASSERT_TRUE(IsOk(Restore("copy")));
  ASSERT_NO_FATAL_FAILURE(TurnTo("copy"));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(DBSealedCheckpointTest, WhatIsNotEncryptedIsTakenOnlyIfAllowed) {
  const FileEncryption sealed = std::exchange(encryption_, {});
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  const std::string plain = Files("CHECKPOINT-000001").front();
  encryption_ = sealed;
  EXPECT_TRUE(IsFailure(Restore("copy"), Code::kInvalidArgument, plain));
  CheckpointInfo info;
  ASSERT_TRUE(IsOk(MakeCheckpoint(&info)));
  EXPECT_EQ(info.bytes_new, info.bytes) << "a plain table is part of it";
  EXPECT_EQ(Keys(), (std::map<std::string, uint64_t>{{"", 2}, {"first", 2}}));
  ASSERT_TRUE(IsOk(Restore("copy")));
  RestoreOptions first;
  first.checkpoint = 1;
  EXPECT_TRUE(IsFailure(Restore("plain", first), Code::kInvalidArgument, plain));
  encryption_.accept_plain = true;
  ASSERT_TRUE(IsOk(Restore("plain", first)));
  encryption_ = {};
  ASSERT_TRUE(IsOk(Restore("without", first)));
  // A description that is put in the place of an encrypted one.
  encryption_ = sealed;
  WriteAll(Files("CHECKPOINT-000002").front(), ReadAll(plain));
  EXPECT_TRUE(IsFailure(Restore("forged"), Code::kInvalidArgument, "CHECKPOINT-000002"));
}

TEST_F(DBSealedCheckpointTest, EveryFlippedByteIsFound) {
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  for (const std::string& file : {Files("CHECKPOINT-000001").front(), Files(".sealed").front()}) {
    const std::string right = ReadAll(file);
    // The bytes of the table are in chunks, of which each byte is as any other one.
    const size_t step = right.size() > 8000 ? 37 : 1;
    for (size_t i = 0; i < right.size(); i += i < 300 ? 1 : step) {
      std::string wrong = right;
      wrong[i] = static_cast<char>(wrong[i] ^ 1 << i % 8);
      WriteAll(file, wrong);
      const Status status = Verify();
      EXPECT_TRUE(status.IsCorruption() || status.IsNotSupported()) << i << status.ToString();
      EXPECT_NE(status.ToString().find(file), std::string::npos) << status.ToString();
    }
    for (const std::string& wrong : {right.substr(0, right.size() - 1), right + "x", right + right,
                                     right.substr(0, 20), std::string()}) {
      WriteAll(file, wrong);
      ExpectRefused(file, Code::kCorruption);
    }
    WriteAll(file, right);
    ASSERT_TRUE(IsOk(Verify()));
  }
}

TEST_F(DBSealedCheckpointTest, WhatIsExchangedIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Write("+"));
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  const std::vector<std::string> tables = Files(".sealed");
  ASSERT_EQ(tables.size(), 2u);
  const std::string first = ReadAll(tables[0]);
  const std::string second = ReadAll(tables[1]);
  WriteAll(tables[1], first);
  EXPECT_FALSE(Verify().ok());
  // With the same length, so that it is its seal that tells.
  std::string of_its_length = first;
  of_its_length.resize(second.size(), 'x');
  WriteAll(tables[1], of_its_length);
  ExpectRefused(tables[1], Code::kInvalidArgument);
  WriteAll(tables[1], second);
  // Two chunks of one file, with their tags.
  constexpr size_t kChunk = (4 << 10) + 16;
  constexpr size_t kChunksAt = 104 + kChunk;
  ASSERT_GT(second.size(), kChunksAt + 2 * kChunk);
  WriteAll(tables[1], second.substr(0, kChunksAt) + second.substr(kChunksAt + kChunk, kChunk) +
                          second.substr(kChunksAt, kChunk) + second.substr(kChunksAt + 2 * kChunk));
  ExpectRefused(tables[1], Code::kCorruption);
  WriteAll(tables[1], second);
  ASSERT_TRUE(IsOk(Verify()));
  // One description as another.
  const std::string description = Files("CHECKPOINT-000001").front();
  const std::string later = dir() + "/CHECKPOINT-000002";
  WriteAll(later, ReadAll(description));
  ExpectRefused(later, Code::kInvalidArgument);
}

}  // namespace
}  // namespace nacre
