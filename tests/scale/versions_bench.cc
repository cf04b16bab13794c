// Goal: what the engine does for each flush, compaction, read or second costs what changes, not how
// many tables there are.
//
// Method: trees of 1,650, 16,500 and 165,000 tables of 64 MiB, which are 100 GiB, 1 TiB and 10 TiB,
// with ten times as many tables in each level and keys as db_bench has them. Nothing but a few
// tables around one key can be read.

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/family/family_check.h"
#include "db/family/read_view.h"
#include "db/manifest/manifest_state.h"
#include "db/manifest/table_lineage.h"
#include "db/read/view_reads.h"
#include "db/redundancy/repair_planner.h"
#include "db/version/compaction_picker.h"
#include "db/version/point_tiers.h"
#include "db/version/space_report.h"
#include "db/version/table_changes.h"
#include "db/version/table_metadata.h"
#include "db/version/version.h"
#include "table/ranges/range_cover.h"
#include "tests/support/table/table_factory.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr int kLevels = 7;
constexpr uint64_t kTableBytes = 64 << 20;
constexpr uint64_t kKeys = 1'000'000'000'000;
constexpr uint64_t kNodes = 12;
constexpr uint64_t kRealKey = kKeys / 3;  ///< It is in all levels, in tables that can be read.

std::string Key(uint64_t n) {
  char text[32];
  std::snprintf(text, sizeof(text), "%016llu", static_cast<unsigned long long>(n));
  return text;
}

class Tree {
 public:
  explicit Tree(uint64_t tables) : factory_(BytewiseComparator()) {
    options_.num_levels = kLevels;
    options_.max_bytes_for_level_base = 4 * kTableBytes;
    options_.max_bytes_for_level_multiplier = 8;  // The deeper a level, the more urgent it is.
    VersionEdit edit;
    uint64_t in_level = 4;
    for (int level = 1; tables > 0; ++level, in_level *= 10) {
      const uint64_t count = level + 1 == kLevels ? tables : std::min(in_level, tables);
      tables -= count;
      for (uint64_t i = 0; i < count; ++i) {
        const uint64_t share = kKeys / count;
        uint64_t first = share * i + random_.Uniform(share / 4);
        uint64_t last = share * (i + 1) - 1 - random_.Uniform(share / 4);
        const bool readable = share * i <= kRealKey && kRealKey < share * (i + 1);
        if (readable) {
          first = std::min(first, kRealKey - 1);
          last = std::max(last, kRealKey + 1);
        }
        edit.added.push_back(
            {level, readable ? factory_.MakeOfKeys({Key(first), Key(kRealKey), Key(last)})
                             : Synthetic(Key(first), Key(last))});
      }
    }
    const Version empty(&factory_.comparator(), kLevels);
    version_ = Version::Apply(empty, edit);
  }

  const std::shared_ptr<const Version>& version() const { return version_; }
  CompactionPicker* picker() { return &picker_; }
  TableFactory* factory() { return &factory_; }

  /// What a compaction does: one table goes down into those that it overlaps. Another one comes
  /// into its place, so that the tree stays as large.
  VersionEdit NextEdit() {
    const std::unique_ptr<Compaction> compaction = picker_.Pick(version_);
    VersionEdit edit;
    const auto replace = [&](int level, const std::shared_ptr<TableHandle>& table) {
      edit.removed.push_back(table);
      edit.added.push_back({level, Synthetic(table->meta().smallest_user_key().ToString(),
                                             table->meta().largest_user_key().ToString())});
    };
    for (const auto& table : compaction->inputs) replace(compaction->level, table);
    for (const auto& table : compaction->overlap) replace(compaction->output_level, table);
    picker_.Release(*compaction);
    return edit;
  }
  void Install(std::shared_ptr<const Version> version) { version_ = std::move(version); }

 private:
  std::shared_ptr<TableHandle> Synthetic(const std::string& first, const std::string& last) {
    TableMeta meta;
    meta.placement.redundancy = {.kind = RedundancyKind::kErasureCoded, .data = 4, .parity = 2};
    meta.placement.chunk_size = meta.chunk_size = 256 << 10;
    const uint64_t node = random_.Uniform(kNodes);
    for (uint64_t i = 0; i < 6; ++i) {
      ExtentAddr& extent = meta.placement.fragments.emplace_back();
      extent.start.node = (node + i) % kNodes;
      extent.start.offset = random_.Uniform(uint64_t{1} << 40);
      extent.length = kTableBytes / 4 + (1 << 20);
    }
    AppendInternalKey(&meta.smallest, first, PackTag(7, ValueType::kValue));
    AppendInternalKey(&meta.largest, last, PackTag(7, ValueType::kValue));
    meta.entries = meta.user_keys = 100'000;
    meta.user_bytes = meta.records.length = kTableBytes - (1 << 20);
    meta.size = kTableBytes;
    return factory_.MakeUnread(std::move(meta));
  }

