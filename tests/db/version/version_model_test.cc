// Goal: however a version came about, it is what a list of tables for each level would be; it
// shares with the one before it all but what an edit changed, and that one stays as it was. Method:
// thousands of random edits (flushes, compactions that the picker chose, moves, repairs, loads and
// drops of hundreds of tables) of tables without readers, against lists that are filtered and
// sorted anew for each edit; every question that the engine asks, against a search through these
// lists.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/version/compaction_picker.h"
#include "db/version/space_report.h"
#include "db/version/version.h"
#include "tests/support/comparators.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/table/table_factory.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr int kModelLevels = 5;
constexpr uint64_t kModelKeys = 1'000'000;

using Model = std::vector<TableList>;

const BackwardsComparator kBackwards;

class VersionModelTest : public testing::TestWithParam<const Comparator*> {
 protected:
  VersionModelTest()
      : factory_(GetParam()),
        comparator_(factory_.comparator()),
        picker_(&current_options_, &comparator_),
        version_(std::make_shared<const Version>(&comparator_, kModelLevels)),
        model_(kModelLevels) {
    options_.num_levels = kModelLevels;
    options_.level0_file_num_compaction_trigger = 3;
    options_.max_bytes_for_level_base = 40'000;
    options_.max_bytes_for_level_multiplier = 6;
  }

  bool Less(const Slice& a, const Slice& b) const { return comparator_.CompareUserKeys(a, b) < 0; }
  static Slice First(const std::shared_ptr<TableHandle>& table) {
    return table->meta().smallest_user_key();
  }
  static Slice Last(const std::shared_ptr<TableHandle>& table) {
    return table->meta().largest_user_key();
  }

  /// Keys in the comparator's order, or in its opposite.
  std::string Key(uint64_t n) const {
    char text[32];
    std::snprintf(text, sizeof(text), "user%010llu", static_cast<unsigned long long>(n));
    std::string key = text;
    if (GetParam() == &kBackwards) std::reverse(key.begin(), key.end());
    return key;
  }
  std::string RandomKey() { return Key(random_.Uniform(kModelKeys)); }

  /// A table from one key to the other, whichever comes first.
  std::shared_ptr<TableHandle> Table(std::string a, std::string b, uint64_t id = 0,
                                     uint64_t flush = 0) {
    if (Less(b, a)) std::swap(a, b);
    TableMeta meta;
    meta.id = id;
    meta.manifest_version = flush;
    AppendInternalKey(&meta.smallest, a, PackTag(9, ValueType::kValue));
    AppendInternalKey(&meta.largest, b, PackTag(9, ValueType::kValue));
    meta.chunk_size = meta.placement.chunk_size = 4096;
    meta.records.length = 100 + random_.Uniform(2000);
    meta.size = meta.records.length + 100;
    meta.user_bytes = meta.records.length - random_.Uniform(50);
    meta.entries = meta.user_keys = 1 + random_.Uniform(9);
    meta.tombstones = random_.OneIn(10) ? 1 : 0;
    if (random_.OneIn(200)) meta.range_deletions.length = 1;
    ExtentAddr& extent = meta.placement.fragments.emplace_back();
    extent.start.node = random_.Uniform(5);
    extent.length = meta.size + random_.Uniform(5000);
    return factory_.MakeUnread(std::move(meta));
  }

  /// Disjoint tables from one key to the other.
  TableList TablesFromTo(uint64_t begin, uint64_t end, uint64_t count) {
    TableList tables;
    const uint64_t step = (end - begin) / count;
    for (uint64_t i = 0; i < count && step > 4; ++i) {
      const uint64_t first = begin + i * step + random_.Uniform(step / 4);
      const uint64_t last = begin + (i + 1) * step - 1 - random_.Uniform(step / 4);
      tables.push_back(Table(Key(first), Key(last)));
    }
    return tables;
  }

