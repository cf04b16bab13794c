// Goal: a batch gives back what was put in, in order, and no malformed representation crashes or
// passes as a whole.
// Method: random updates against a list; every truncation; random corruptions in exactly sized
// memory.

#include "nacre/write_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "nacre/column_family.h"
#include "tests/support/seed.h"
#include "util/coding.h"
#include "util/random.h"

namespace nacre {
namespace {

/// Writes down what a batch has; of families only if it is to.
class Recorder : public WriteBatch::Handler {
 public:
  void Put(const Slice& key, const Slice& value) override {
    updates.push_back("put " + key.ToString() + "=" + value.ToString());
  }
  void Delete(const Slice& key) override { updates.push_back("delete " + key.ToString()); }
  void SingleDelete(const Slice& key) override { updates.push_back("single " + key.ToString()); }
  void Merge(const Slice& key, const Slice& operand) override {
    updates.push_back("merge " + key.ToString() + "+" + operand.ToString());
  }
  void LogData(const Slice& blob) override { updates.push_back("log " + blob.ToString()); }
  bool Continue() override { return updates.size() < most; }

  std::vector<std::string> updates;
  size_t most = SIZE_MAX;
};

class FamilyRecorder final : public WriteBatch::Handler {
 public:
  Status PutCF(uint32_t family, const Slice& key, const Slice& value) override {
    return Note(family, "put " + key.ToString() + "=" + value.ToString());
  }
  Status DeleteCF(uint32_t family, const Slice& key) override {
    return Note(family, "delete " + key.ToString());
  }
  Status SingleDeleteCF(uint32_t family, const Slice& key) override {
    return Note(family, "single " + key.ToString());
  }
  Status DeleteRangeCF(uint32_t family, const Slice& begin, const Slice& end) override {
    return Note(family, "range " + begin.ToString() + ".." + end.ToString());
  }
  Status MergeCF(uint32_t family, const Slice& key, const Slice& operand) override {
    return Note(family, "merge " + key.ToString() + "+" + operand.ToString());
  }
  void LogData(const Slice& blob) override { updates.push_back("log " + blob.ToString()); }

  std::vector<std::string> updates;

 private:
  Status Note(uint32_t family, const std::string& what) {
    updates.push_back(std::to_string(family) + " " + what);
    return Status::OK();
  }
};

class Family final : public ColumnFamilyHandle {
 public:
  explicit Family(uint32_t id) : id_(id), name_("family" + std::to_string(id)) {}
  const std::string& GetName() const override { return name_; }
  uint32_t GetID() const override { return id_; }

