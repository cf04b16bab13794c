// Goal: merging entries of all kinds and range tombstones changes nothing that any snapshot sees,
// whatever lies below; and keeps no more than it needs.
// Method: random histories, cut into the input and what is in a level below, under random snapshots
// and bounds; what every snapshot sees is computed by brute force before and after. Then single
// cases of what has to go and what has to stay.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nacre/merge_operator.h"
#include "table/merge/merge_kernel.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/test_table.h"
#include "tests/support/table/vector_iterator.h"
#include "util/random.h"

namespace nacre {
namespace {

/// What a level has.
struct Level {
  std::vector<TestEntry> entries;
  std::vector<RangeTombstone> tombstones;
};

/// What a reader at `snapshot` makes of levels, the newest first.
std::map<std::string, std::string> VisibleInLevels(const std::vector<const Level*>& levels,
                                                   SequenceNumber snapshot) {
  std::map<std::string, std::vector<TestEntry>> keys;  // Newest first.
  std::vector<RangeTombstone> tombstones;
  for (const Level* level : levels) {
    std::vector<TestEntry> sorted = level->entries;
    SortEntries(InternalKeyComparator(BytewiseComparator()), &sorted);
    for (TestEntry& entry : sorted) {
      if (TagSequence(entry.tag) <= snapshot) keys[entry.user_key].push_back(std::move(entry));
    }
    tombstones.insert(tombstones.end(), level->tombstones.begin(), level->tombstones.end());
  }
  std::map<std::string, std::string> visible;
  for (const auto& [key, versions] : keys) {
    SequenceNumber cover = 0;
    for (const RangeTombstone& t : tombstones) {
      if (t.sequence <= snapshot && t.begin <= key && key < t.end) {
        cover = std::max(cover, t.sequence);
      }
    }
    std::vector<std::string> operands;
    std::optional<std::string> value;
    for (const TestEntry& entry : versions) {
      if (TagSequence(entry.tag) < cover) break;
      if (TagType(entry.tag) == ValueType::kMerge) {
        operands.push_back(entry.value);
        continue;
      }
      if (TagType(entry.tag) == ValueType::kValue) value = entry.value;
      break;
    }
    for (auto operand = operands.rbegin(); operand != operands.rend(); ++operand) {
      value = value.has_value() ? *value + "," + *operand : *operand;
    }
    if (value.has_value()) visible[key] = *value;
  }
  return visible;
}

/// What a merge made.
struct KindOutputs {
  std::deque<MemoryTable> tables;
  std::vector<TableMeta> metas;
  MergeStats stats;

  Status Merge(const Level& input, MergeOptions options) {
    options.comparator = BytewiseComparator();
    const InternalKeyComparator comparator(options.comparator);
    std::vector<TestEntry> entries = input.entries;
    SortEntries(comparator, &entries);
    if (!input.tombstones.empty()) {
      options.range_tombstones =
          std::make_shared<const RangeTombstones>(options.comparator, input.tombstones);
    }
    VectorIterator iterator(comparator, std::move(entries));
    return MergeTables(
        &iterator, options,
        [this](TableMeta* identity, std::unique_ptr<ExtentWriter>* writer) {
          identity->id = 100 + tables.size();
          tables.emplace_back();
          *writer = std::make_unique<MemoryExtentWriter>(&tables.back(), 256, 1 << 20);
          return Status::OK();
        },
        &metas, &stats);
  }
  /// All that is in the tables, which lie within their bounds, one behind the other.
  Level Read() const {
    Level level;
    const InternalKeyComparator comparator(BytewiseComparator());
    for (size_t i = 0; i < metas.size(); ++i) {
      TestTable opened;
      const Status status = OpenTable(tables[i], metas[i], TestTableOptions(), &opened);
      EXPECT_TRUE(IsOk(status));
      if (i > 0) {
        EXPECT_LT(comparator.Compare(metas[i - 1].largest, metas[i].smallest), 0);
      }
      auto iterator = opened.reader->NewIterator({});
      iterator->SeekToFirst();
      for (TestEntry& entry : ReadAll(iterator.get())) level.entries.push_back(std::move(entry));
      const RangeTombstones* const tombstones = opened.reader->range_tombstones();
      EXPECT_EQ(metas[i].has_range_deletions(), tombstones != nullptr);
      if (tombstones == nullptr) continue;
      for (const auto& fragment : tombstones->Listed()) {
        EXPECT_LE(metas[i].smallest_user_key().ToString(), fragment.begin);
        EXPECT_GE(metas[i].largest_user_key().ToString(), fragment.end);
        for (const SequenceNumber sequence : fragment.sequences) {
          level.tombstones.push_back({fragment.begin, fragment.end, sequence});
        }
      }
    }
    return level;
  }
};

std::string Key(uint64_t n) { return "key" + std::to_string(10 + n); }

/// A history that keeps to what is asked of single deletions.
class History {
 public:
  explicit History(Random* random) : random_(random) {}