  TableList InModel(int level, const Slice* begin, const Slice* end, bool after = false) const {
    TableList result;
    for (const auto& table : model_[static_cast<size_t>(level)]) {
      if (begin != nullptr && (Less(Last(table), *begin) || (after && Last(table) == *begin))) {
        continue;
      }
      if (end != nullptr && Less(*end, First(table))) continue;
      result.push_back(table);
    }
    return result;
  }

  VersionEdit Flush() {
    VersionEdit edit;
    const uint64_t flush = ++flushes_ + 1'000'000;
    const uint64_t begin = random_.Uniform(kModelKeys / 2);
    const uint64_t end = begin + 1 + random_.Uniform(kModelKeys - begin - 1);
    const uint64_t middle = begin + (end - begin) / 2;
    edit.added.push_back({0, Table(Key(begin), Key(middle), 0, flush)});
    if (middle + 1 < end) edit.added.push_back({0, Table(Key(middle + 1), Key(end), 0, flush)});
    return edit;
  }

  VersionEdit Compact() {
    VersionEdit edit;
    const auto compaction = picker_.Pick(version_);
    if (compaction == nullptr) return edit;
    CheckChoice(*compaction);
    edit.removed = compaction->inputs;
    edit.removed.insert(edit.removed.end(), compaction->overlap.begin(), compaction->overlap.end());
    if (compaction->IsTrivialMove()) {
      for (const auto& table : compaction->inputs) {
        edit.added.push_back({compaction->output_level, table});
      }
    } else {
      const auto [first, last] = UserKeyRange(comparator_, edit.removed);
      uint64_t begin = Number(first);
      uint64_t end = Number(last);
      if (begin > end) std::swap(begin, end);
      const uint64_t count = 1 + random_.Uniform(edit.removed.size());
      for (auto& table : TablesFromTo(begin, end + 1, count)) {
        edit.added.push_back({compaction->output_level, std::move(table)});
      }
    }
    picker_.Release(*compaction);
    return edit;
  }

  uint64_t Number(const Slice& key) const {
    std::string text = key.ToString();
    if (GetParam() == &kBackwards) std::reverse(text.begin(), text.end());
    return std::stoull(text.substr(4));
  }

  void CheckChoice(const Compaction& compaction) {
    const auto [first, last] = UserKeyRange(comparator_, compaction.inputs);
    EXPECT_EQ(compaction.overlap, InModel(compaction.output_level, &first, &last));
    EXPECT_GE(picker_.PendingBytes(*version_), 1u);
    if (compaction.level == 0) {
      EXPECT_EQ(compaction.inputs, model_[0]);
      return;
    }
    EXPECT_EQ(compaction.inputs, InModel(compaction.level, &first, &last)) << "whole keys";
    const TableList& level = model_[static_cast<size_t>(compaction.level)];
    if (level.size() > 100) return;
    const auto ratio = [&](const std::shared_ptr<TableHandle>& table) {
      const Slice begin = First(table);
      const Slice end = Last(table);
      uint64_t bytes = 0;
      for (const auto& other : InModel(compaction.output_level, &begin, &end)) {
        bytes += other->size();
      }
      return static_cast<double>(bytes) / static_cast<double>(table->size());
    };
    for (const auto& table : level) EXPECT_LE(ratio(compaction.inputs[0]), ratio(table));
  }

  /// Hundreds of tables at once into a gap, as a restore or an opening has them.
  VersionEdit Load() {
    VersionEdit edit;
    const int level = 1 + static_cast<int>(random_.Uniform(kModelLevels - 1));
    const uint64_t begin = random_.Uniform(kModelKeys);
    const uint64_t end = std::min(kModelKeys, begin + 1 + random_.Uniform(kModelKeys / 4));
    const std::string a = Key(begin);
    const std::string b = Key(end);
    const bool reversed = Less(b, a);
    const Slice first(reversed ? b : a);
    const Slice last(reversed ? a : b);
    if (!InModel(level, &first, &last).empty()) return edit;
    for (auto& table : TablesFromTo(begin, end, 1 + random_.Uniform(900))) {
      edit.added.push_back({level, std::move(table)});
    }
    return edit;
  }