 private:
  const uint32_t id_;
  const std::string name_;
};

std::string RandomKey(Random* random, int most_bits) {
  std::string key(random->Skewed(most_bits), '\0');
  for (char& c : key) c = static_cast<char>(random->Next());
  return key;
}

/// Adds an update of any kind, and what FamilyRecorder says of it.
void AddRandomUpdate(Random* random, WriteBatch* batch, std::vector<std::string>* expected) {
  Family family(random->OneIn(2) ? 0 : static_cast<uint32_t>(random->Skewed(32)));
  ColumnFamilyHandle* const handle = family.GetID() == 0 && random->OneIn(2) ? nullptr : &family;
  const std::string key = RandomKey(random, 9);
  const std::string value = RandomKey(random, 12);
  const std::string id = std::to_string(family.GetID()) + " ";
  switch (random->Uniform(6)) {
    case 0:
      ASSERT_TRUE(batch->Put(handle, key, value).ok());
      expected->push_back(id + "put " + key + "=" + value);
      break;
    case 1:
      ASSERT_TRUE(batch->Delete(handle, key).ok());
      expected->push_back(id + "delete " + key);
      break;
    case 2:
      ASSERT_TRUE(batch->SingleDelete(handle, key).ok());
      expected->push_back(id + "single " + key);
      break;
    case 3:
      ASSERT_TRUE(batch->DeleteRange(handle, key, value).ok());
      expected->push_back(id + "range " + key + ".." + value);
      break;
    case 4:
      ASSERT_TRUE(batch->Merge(handle, key, value).ok());
      expected->push_back(id + "merge " + key + "+" + value);
      break;
    default:
      ASSERT_TRUE(batch->PutLogData(value).ok());
      expected->push_back("log " + value);
  }
}

size_t CountOf(const std::vector<std::string>& items, const std::string& word) {
  return static_cast<size_t>(std::count_if(items.begin(), items.end(), [&](const auto& item) {
    return item.find(word + " ") <= item.find(' ') + 1;
  }));
}

TEST(WriteBatchTest, EmptyBatch) {
  const WriteBatch batch;
  EXPECT_EQ(0U, batch.Count());
  EXPECT_FALSE(batch.HasPut());
  EXPECT_EQ(12U, batch.GetDataSize());
  Recorder recorder;
  EXPECT_TRUE(batch.Iterate(&recorder).ok());
  EXPECT_TRUE(recorder.updates.empty());
}

TEST(WriteBatchTest, RepresentationIsRocksDbs) {
  WriteBatch batch;
  ASSERT_TRUE(batch.Put("k", "value").ok());
  ASSERT_TRUE(batch.Delete("gone").ok());
  const std::string expected = std::string(8, '\0') + std::string("\x02\0\0\0", 4) +
                               "\x01\x01k\x05value" + std::string("\0\x04gone", 6);
  EXPECT_EQ(expected, batch.Data());
}

TEST(WriteBatchTest, RepresentationsOfAllKindsAreRocksDbs) {
  // Written by hand after RocksDB's own encoder of batches.
  WriteBatch batch;
  Family family(300);
  ASSERT_TRUE(batch.Merge("k", "v").ok());
  ASSERT_TRUE(batch.SingleDelete("k").ok());
  ASSERT_TRUE(batch.DeleteRange("a", "z").ok());
  ASSERT_TRUE(batch.PutLogData("blob").ok());
  ASSERT_TRUE(batch.Put(&family, "k", "v").ok());
  ASSERT_TRUE(batch.Delete(&family, "k").ok());
  ASSERT_TRUE(batch.SingleDelete(&family, "k").ok());
  ASSERT_TRUE(batch.DeleteRange(&family, "a", "z").ok());
  ASSERT_TRUE(batch.Merge(&family, "k", "v").ok());
  const std::string expected =
      std::string(8, '\0') + std::string("\x08\0\0\0", 4) + "\x02\x01k\x01v" + "\x07\x01k" +
      "\x0f\x01" + "a\x01z" + "\x03\x04" + "blob" + "\x05\xac\x02\x01k\x01v" + "\x04\xac\x02\x01k" +
      "\x08\xac\x02\x01k" + "\x0e\xac\x02\x01" + "a\x01z" + "\x06\xac\x02\x01k\x01v";
  EXPECT_EQ(expected, batch.Data());
}

TEST(WriteBatchTest, GivesBackWhatWasPutIn) {
  Random random(TestSeed(401));
  for (int round = 0; round < 300; ++round) {
    WriteBatch batch;
    std::vector<std::string> expected;
    for (uint64_t left = random.Uniform(50); left > 0; --left) {
      ASSERT_NO_FATAL_FAILURE(AddRandomUpdate(&random, &batch, &expected));
    }
    FamilyRecorder recorder;
    const WriteBatch copy(batch.Data());
    ASSERT_TRUE(copy.Iterate(&recorder).ok());
    EXPECT_EQ(expected, recorder.updates);
    const size_t log_data = std::count_if(expected.begin(), expected.end(), [](const auto& item) {
      return item.starts_with("log ");
    });
    EXPECT_EQ(expected.size() - log_data, copy.Count());
    EXPECT_EQ(CountOf(expected, "put") > 0, copy.HasPut());
    EXPECT_EQ(CountOf(expected, "delete") > 0, copy.HasDelete());
    EXPECT_EQ(CountOf(expected, "single") > 0, copy.HasSingleDelete());
    EXPECT_EQ(CountOf(expected, "range") > 0, copy.HasDeleteRange());
    EXPECT_EQ(CountOf(expected, "merge") > 0, copy.HasMerge());
    batch.Clear();
    EXPECT_EQ(WriteBatch().Data(), batch.Data());
  }
}

TEST(WriteBatchTest, SavePointsAreAStack) {
  Random random(TestSeed(403));
  for (int round = 0; round < 200; ++round) {
    WriteBatch batch;
    std::vector<std::string> expected;
    std::vector<std::pair<std::string, size_t>> points;
    for (int step = 0; step < 40; ++step) {
      switch (random.Uniform(6)) {
        case 0:
          batch.SetSavePoint();
          points.emplace_back(batch.Data(), expected.size());
          break;
        case 1: {
          const Status status = batch.RollbackToSavePoint();
          ASSERT_EQ(points.empty(), status.IsNotFound());
          if (points.empty()) break;
          ASSERT_EQ(points.back().first, batch.Data());
          expected.resize(points.back().second);
          points.pop_back();
          break;
        }
        case 2:
          ASSERT_EQ(points.empty(), batch.PopSavePoint().IsNotFound());
          if (!points.empty()) points.pop_back();
          break;
        default:
          ASSERT_NO_FATAL_FAILURE(AddRandomUpdate(&random, &batch, &expected));
      }
    }
    FamilyRecorder recorder;
    ASSERT_TRUE(batch.Iterate(&recorder).ok());
    EXPECT_EQ(expected, recorder.updates);
  }
}

TEST(WriteBatchTest, AppendAddsAllOfAnother) {
  Random random(TestSeed(404));
  for (int round = 0; round < 100; ++round) {
    WriteBatch first;
    WriteBatch second;
    std::vector<std::string> expected;
    for (uint64_t left = random.Uniform(10); left > 0; --left) {
      ASSERT_NO_FATAL_FAILURE(AddRandomUpdate(&random, &first, &expected));
    }
    for (uint64_t left = random.Uniform(10); left > 0; --left) {
      ASSERT_NO_FATAL_FAILURE(AddRandomUpdate(&random, &second, &expected));
    }
    ASSERT_TRUE(first.Append(second).ok());
    FamilyRecorder recorder;
    ASSERT_TRUE(first.Iterate(&recorder).ok());
    EXPECT_EQ(expected, recorder.updates);
  }
  WriteBatch batch;
  ASSERT_TRUE(batch.Put("k", "v").ok());
  ASSERT_TRUE(batch.Append(batch).ok());
  EXPECT_EQ(2U, batch.Count());
  const std::string before = batch.Data();
  EXPECT_TRUE(batch.Append(WriteBatch(std::string("short"))).IsCorruption());
  EXPECT_EQ(before, batch.Data());
}

TEST(WriteBatchTest, HandlersOfTheDefaultFamilyRefuseOthers) {
  Family other(7);
  WriteBatch batch;
  ASSERT_TRUE(batch.Put("a", "1").ok());
  ASSERT_TRUE(batch.SingleDelete("b").ok());
  ASSERT_TRUE(batch.Merge("c", "2").ok());
  ASSERT_TRUE(batch.Put(&other, "d", "3").ok());
  Recorder recorder;
  EXPECT_TRUE(batch.Iterate(&recorder).IsInvalidArgument());
  EXPECT_EQ((std::vector<std::string>{"put a=1", "single b", "merge c+2"}), recorder.updates);
  WriteBatch range;
  ASSERT_TRUE(range.DeleteRange("a", "b").ok());
  EXPECT_TRUE(range.Iterate(&recorder).IsInvalidArgument());
}

TEST(WriteBatchTest, ContinueEndsIterate) {
  WriteBatch batch;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(batch.Delete(std::to_string(i)).ok());
  Recorder recorder;
  recorder.most = 2;
  EXPECT_TRUE(batch.Iterate(&recorder).ok());
  EXPECT_EQ((std::vector<std::string>{"delete 0", "delete 1"}), recorder.updates);
}

TEST(WriteBatchTest, HugeKeysAndValuesAreRefused) {
  WriteBatch batch;
  ASSERT_TRUE(batch.Put("a", "b").ok());
  const std::string before = batch.Data();
  // The size is looked at before the bytes are.
  const Slice huge("", size_t{1} << 32);
  EXPECT_TRUE(batch.Put(huge, "v").IsInvalidArgument());
  EXPECT_TRUE(batch.Put("k", huge).IsInvalidArgument());
  EXPECT_TRUE(batch.Delete(huge).IsInvalidArgument());
  EXPECT_TRUE(batch.SingleDelete(huge).IsInvalidArgument());
  EXPECT_TRUE(batch.DeleteRange("k", huge).IsInvalidArgument());
  EXPECT_TRUE(batch.Merge("k", huge).IsInvalidArgument());
  EXPECT_TRUE(batch.PutLogData(huge).IsInvalidArgument());
  EXPECT_EQ(before, batch.Data());
}

TEST(WriteBatchTest, MalformedRepresentationsAreCorruption) {
  Random random(TestSeed(402));
  WriteBatch batch;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(batch.Put("key" + std::to_string(i), std::string(150, 'v')).ok());
    ASSERT_TRUE(batch.Delete("old" + std::to_string(i)).ok());
    Family family(static_cast<uint32_t>(i) * 1000);
    ASSERT_TRUE(batch.Merge(&family, "key", "operand").ok());
    ASSERT_TRUE(batch.DeleteRange(&family, "a", "z").ok());
    ASSERT_TRUE(batch.SingleDelete(&family, "once").ok());
  }
  const std::string good = batch.Data();
  for (size_t size = 0; size < good.size(); ++size) {
    const WriteBatch truncated(good.substr(0, size));
    FamilyRecorder recorder;
    EXPECT_TRUE(truncated.Iterate(&recorder).IsCorruption()) << size;
    truncated.HasPut();
    truncated.Count();
  }
  FamilyRecorder recorder;
  EXPECT_TRUE(WriteBatch(good + '\0').Iterate(&recorder).IsCorruption());
  std::string wrong_type = good;
  wrong_type[12] = 9;
  EXPECT_TRUE(WriteBatch(wrong_type).Iterate(&recorder).IsCorruption());
  std::string wrong_count = good;
  wrong_count[8] = 9;
  EXPECT_TRUE(WriteBatch(wrong_count).Iterate(&recorder).IsCorruption());
  for (int i = 0; i < 20'000; ++i) {
    std::string bad = good;
    bad[random.Uniform(bad.size())] = static_cast<char>(random.Next());
    bad.resize(random.Uniform(bad.size() + 1));
    bad.shrink_to_fit();
    FamilyRecorder ignored;
    WriteBatch(std::move(bad)).Iterate(&ignored).IgnoreError();
  }
}

}  // namespace
}  // namespace nacre