  Level Write(uint64_t updates) {
    Level level;
    for (uint64_t i = 0; i < updates; ++i) {
      const SequenceNumber sequence = ++last_;
      const std::string value = "v" + std::to_string(sequence);
      if (random_->OneIn(4)) {
        const uint64_t n = random_->Uniform(5);
        const bool there = std::exchange(once_[n], !once_[n]);
        level.entries.push_back(
            {"once" + std::to_string(n),
             PackTag(sequence, there ? ValueType::kSingleDeletion : ValueType::kValue),
             there ? "" : value});
        continue;
      }
      const uint64_t n = random_->Uniform(12);
      if (random_->OneIn(8)) {
        level.tombstones.push_back({Key(n), Key(n + random_->Uniform(6)), sequence});
        continue;
      }
      const ValueType types[] = {ValueType::kValue, ValueType::kMerge, ValueType::kMerge,
                                 ValueType::kDeletion};
      const ValueType type = types[random_->Uniform(4)];
      level.entries.push_back(
          {Key(n), PackTag(sequence, type), type == ValueType::kDeletion ? "" : value});
    }
    return level;
  }
  SequenceNumber last() const { return last_; }

 private:
  Random* const random_;
  SequenceNumber last_ = 0;
  bool once_[5] = {};
};

TEST(MergeKindsTest, ChangesNothingThatIsSeen) {
  Random random(TestSeed(8200));
  const auto stringappend = MergeOperators::CreateStringAppendOperator();
  for (int round = 0; round < 1500; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    History history(&random);
    const Level below = random.OneIn(3) ? Level() : history.Write(random.Uniform(40));
    const Level input = history.Write(random.Uniform(60));
    MergeOptions options;
    for (uint64_t left = random.Uniform(4); left > 0; --left) {
      options.snapshots.push_back(random.Uniform(history.last() + 1));
    }
    std::sort(options.snapshots.begin(), options.snapshots.end());
    if (!below.entries.empty() || !below.tombstones.empty()) options.deeper = {{"", "z"}};
    options.merge_operator = random.OneIn(4) ? nullptr : stringappend.get();
    options.merged_bytes_max = random.OneIn(4) ? 20 : 10'000;
    options.target_table_bytes = random.OneIn(2) ? 1 << 20 : 300;
    Level after;
    const std::string cut = Key(random.Uniform(12));
    const bool in_two = random.OneIn(3);
    for (int part = 0; part < (in_two ? 2 : 1); ++part) {
      MergeOptions of_part = options;
      if (in_two) (part == 0 ? of_part.end : of_part.begin) = cut;
      KindOutputs outputs;
      ASSERT_TRUE(IsOk(outputs.Merge(input, of_part)));
      Level level = outputs.Read();
      after.entries.insert(after.entries.end(), level.entries.begin(), level.entries.end());
      after.tombstones.insert(after.tombstones.end(), level.tombstones.begin(),
                              level.tombstones.end());
    }
    std::vector<SequenceNumber> readers = options.snapshots;
    readers.push_back(kMaxSequenceNumber);
    for (const SequenceNumber reader : readers) {
      ASSERT_EQ(VisibleInLevels({&input, &below}, reader),
                VisibleInLevels({&after, &below}, reader))
          << reader;
    }
    if (!options.deeper.empty() || !options.snapshots.empty()) continue;
    // What is seen is all that is left, as there is nothing below and no snapshot.
    EXPECT_TRUE(after.tombstones.empty());
    if (options.merge_operator == nullptr || options.merged_bytes_max < 1000) continue;
    EXPECT_EQ(VisibleInLevels({&input}, kMaxSequenceNumber).size(), after.entries.size());
  }
}

class MergeKindsCase : public testing::Test {
 protected:
  static TestEntry Entry(SequenceNumber sequence, ValueType type, const std::string& value = "") {
    return {"k", PackTag(sequence, type), value};
  }
  /// What is left, as words.
  std::string Merge(std::vector<TestEntry> entries, MergeOptions options, bool deeper) {
    if (deeper) options.deeper = {{"", "z"}};
    options.merged_bytes_max = 1000;
    KindOutputs outputs;
    EXPECT_TRUE(IsOk(outputs.Merge({std::move(entries), {}}, options)));
    std::string words;
    for (const TestEntry& entry : outputs.Read().entries) {
      const char* const names[] = {"delete", "put", "merge", "", "", "", "", "single"};
      words += std::string(words.empty() ? "" : " ") + names[static_cast<int>(TagType(entry.tag))] +
               "@" + std::to_string(TagSequence(entry.tag)) +
               (entry.value.empty() ? "" : "=" + entry.value);
    }
    return words;
  }
};

TEST_F(MergeKindsCase, SingleDeletions) {
  constexpr auto kPut = ValueType::kValue;
  constexpr auto kSingle = ValueType::kSingleDeletion;
  EXPECT_EQ("", Merge({Entry(2, kSingle), Entry(1, kPut, "a")}, {}, true));
  EXPECT_EQ("single@2", Merge({Entry(2, kSingle)}, {}, true));
  EXPECT_EQ("", Merge({Entry(2, kSingle)}, {}, false));
  // What hides it may be deleted singly, too.
  EXPECT_EQ("put@3=b single@2", Merge({Entry(3, kPut, "b"), Entry(2, kSingle)}, {}, true));
  EXPECT_EQ("put@3=b",
            Merge({Entry(3, kPut, "b"), Entry(2, kSingle), Entry(1, kPut, "a")}, {}, true));
  EXPECT_EQ("single@2",
            Merge({Entry(4, kSingle), Entry(3, kPut, "b"), Entry(2, kSingle)}, {}, true));
  MergeOptions snapshot;
  snapshot.snapshots = {1};
  EXPECT_EQ("single@2 put@0=a", Merge({Entry(2, kSingle), Entry(1, kPut, "a")}, snapshot, false));
}

TEST_F(MergeKindsCase, Operands) {
  constexpr auto kPut = ValueType::kValue;
  constexpr auto kMerge = ValueType::kMerge;
  const auto stringappend = MergeOperators::CreateStringAppendOperator();
  MergeOptions options;
  options.merge_operator = stringappend.get();
  const std::vector<TestEntry> two = {Entry(3, kMerge, "c"), Entry(2, kMerge, "b")};
  std::vector<TestEntry> on_value = two;
  on_value.push_back(Entry(1, kPut, "a"));
  std::vector<TestEntry> on_nothing = two;
  on_nothing.push_back(Entry(1, ValueType::kDeletion));
  EXPECT_EQ("put@3=a,b,c", Merge(on_value, options, true));
  EXPECT_EQ("put@0=a,b,c", Merge(on_value, options, false));
  EXPECT_EQ("put@3=b,c", Merge(on_nothing, options, true));
  EXPECT_EQ("merge@3=b,c", Merge(two, options, true));
  EXPECT_EQ("put@0=b,c", Merge(two, options, false));
  EXPECT_EQ("merge@3=c merge@2=b put@0=a", Merge(on_value, {}, false));
  options.snapshots = {2};
  EXPECT_EQ("merge@3=c put@0=a,b", Merge(on_value, options, false));
}

}  // namespace
}  // namespace nacre