  VersionEdit Drop() {
    VersionEdit edit;
    const int level = static_cast<int>(random_.Uniform(kModelLevels));
    std::string a = RandomKey();
    std::string b = RandomKey();
    if (Less(b, a)) std::swap(a, b);
    const Slice begin(a);
    const Slice end(b);
    edit.removed = InModel(level, &begin, &end);
    return edit;
  }

  /// The same tables with other handles.
  VersionEdit Repair() {
    VersionEdit edit;
    for (int i = 0; i < 3; ++i) {
      const int level = static_cast<int>(random_.Uniform(kModelLevels));
      const TableList& tables = model_[static_cast<size_t>(level)];
      if (tables.empty()) continue;
      const auto& table = tables[random_.Uniform(tables.size())];
      const bool twice = std::any_of(edit.removed.begin(), edit.removed.end(),
                                     [&](const auto& other) { return other == table; });
      if (twice) continue;
      edit.removed.push_back(table);
      TableMeta meta = table->meta();
      edit.added.push_back({level, factory_.MakeUnread(std::move(meta))});
    }
    return edit;
  }

  void ApplyToModel(const VersionEdit& edit) {
    std::set<uint64_t> removed;
    for (const auto& table : edit.removed) removed.insert(table->id());
    for (size_t level = 0; level < model_.size(); ++level) {
      TableList& tables = model_[level];
      std::erase_if(tables, [&](const auto& table) { return removed.contains(table->id()); });
      for (const auto& [to, table] : edit.added) {
        if (static_cast<size_t>(to) == level) tables.push_back(table);
      }
      std::sort(tables.begin(), tables.end(), [&](const auto& a, const auto& b) {
        if (level == 0 && a->meta().manifest_version != b->meta().manifest_version) {
          return a->meta().manifest_version > b->meta().manifest_version;
        }
        return comparator_.Compare(a->meta().smallest, b->meta().smallest) < 0;
      });
    }
  }

  /// The edit made a few chunks for each table in it, and shares the others.
  void CheckShared(const Version& before, const VersionEdit& edit) {
    std::set<const TableChunk*> old;
    for (int level = 1; level < kModelLevels; ++level) {
      for (const auto& chunk : before.chunks(level)) old.insert(chunk.get());
    }
    size_t fresh = 0;
    for (int level = 1; level < kModelLevels; ++level) {
      const auto chunks = version_->chunks(level);
      for (size_t i = 0; i < chunks.size(); ++i) {
        fresh += old.contains(chunks[i].get()) ? 0 : 1;
        ASSERT_GT(chunks[i]->size(), 0u);
        ASSERT_LE(chunks[i]->size(), SortedLevel::kChunkTablesMax);
        if (i + 1 < chunks.size()) {
          ASSERT_GE(chunks[i]->size(), SortedLevel::kChunkTablesMax / 4) << "not the last one";
        }
      }
    }
    ASSERT_LE(fresh, 2 * (edit.added.size() + edit.removed.size()) + 2 * kModelLevels);
  }

  static void CheckTables(const Version& version, const Model& model) {
    int depth = 0;
    size_t count = 0;
    bool range_deletions = false;
    for (int level = 0; level < kModelLevels; ++level) {
      const TableList& expected = model[static_cast<size_t>(level)];
      ASSERT_EQ(version.tables(level).ToList(), expected) << level;
      ASSERT_EQ(version.tables(level).size(), expected.size());
      ASSERT_EQ(version.CountTables(level), expected.size());
      uint64_t bytes = 0;
      for (const auto& table : expected) {
        bytes += table->size();
        range_deletions |= table->meta().has_range_deletions();
      }
      ASSERT_EQ(version.LevelBytes(level), bytes);
      count += expected.size();
      if (!expected.empty()) depth = level + 1;
    }
    ASSERT_EQ(version.depth(), depth);
    ASSERT_EQ(version.CountTables(), count);
    ASSERT_EQ(version.has_range_deletions(), range_deletions);
    std::set<uint64_t> flushes;
    for (const auto& table : model[0]) flushes.insert(table->meta().manifest_version);
    ASSERT_EQ(version.level0_runs(), static_cast<int>(flushes.size()));
  }

