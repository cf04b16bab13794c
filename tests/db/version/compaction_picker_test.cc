// Goal: the picker takes what is due, most urgent first, never a table twice, and always whole
// user keys; a table moves without a rewrite only where a rewrite would drop nothing.
// Method: small trees of real tables with sizes chosen around the limits.

#include "db/version/compaction_picker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/table/table_factory.h"
#include "util/random.h"

namespace nacre {
namespace {

class CompactionPickerTest : public testing::Test {
 protected:
  CompactionPickerTest()
      : factory_(BytewiseComparator()),
        picker_(&current_options_, &factory_.comparator()),
        version_(std::make_shared<const Version>(&factory_.comparator(), 5)) {
    options_.num_levels = 5;
    options_.level0_file_num_compaction_trigger = 4;
    options_.max_bytes_for_level_base = 100'000;
    options_.max_bytes_for_level_multiplier = 10;
  }

  std::shared_ptr<TableHandle> Add(int level, const std::vector<std::string>& keys,
                                   size_t bytes = 0) {
    return Add(level, factory_.MakeOfKeys(keys, bytes));
  }
  std::shared_ptr<TableHandle> Add(int level, const std::shared_ptr<TableHandle>& table) {
    VersionEdit edit;
    edit.added.push_back({level, table});
    version_ = Version::Apply(*version_, edit);
    return table;
  }

  /// Null if there is nothing, or if some of it is marked.
  std::unique_ptr<Compaction> PickRange(int level, int output_level, const Slice* begin,
                                        const Slice* end) {
    std::unique_ptr<Compaction> compaction;
    const auto found = picker_.PickRange(
        version_, {.level = level, .output_level = output_level, .begin = begin, .end = end},
        &compaction);
    EXPECT_EQ(found == CompactionPicker::Found::kPicked, compaction != nullptr);
    return compaction;
  }

  static std::set<uint64_t> Ids(const TableList& tables) {
    std::set<uint64_t> ids;
    for (const auto& table : tables) ids.insert(table->id());
    return ids;
  }

  static size_t Marked(const Version& version) {
    size_t marked = 0;
    for (int level = 0; level < version.num_levels(); ++level) {
      for (const auto& table : version.tables(level)) marked += table->being_compacted;
    }
    return marked;
  }