  Random random_{3};
  TableFactory factory_;
  Options options_;
  std::atomic<const ColumnFamilyOptions*> current_options_{&options_};
  CompactionPicker picker_{&current_options_, &factory_.comparator()};
  std::shared_ptr<const Version> version_;
};

/// The tree of each size is made once: one of 165,000 tables takes a while.
Tree* TreeOf(const benchmark::State& state) {
  static auto* const trees = new std::map<int64_t, std::unique_ptr<Tree>>;
  std::unique_ptr<Tree>& tree = (*trees)[state.range(0)];
  if (tree == nullptr) tree = std::make_unique<Tree>(static_cast<uint64_t>(state.range(0)));
  return tree.get();
}

/// The CPU time of this thread, as others may be at work on the machine.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Look at the column "CPU".

/// The engine picks with the mutex held.
void BM_Pick(benchmark::State& state) {
  Tree* const tree = TreeOf(state);
  for (auto _ : state) {
    const auto compaction = tree->picker()->Pick(tree->version());
    tree->picker()->Release(*compaction);
  }
}

/// Times an edit that replaces some twelve tables, with the mutex held; `free_us` is the end of the
/// version before it, which delays no caller.
void BM_Apply(benchmark::State& state) {
  Tree* const tree = TreeOf(state);
  double free_seconds = 0;
  for (auto _ : state) {
    VersionEdit edit = tree->NextEdit();
    double start = CpuSeconds();
    auto version = Version::Apply(*tree->version(), edit);
    state.SetIterationTime(CpuSeconds() - start);
    edit = VersionEdit();
    start = CpuSeconds();
    tree->Install(std::move(version));
    free_seconds += CpuSeconds() - start;
  }
  state.counters["free_us"] = 1e6 * free_seconds / static_cast<double>(state.iterations());
}

/// The engine makes it after a compaction.
void BM_SpaceReport(benchmark::State& state) {
  Tree* const tree = TreeOf(state);
  MakeSpaceReport({tree->version()}, tree->factory()->space(), {}, 1);
  for (auto _ : state) {
    tree->Install(Version::Apply(*tree->version(), tree->NextEdit()));
    const double start = CpuSeconds();
    benchmark::DoNotOptimize(MakeSpaceReport({tree->version()}, tree->factory()->space(), {}, 1));
    state.SetIterationTime(CpuSeconds() - start);
  }
}

void BM_IteratorAndSeek(benchmark::State& state) {
  Tree* const tree = TreeOf(state);
  ReadView view;
  view.comparator = std::make_shared<const InternalKeyComparator>(BytewiseComparator());
  view.version = tree->version();
  std::string target;
  AppendInternalKey(&target, Key(kRealKey), PackTag(kMaxSequenceNumber, kValueTypeForSeek));
  for (auto _ : state) {
    RangeCover cover(*view.comparator, kMaxSequenceNumber);
    const auto iterator = NewViewIterator(view, {}, kMaxSequenceNumber, &cover);
    iterator->Seek(target);
    if (!iterator->Valid()) state.SkipWithError("the key is not there");
  }
}

/// Whether a tombstone may be dropped: for a compaction of a whole upper level.
void BM_DeeperRanges(benchmark::State& state) {
  Tree* const tree = TreeOf(state);
  for (auto _ : state) {
    benchmark::DoNotOptimize(tree->version()->DeeperRanges(1, nullptr, nullptr));
  }
}

/// The lineage of a flush's or a compaction's outputs; `bytes` go into each table.
void BM_Lineage(benchmark::State& state) {
  Tree* const tree = TreeOf(state);
  size_t bytes = 0;
  for (auto _ : state) {
    TableLineage lineage;
    lineage.num_levels = kLevels;
    AddTables({tree->version()}, &lineage);
    bytes = EncodeTableLineage(lineage).size();
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}

/// What decides about stalls, schedules and room, after each flush and compaction.
void BM_Scores(benchmark::State& state) {
  Tree* const tree = TreeOf(state);
  for (auto _ : state) {
    const Version& version = *tree->version();
    benchmark::DoNotOptimize(tree->picker()->Due(version));
    benchmark::DoNotOptimize(tree->picker()->PendingBytes(version));
    benchmark::DoNotOptimize(version.LevelBytes(0) + version.LevelBytes(1));
  }
}

/// The tables that may have one random key.
void BM_FindTables(benchmark::State& state) {
  Tree* const tree = TreeOf(state);
  Random random(5);
  for (auto _ : state) {
    const std::string key = Key(random.Uniform(kKeys));
    const Version& version = *tree->version();
    for (int level = 1; level < version.depth(); ++level) {
      benchmark::DoNotOptimize(version.sorted_level(level).Find(key));
    }
  }
}

/// In which nothing is to be done, once a second, on a thread of its own.
void BM_PlanRepair(benchmark::State& state) {
  Tree* const tree = TreeOf(state);
  const NodeStates nodes{.alive = std::vector<bool>(kNodes, true),
                         .draining = std::vector<bool>(kNodes, false)};
  PlanRepair({tree->version()}, nodes, /*damage_reports=*/0);
  for (auto _ : state) {
    benchmark::DoNotOptimize(PlanRepair({tree->version()}, nodes, /*damage_reports=*/0));
  }
}

/// The same when damage was found somewhere since: the tables of all chunks are asked once.
void BM_PlanRepairAfterDamage(benchmark::State& state) {
  Tree* const tree = TreeOf(state);
  const NodeStates nodes{.alive = std::vector<bool>(kNodes, true),
                         .draining = std::vector<bool>(kNodes, false)};
  uint64_t reports = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(PlanRepair({tree->version()}, nodes, ++reports));
  }
}