  /// A key that is somewhere, most often an end of a table.
  std::string AnyKey() {
    const TableList& tables = model_[random_.Uniform(kModelLevels)];
    if (tables.empty() || random_.OneIn(4)) return RandomKey();
    const auto& table = tables[random_.Uniform(tables.size())];
    return (random_.OneIn(2) ? First(table) : Last(table)).ToString();
  }

  void CheckQuestions() {
    std::string a = AnyKey();
    std::string b = AnyKey();
    if (Less(b, a)) std::swap(a, b);
    const Slice low(a);
    const Slice high(b);
    const Slice* begin = random_.OneIn(5) ? nullptr : &low;
    const Slice* end = random_.OneIn(5) ? nullptr : &high;
    const bool after = begin != nullptr && random_.OneIn(3);
    for (int level = 0; level < kModelLevels; ++level) {
      ASSERT_EQ(version_->Overlapping(level, begin, end), InModel(level, begin, end));
      if (level == 0) continue;
      const SortedLevel& sorted = version_->sorted_level(level);
      const TableList expected = InModel(level, begin, end, after);
      const TableRange range = sorted.Overlapping(begin, end, after);
      ASSERT_EQ(range.ToList(), expected);
      ASSERT_EQ(sorted.CountOf(range), expected.size());
      uint64_t bytes = 0;
      for (const auto& table : expected) bytes += table->size();
      ASSERT_EQ(sorted.BytesOf(range), bytes);
      const TableList holding = InModel(level, &low, &low);
      ASSERT_EQ(sorted.FindAll(low).ToList(), holding);
      ASSERT_EQ(sorted.Find(low), holding.empty() ? nullptr : holding[0].get());
      std::string internal_key;
      AppendInternalKey(&internal_key, low, PackTag(random_.Uniform(20), ValueType::kValue));
      const TableList& tables = model_[static_cast<size_t>(level)];
      const auto next = std::find_if(tables.begin(), tables.end(), [&](const auto& table) {
        return comparator_.Compare(table->meta().largest, internal_key) >= 0;
      });
      const LevelIterator found = sorted.FirstNotBefore(internal_key);
      ASSERT_EQ(found == sorted.End(), next == tables.end());
      if (next != tables.end()) {
        ASSERT_EQ(*found, *next);
      }
      if (!tables.empty()) {
        const auto& table = tables[random_.Uniform(tables.size())];
        ASSERT_EQ(version_->Find(table->meta()), table);
        ASSERT_EQ(version_->Find(level, table->meta()), table);
        ASSERT_TRUE(version_->Has(level, table));
        ASSERT_FALSE(version_->Has(level - 1, table));
      }
    }
    const int above = static_cast<int>(random_.Uniform(kModelLevels));
    bool any = false;
    for (int level = above + 1; level < kModelLevels; ++level) {
      any = any || !InModel(level, &low, &high).empty();
    }
    ASSERT_EQ(version_->AnyBelow(above, low, high), any);
  }

  void CheckReport() {
    const SpaceReport report = MakeSpaceReport({version_}, factory_.space(), {}, 1);
    uint64_t user_bytes = 0;
    uint64_t lost_bytes = 0;
    uint64_t shadowing_bytes = 0;
    for (int level = 0; level < kModelLevels; ++level) {
      for (const auto& table : model_[static_cast<size_t>(level)]) {
        const TableMeta& meta = table->meta();
        user_bytes += meta.user_bytes;
        lost_bytes += meta.placement.fragments[0].length;  // None of the nodes is there.
        const Slice begin = First(table);
        const Slice end = Last(table);
        bool over = level == 0 && version_->level0_runs() > 1;
        for (int deeper = level + 1; deeper < kModelLevels && !over; ++deeper) {
          over = !InModel(deeper, &begin, &end).empty();
        }
        if (over) shadowing_bytes += meta.user_bytes;
      }
    }
    EXPECT_EQ(report.user_bytes, user_bytes);
    EXPECT_EQ(report.lost_bytes, lost_bytes);
    EXPECT_EQ(report.shadowing_bytes, shadowing_bytes);
  }

