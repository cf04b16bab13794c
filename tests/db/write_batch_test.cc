// Goal: a batch gives back what was put in, in order, and no malformed representation crashes or
// passes as a whole.
// Method: random updates against a list; every truncation; random corruptions in exactly sized
// memory.

#include "nacre/write_batch.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/seed.h"
#include "util/coding.h"
#include "util/random.h"

namespace nacre {
namespace {

class Recorder : public WriteBatch::Handler {
 public:
  void Put(const Slice& key, const Slice& value) override {
    updates.push_back("put " + key.ToString() + "=" + value.ToString());
  }
  void Delete(const Slice& key) override { updates.push_back("delete " + key.ToString()); }

  std::vector<std::string> updates;
};

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

TEST(WriteBatchTest, GivesBackWhatWasPutIn) {
  Random random(TestSeed(401));
  for (int round = 0; round < 100; ++round) {
    WriteBatch batch;
    std::vector<std::string> expected;
    bool has_put = false;
    for (uint64_t left = random.Uniform(50); left > 0; --left) {
      std::string key(random.Skewed(9), '\0');
      for (char& c : key) c = static_cast<char>(random.Next());
      if (random.OneIn(3)) {
        ASSERT_TRUE(batch.Delete(key).ok());
        expected.push_back("delete " + key);
      } else {
        const std::string value(random.Skewed(12), static_cast<char>(random.Next()));
        ASSERT_TRUE(batch.Put(key, value).ok());
        expected.push_back("put " + key + "=" + value);
        has_put = true;
      }
    }
    Recorder recorder;
    const WriteBatch copy(batch.Data());
    ASSERT_TRUE(copy.Iterate(&recorder).ok());
    EXPECT_EQ(expected, recorder.updates);
    EXPECT_EQ(expected.size(), copy.Count());
    EXPECT_EQ(has_put, copy.HasPut());
    batch.Clear();
    EXPECT_EQ(WriteBatch().Data(), batch.Data());
  }
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
  EXPECT_EQ(before, batch.Data());
}

TEST(WriteBatchTest, MalformedRepresentationsAreCorruption) {
  Random random(TestSeed(402));
  WriteBatch batch;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(batch.Put("key" + std::to_string(i), std::string(150, 'v')).ok());
    ASSERT_TRUE(batch.Delete("old" + std::to_string(i)).ok());
  }
  const std::string good = batch.Data();
  for (size_t size = 0; size < good.size(); ++size) {
    const WriteBatch truncated(good.substr(0, size));
    Recorder recorder;
    EXPECT_TRUE(truncated.Iterate(&recorder).IsCorruption()) << size;
    truncated.HasPut();
    truncated.Count();
  }
  Recorder recorder;
  EXPECT_TRUE(WriteBatch(good + '\0').Iterate(&recorder).IsCorruption());
  std::string wrong_type = good;
  wrong_type[12] = 2;
  EXPECT_TRUE(WriteBatch(wrong_type).Iterate(&recorder).IsCorruption());
  std::string wrong_count = good;
  wrong_count[8] = 9;
  EXPECT_TRUE(WriteBatch(wrong_count).Iterate(&recorder).IsCorruption());
  for (int i = 0; i < 20'000; ++i) {
    std::string bad = good;
    bad[random.Uniform(bad.size())] = static_cast<char>(random.Next());
    bad.resize(random.Uniform(bad.size() + 1));
    bad.shrink_to_fit();
    Recorder ignored;
    WriteBatch(std::move(bad)).Iterate(&ignored).IgnoreError();
  }
}

}  // namespace
}  // namespace nacre