/// By the monitor's thread, when a node comes back while another one is lost.
void BM_NeedsLostNodes(benchmark::State& state) {
  Tree* const tree = TreeOf(state);
  NodeStates nodes{.alive = std::vector<bool>(kNodes, true), .draining = {}};
  nodes.alive[kNodes - 1] = false;
  for (auto _ : state) benchmark::DoNotOptimize(NeedsLostNodes({tree->version()}, nodes));
}

/// What GetLiveTablesMetaData tells, off the locks.
void BM_TableMetaData(benchmark::State& state) {
  Tree* const tree = TreeOf(state);
  for (auto _ : state) {
    std::vector<LiveTableMetaData> tables;
    AppendTables(MetaDataOf("default", *tree->version(), *tree->factory()->client()), &tables);
    benchmark::DoNotOptimize(tables);
  }
}

/// The check at an opening with 200 column families.
void BM_CheckFamilies(benchmark::State& state) {
  ManifestState manifest;
  manifest.comparator = BytewiseComparator()->Name();
  manifest.num_levels = kLevels;
  std::vector<ColumnFamilyDescriptor> families = {{kDefaultColumnFamilyName, {}}};
  constexpr uint32_t kFamilies = 200;
  for (uint32_t id = 1; id <= kFamilies; ++id) {
    families.push_back({std::to_string(id), {}});
    manifest.families[id] = {
        .name = families.back().name, .comparator = manifest.comparator, .num_levels = kLevels};
  }
  for (int64_t i = 1; i <= state.range(0); ++i) {
    TableMeta meta;
    meta.family = static_cast<uint32_t>(i) % (kFamilies + 1);
    manifest.tables.emplace(i, std::make_pair(uint32_t{1}, meta));
  }
  for (auto _ : state) {
    if (!CheckFamiliesOf(manifest, families, /*may_miss=*/false).ok()) {
      state.SkipWithError("refused");
    }
  }
}

/// The balancing after a compaction under a budget for indexes. All but its outputs have the tiers
/// that they are to have.
void BM_PointTiers(benchmark::State& state) {
  Tree* const tree = TreeOf(state);
  const auto note_all = [](const Version& version) {
    for (int level = 0; level < version.depth(); ++level) {
      for (const auto& chunk : version.chunks(level)) chunk->NoteTier(PointTier::Kind::kIndex);
    }
  };
  for (auto _ : state) {
    PlanPointTiers({tree->version()}, UINT64_MAX);
    note_all(*tree->version());
    tree->Install(Version::Apply(*tree->version(), tree->NextEdit()));
    const double start = CpuSeconds();
    benchmark::DoNotOptimize(PlanPointTiers({tree->version()}, UINT64_MAX));
    state.SetIterationTime(CpuSeconds() - start);
  }
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(1'650)->Arg(16'500)->Arg(165'000)->Unit(benchmark::kMicrosecond);
}

// These first: an edit may replace a table that can be read.
BENCHMARK(BM_IteratorAndSeek)->Apply(Sizes);
BENCHMARK(BM_FindTables)->Apply(Sizes);
BENCHMARK(BM_Pick)->Apply(Sizes);
BENCHMARK(BM_Scores)->Apply(Sizes);
BENCHMARK(BM_DeeperRanges)->Apply(Sizes);
BENCHMARK(BM_Lineage)->Apply(Sizes);
BENCHMARK(BM_PlanRepair)->Apply(Sizes);
BENCHMARK(BM_PlanRepairAfterDamage)->Apply(Sizes);
BENCHMARK(BM_NeedsLostNodes)->Apply(Sizes);
BENCHMARK(BM_TableMetaData)->Apply(Sizes);
BENCHMARK(BM_CheckFamilies)->Apply(Sizes);
BENCHMARK(BM_Apply)->Apply(Sizes)->UseManualTime()->Iterations(100);
BENCHMARK(BM_PointTiers)->Apply(Sizes)->UseManualTime()->Iterations(20);
BENCHMARK(BM_SpaceReport)->Apply(Sizes)->UseManualTime()->Iterations(20);

}  // namespace
}  // namespace nacre