  Random random_{TestSeed(43)};
  TableFactory factory_;
  const InternalKeyComparator& comparator_;
  Options options_;
  std::atomic<const ColumnFamilyOptions*> current_options_{&options_};
  CompactionPicker picker_;
  std::shared_ptr<const Version> version_;
  Model model_;
  uint64_t flushes_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Orders, VersionModelTest,
                         testing::Values(BytewiseComparator(), ReverseBytewiseComparator(),
                                         &kBackwards));

TEST_P(VersionModelTest, ThousandsOfEdits) {
  std::deque<std::pair<std::shared_ptr<const Version>, Model>> earlier;
  size_t most_tables = 0;
  const size_t steps = Scaled(500);
  for (size_t step = 0; step < steps; ++step) {
    VersionEdit edit;
    switch (random_.Uniform(8)) {
      case 0:
      case 1:
        edit = Flush();
        break;
      case 2:
        edit = Load();
        break;
      case 3:
        if (random_.OneIn(3)) edit = Drop();
        break;
      case 4:
        edit = Repair();
        break;
      default:
        edit = Compact();
        break;
    }
    const std::shared_ptr<const Version> before = version_;
    version_ = Version::Apply(*before, edit);
    ApplyToModel(edit);
    ASSERT_NO_FATAL_FAILURE(CheckTables(*version_, model_)) << "step " << step;
    ASSERT_NO_FATAL_FAILURE(CheckShared(*before, edit)) << "step " << step;
    ASSERT_NO_FATAL_FAILURE(CheckQuestions()) << "step " << step;
    if (step % 100 == 0) CheckReport();
    most_tables = std::max(most_tables, version_->CountTables());
    if (step % 20 == 0) earlier.emplace_back(version_, model_);
    if (earlier.size() > 10) earlier.pop_front();
    if (HasFailure()) break;
  }
  for (const auto& [version, model] : earlier) CheckTables(*version, model);
  EXPECT_GT(most_tables, SortedLevel::kChunkTablesMax) << "the levels have several chunks";
}

TEST_P(VersionModelTest, DeeperRangesAreBounded) {
  // If there are more tables than there may be ranges, neighbours count as one: all tables are
  // covered, and what lies beyond the first and the last is not.
  VersionEdit edit;
  const TableList tables = TablesFromTo(1000, kModelKeys, 3 * Version::kDeeperRangesMax / 2);
  for (const auto& table : tables) edit.added.push_back({3, table});
  version_ = Version::Apply(*version_, edit);
  const std::vector<KeyRange> ranges = version_->DeeperRanges(1, nullptr, nullptr);
  EXPECT_LE(ranges.size(), Version::kDeeperRangesMax);
  EXPECT_GE(ranges.size(), Version::kDeeperRangesMax / 2);
  for (size_t i = 1; i < ranges.size(); ++i) {
    ASSERT_TRUE(Less(ranges[i - 1].largest, ranges[i].smallest));
  }
  for (const auto& table : tables) {
    const auto range = std::find_if(ranges.begin(), ranges.end(), [&](const KeyRange& each) {
      return !Less(Last(table), each.smallest) && !Less(each.largest, First(table));
    });
    ASSERT_NE(range, ranges.end());
    ASSERT_FALSE(Less(First(table), range->smallest));
    ASSERT_FALSE(Less(range->largest, Last(table)));
  }
  const std::string outside = Key(5);
  EXPECT_TRUE(std::none_of(ranges.begin(), ranges.end(), [&](const KeyRange& range) {
    return !Less(outside, range.smallest) && !Less(range.largest, outside);
  }));
}

}  // namespace
}  // namespace nacre