  TableFactory factory_;
  Options options_;
  std::atomic<const ColumnFamilyOptions*> current_options_{&options_};
  CompactionPicker picker_;
  std::shared_ptr<const Version> version_;
};

TEST_F(CompactionPickerTest, NothingIsDue) {
  EXPECT_EQ(picker_.Pick(version_), nullptr);
  EXPECT_FALSE(picker_.Due(*version_));
  for (const char* key : {"a", "b", "c"}) Add(0, {key});
  Add(1, {"a"}, 50'000);
  Add(4, {"a"}, 1'000'000);  // The last level has no limit.
  EXPECT_FALSE(picker_.Due(*version_));
  EXPECT_EQ(picker_.Pick(version_), nullptr);
  EXPECT_EQ(picker_.PendingBytes(*version_), 0u);
  EXPECT_EQ(Marked(*version_), 0u);
}

TEST_F(CompactionPickerTest, Level0GoesAsAWhole) {
  for (const char* key : {"a", "c", "e", "g"}) Add(0, {key, "m"});
  const auto overlap = Add(1, {"b", "d"});
  Add(1, {"n", "z"});
  ASSERT_TRUE(picker_.Due(*version_));
  EXPECT_GT(picker_.PendingBytes(*version_), 0u);
  const auto compaction = picker_.Pick(version_);
  ASSERT_NE(compaction, nullptr);
  EXPECT_EQ(compaction->level, 0);
  EXPECT_EQ(compaction->output_level, 1);
  EXPECT_EQ(compaction->inputs, version_->level0());
  EXPECT_EQ(compaction->overlap, TableList{overlap});
  EXPECT_FALSE(compaction->IsTrivialMove());
  EXPECT_EQ(compaction->InputBytes(), version_->LevelBytes(0) + overlap->size());
  EXPECT_EQ(Marked(*version_), 5u);

  // While it runs, no other one takes its tables, however due they are.
  EXPECT_TRUE(picker_.Due(*version_));
  EXPECT_EQ(picker_.Pick(version_), nullptr);
  picker_.Release(*compaction);
  EXPECT_EQ(Marked(*version_), 0u);
  EXPECT_NE(picker_.Pick(version_), nullptr);
}

TEST_F(CompactionPickerTest, Level0BySizeNeedsTwoTables) {
  Add(0, {"a"}, 200'000);
  EXPECT_FALSE(picker_.Due(*version_));
  Add(0, {"b"}, 1000);
  EXPECT_TRUE(picker_.Due(*version_));
}

TEST_F(CompactionPickerTest, MostUrgentLevelFirst) {
  Add(1, {"a"}, 120'000);                                      // 1.2 times its limit.
  Add(2, {"a"}, 1'900'000);                                    // 1.9 times.
  for (const char* key : {"a", "b", "c", "d"}) Add(0, {key});  // 1.0 times.
  auto first = picker_.Pick(version_);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->level, 2);
  // The table of level 1 overlaps what the first has taken; level 0 would meet level 1, which
  // is free.
  auto second = picker_.Pick(version_);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->level, 0);
  picker_.Release(*first);
  picker_.Release(*second);
}

TEST_F(CompactionPickerTest, LeastOverlapWithinALevel) {
  Add(1, {"a", "b"}, 60'000);
  const auto cheap = Add(1, {"m", "n"}, 60'000);
  Add(1, {"x", "y"}, 60'000);
  Add(2, {"a", "c"}, 300'000);
  Add(2, {"m", "o"}, 100'000);
  Add(2, {"x", "z"}, 200'000);
  const auto compaction = picker_.Pick(version_);
  ASSERT_NE(compaction, nullptr);
  EXPECT_EQ(compaction->inputs, TableList{cheap});
  EXPECT_EQ(compaction->overlap.size(), 1u);
}

TEST_F(CompactionPickerTest, TwoCompactionsOfOneLevelAreDisjoint) {
  for (const char* key : {"a", "d", "g", "j"}) Add(1, {key, key + std::string("x")}, 60'000);
  for (const char* key : {"b", "e", "h", "k"}) Add(2, {key, key + std::string("x")}, 1000);
  std::vector<std::unique_ptr<Compaction>> running;
  std::set<uint64_t> taken;
  while (auto compaction = picker_.Pick(version_)) {
    for (const auto& tables : {compaction->inputs, compaction->overlap}) {
      for (const uint64_t id : Ids(tables)) EXPECT_TRUE(taken.insert(id).second) << id;
    }
    running.push_back(std::move(compaction));
  }
  EXPECT_GE(running.size(), 2u);
  for (const auto& compaction : running) picker_.Release(*compaction);
  EXPECT_EQ(Marked(*version_), 0u);
}

TEST_F(CompactionPickerTest, VersionsOfAKeyMoveTogether) {
  // The versions of "m" lie in three tables of level 1, those of "p" in two of level 2.
  const auto entry = [](const char* key, SequenceNumber sequence, size_t bytes = 0) {
    return TestEntry{key, PackTag(sequence, ValueType::kValue), std::string(bytes, 'v')};
  };
  const TableList chain = {Add(1, factory_.Make({entry("k", 50), entry("m", 50, 60'000)})),
                           Add(1, factory_.Make({entry("m", 40)})),
                           Add(1, factory_.Make({entry("m", 30), entry("o", 30, 60'000)}))};
  Add(1, {"q", "r"}, 10'000);
  const TableList below = {Add(2, factory_.Make({entry("n", 20), entry("p", 20)})),
                           Add(2, factory_.Make({entry("p", 10), entry("s", 10)}))};
  const auto far = Add(2, {"t", "z"});
  const Slice from("k");
  const Slice to("k");
  const auto compaction = PickRange(1, 2, &from, &to);
  ASSERT_NE(compaction, nullptr);
  EXPECT_EQ(Ids(compaction->inputs), Ids(chain));
  EXPECT_EQ(Ids(compaction->overlap), Ids(below));
  EXPECT_FALSE(far->being_compacted);
}

TEST_F(CompactionPickerTest, TrivialMove) {
  const auto compacted = [&](int level) {
    const auto compaction = PickRange(level, level + 1, nullptr, nullptr);
    if (compaction != nullptr) picker_.Release(*compaction);
    return compaction != nullptr && compaction->IsTrivialMove();
  };
  Add(1, {"a", "b"});
  EXPECT_TRUE(compacted(1)) << "nothing to merge with";
  const auto neighbour = Add(1, {"c", "d"});
  EXPECT_FALSE(compacted(1)) << "two small tables are better merged";
  VersionEdit drop;
  drop.removed = {neighbour};
  version_ = Version::Apply(*version_, drop);
  Add(3, {"a", "z"});
  EXPECT_TRUE(compacted(1)) << "overlap further down does not matter";
  Add(2, {"b", "c"});
  EXPECT_FALSE(compacted(1)) << "overlap in the next level";
}

TEST_F(CompactionPickerTest, DisjointTablesMoveTogether) {
  options_.target_file_size_base = 100'000;
  const size_t size = 50'000;
  const auto moves = [&] {
    const auto compaction = PickRange(0, 1, nullptr, nullptr);
    if (compaction != nullptr) picker_.Release(*compaction);
    return compaction != nullptr && compaction->IsTrivialMove();
  };
  Add(0, {"m", "n"}, size);
  Add(0, {"a", "b"}, size);
  Add(0, {"x", "z"}, size);
  EXPECT_TRUE(moves()) << "in whatever order they were flushed";
  Add(0, {"b", "c"}, size);
  EXPECT_FALSE(moves()) << "two of them hold versions of one key";
}

TEST_F(CompactionPickerTest, TombstonesAtTheBottomAreNotMoved) {
  const auto table = factory_.Make(
      {{"a", PackTag(5, ValueType::kValue), "x"}, {"b", PackTag(6, ValueType::kDeletion), ""}});
  Add(1, table);
  auto compaction = PickRange(1, 2, nullptr, nullptr);
  ASSERT_NE(compaction, nullptr);
  EXPECT_FALSE(compaction->IsTrivialMove()) << "a rewrite would drop the tombstone";
  picker_.Release(*compaction);
  Add(4, {"a", "c"});
  compaction = PickRange(1, 2, nullptr, nullptr);
  ASSERT_NE(compaction, nullptr);
  EXPECT_TRUE(compaction->IsTrivialMove()) << "the tombstone still hides something further down";
  picker_.Release(*compaction);
}

TEST_F(CompactionPickerTest, RangesGoInPieces) {
  const auto key = [](int i) { return "k" + std::to_string(100 + i); };
  for (int i = 0; i < 20; ++i) Add(1, {key(2 * i), key(2 * i + 1)}, 20'000);
  for (int i = 0; i < 20; i += 2) Add(2, {key(2 * i)}, 20'000);
  const std::string first = key(3);
  const std::string last = key(34);
  const Slice begin(first);
  const Slice end(last);
  const TableList wanted = version_->Overlapping(1, &begin, &end);
  CompactionPicker::Range range{
      .level = 1, .output_level = 2, .begin = &begin, .end = &end, .bytes_max = 110'000};
  TableList taken;
  std::string taken_up_to;
  Slice after;
  std::vector<std::unique_ptr<Compaction>> pieces;
  for (;;) {
    std::unique_ptr<Compaction> piece;
    const auto found = picker_.PickRange(version_, range, &piece);
    if (found == CompactionPicker::Found::kNothing) break;
    ASSERT_EQ(found, CompactionPicker::Found::kPicked);
    EXPECT_LE(piece->InputBytes(), range.bytes_max);
    EXPECT_GE(piece->inputs.size(), 2u);
    taken.insert(taken.end(), piece->inputs.begin(), piece->inputs.end());
    taken_up_to = piece->inputs.back()->meta().largest_user_key().ToString();
    after = taken_up_to;
    range.begin = &after;
    range.after_begin = true;
    pieces.push_back(std::move(piece));
  }
  EXPECT_EQ(taken, wanted);
  EXPECT_GE(pieces.size(), 4u);

  // One that is under way is in the way, unless there is something to do before it.
  range.begin = nullptr;
  range.end = nullptr;
  range.after_begin = false;
  std::unique_ptr<Compaction> before;
  ASSERT_EQ(picker_.PickRange(version_, range, &before), CompactionPicker::Found::kPicked);
  EXPECT_EQ(before->inputs, TableList{*version_->tables(1).begin()});
  std::unique_ptr<Compaction> none;
  EXPECT_EQ(picker_.PickRange(version_, range, &none), CompactionPicker::Found::kMarked);
  EXPECT_EQ(none, nullptr);
  picker_.Release(*before);
  for (const auto& piece : pieces) picker_.Release(*piece);

  // A table that is too large by itself is a piece.
  range.bytes_max = 1;
  ASSERT_EQ(picker_.PickRange(version_, range, &before), CompactionPicker::Found::kPicked);
  EXPECT_EQ(before->inputs.size(), 1u);
  picker_.Release(*before);
}

TEST_F(CompactionPickerTest, AllTablesOfALargeLevelGetTheirTurn) {
  // More tables than one choice compares, in a tree that does not change, as if each compaction
  // failed: the choices go round, and each is the best of its part of the level.
  constexpr int kTables = 600;
  const auto key = [](int i) { return "k" + std::to_string(1000 + i); };
  VersionEdit edit;
  for (int i = 0; i < kTables; ++i) {
    TableMeta meta;
    AppendInternalKey(&meta.smallest, key(i), PackTag(9, ValueType::kValue));
    AppendInternalKey(&meta.largest, key(i) + "x", PackTag(9, ValueType::kValue));
    meta.size = meta.records.length = meta.chunk_size = 1000;
    edit.added.push_back({1, factory_.MakeUnread(meta)});
    meta.size = meta.records.length = static_cast<uint64_t>(1000 + (i * 37) % 100);
    edit.added.push_back({2, factory_.MakeUnread(std::move(meta))});
  }
  version_ = Version::Apply(*version_, edit);
  std::set<std::string> chosen;
  for (int i = 0; i < 20; ++i) {
    const auto compaction = picker_.Pick(version_);
    ASSERT_NE(compaction, nullptr);
    ASSERT_EQ(compaction->inputs.size(), 1u);
    ASSERT_EQ(compaction->overlap.size(), 1u);
    EXPECT_LT(compaction->overlap[0]->size(), 1010u) << "there are such ones in each part";
    chosen.insert(compaction->inputs[0]->meta().smallest);
    picker_.Release(*compaction);
  }
  EXPECT_GE(chosen.size(), 5u);

  // They go on beside those that run, until all tables are taken.
  std::vector<std::unique_ptr<Compaction>> running;
  while (auto compaction = picker_.Pick(version_)) running.push_back(std::move(compaction));
  EXPECT_EQ(running.size(), static_cast<size_t>(kTables));
  for (const auto& compaction : running) picker_.Release(*compaction);
}

TEST_F(CompactionPickerTest, RewriteOfALevelHasNoOverlap) {
  const auto table = Add(4, {"a", "b"});
  Add(4, {"c", "d"});
  const Slice begin("a");
  const Slice end("b");
  const auto compaction = PickRange(4, 4, &begin, &end);
  ASSERT_NE(compaction, nullptr);
  EXPECT_EQ(compaction->inputs, TableList{table});
  EXPECT_TRUE(compaction->overlap.empty());
  EXPECT_FALSE(compaction->IsTrivialMove());
  picker_.Release(*compaction);
  EXPECT_EQ(PickRange(2, 3, nullptr, nullptr), nullptr) << "an empty level";
}

TEST_F(CompactionPickerTest, RangeOfLevel0TakesAllOfIt) {
  Add(0, {"a", "b"});
  Add(0, {"x", "z"});
  const Slice begin("a");
  const auto compaction = PickRange(0, 1, &begin, &begin);
  ASSERT_NE(compaction, nullptr);
  EXPECT_EQ(compaction->inputs.size(), 2u) << "older versions must not stay above newer ones";
  picker_.Release(*compaction);
}

TEST_F(CompactionPickerTest, DisabledAutomatically) {
  options_.disable_auto_compactions = true;
  for (const char* key : {"a", "b", "c", "d", "e"}) Add(0, {key});
  EXPECT_FALSE(picker_.Due(*version_));
  EXPECT_EQ(picker_.Pick(version_), nullptr);
  const auto compaction = PickRange(0, 1, nullptr, nullptr);
  EXPECT_NE(compaction, nullptr) << "by hand it goes on";
}

TEST_F(CompactionPickerTest, LimitsOfDeepLevelsAreBounded) {
  options_.max_bytes_for_level_base = uint64_t{1} << 50;
  options_.max_bytes_for_level_multiplier = 1000;
  options_.target_file_size_base = 64 << 10;
  options_.target_file_size_multiplier = 64;
  uint64_t level_limit = 0;
  uint64_t target = 0;
  for (int level = 1; level < 16; ++level) {
    EXPECT_GE(picker_.MaxLevelBytes(level), level_limit);
    EXPECT_GE(picker_.TargetTableBytes(level), target);
    level_limit = picker_.MaxLevelBytes(level);
    target = picker_.TargetTableBytes(level);
    EXPECT_GT(target, 0u);
    EXPECT_LE(target, uint64_t{1} << 40);
  }
}

TEST_F(CompactionPickerTest, RandomTreesComeToRest) {
  // Picks, and pretends to have merged, until nothing is due: every step takes whole keys from
  // tables that are not marked, and the tree always comes to rest.
  Random random(TestSeed(41));
  for (size_t round = Scaled(10); round > 0; --round) {
    version_ = std::make_shared<const Version>(&factory_.comparator(), 5);
    int next = 0;
    const auto key = [](uint64_t i) {
      char text[16];
      std::snprintf(text, sizeof(text), "%06u", static_cast<unsigned>(i));
      return std::string(text);
    };
    for (int step = 0; step < 25; ++step) {
      const uint64_t low = random.Uniform(1000);
      Add(0, {key(low), key(low + random.Uniform(200))}, random.Uniform(60'000));
      for (int i = 0; picker_.Due(*version_); ++i) {
        ASSERT_LT(i, 1000) << "never comes to rest";
        const auto compaction = picker_.Pick(version_);
        ASSERT_NE(compaction, nullptr) << "due, with no table marked";
        ASSERT_EQ(Marked(*version_), compaction->inputs.size() + compaction->overlap.size());
        VersionEdit edit;
        edit.removed = compaction->inputs;
        edit.removed.insert(edit.removed.end(), compaction->overlap.begin(),
                            compaction->overlap.end());
        if (compaction->IsTrivialMove()) {
          for (const auto& table : compaction->inputs) {
            edit.added.push_back({compaction->output_level, table});
          }
        } else {
          const auto [first, last] = UserKeyRange(factory_.comparator(), edit.removed);
          edit.added.push_back(
              {compaction->output_level, factory_.MakeOfKeys({first.ToString(), last.ToString()},
                                                             compaction->InputBytes() / 2)});
        }
        picker_.Release(*compaction);
        version_ = Version::Apply(*version_, edit);
        for (int level = 1; level < 5; ++level) {
          const TableList tables = version_->tables(level).ToList();
          for (size_t t = 1; t < tables.size(); ++t) {
            ASSERT_LT(tables[t - 1]->meta().largest_user_key().compare(
                          tables[t]->meta().smallest_user_key()),
                      0)
                << "level " << level << " overlaps itself";
          }
        }
        ++next;
      }
    }
    EXPECT_GT(next, 5);
  }
}

}  // namespace
}  // namespace nacre
