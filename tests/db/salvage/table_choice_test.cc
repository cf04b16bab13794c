// Goal: of tables that live and tables that died long ago, those are chosen that say what the
// database last said, whatever was under way when it ended.
// Method: a model of an LSM-tree whose tables are maps, with flushes in parts, compactions side by
// side in several key ranges, moves, jobs that fail and are run again, and owners that crash. Freed
// tables stay until a new table needs their place. At random moments the choice among all that is
// there, and a log of what is beyond it, have to give the model's contents.

#include "db/salvage/table_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {
namespace {

using Kind = TableLineage::Kind;

constexpr int kChoiceKeys = 24;
constexpr uint32_t kLevels = 4;

struct KeyVersion {
  SequenceNumber sequence = 0;
  bool deleted = false;
  uint64_t value = 0;
};
using Records = std::map<int, KeyVersion>;

struct Table {
  SalvageCandidate candidate;
  Records records;
};

/// A flush or a compaction under way.
struct Job {
  TableLineage lineage;
  uint32_t level = 0;
  uint32_t output_level = 0;
  uint64_t manifest_version = 0;
  int begin = 0;  ///< Keys.
  int end = kChoiceKeys;
  std::vector<Records> ranges;  ///< That are still to be written.
  std::vector<uint64_t> outputs;
  bool failed = false;
};

class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed) {}

  void Step() {
    switch (random_.Uniform(10)) {
      case 0:
      case 1:
      case 2:
        return Write();
      case 3:
        return StartFlush();
      case 4:
        return StartCompaction();
      case 5:
        return Move();
      case 6:
        if (random_.OneIn(20)) return Crash();
        if (random_.OneIn(6)) Fail();
        return;
      default:
        return GoOn();
    }
  }

  void Check() {
    std::vector<SalvageCandidate> candidates;
    std::vector<const Table*> tables;
    for (const auto& [id, table] : memory_) {
      candidates.push_back(table.candidate);
      tables.push_back(&table);
    }
    const TableChoice choice = ChooseTables(candidates, states_);
    ASSERT_TRUE(choice.lost.empty());
    // A lookup asks the log, then level by level, the newest run of level 0 first.
    Records found;
    for (const auto& [sequence, update] : log_) {
      if (sequence > choice.flushed) found[update.first] = update.second;
    }
    std::vector<std::pair<uint32_t, size_t>> order;
    for (const auto& [i, level] : choice.chosen) order.emplace_back(level, i);
    std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first < b.first;
      return a.first == 0 && candidates[a.second].meta.manifest_version >
                                 candidates[b.second].meta.manifest_version;
    });
    std::map<std::pair<uint32_t, int>, uint64_t> holders;
    for (const auto& [level, i] : order) {
      for (const auto& [key, version] : tables[i]->records) {
        found.emplace(key, version);
        if (level == 0) continue;
        const bool alone = holders.emplace(std::pair(level, key), candidates[i].meta.id).second;
        ASSERT_TRUE(alone) << "level " << level << " has two tables with key " << key;
      }
    }
    for (int key = 0; key < kChoiceKeys; ++key) {
      const auto expected = contents_.find(key);
      const auto it = found.find(key);
      const bool there = it != found.end() && !it->second.deleted;
      ASSERT_EQ(there, expected != contents_.end()) << "key " << key;
      if (there) {
        ASSERT_EQ(it->second.value, expected->second) << "key " << key;
      }
    }
  }

  size_t dead() const { return memory_.size() - live_.size(); }

 private:
  // ---- Writes and flushes ----

  void Write() {
    const int key = static_cast<int>(random_.Uniform(kChoiceKeys));
    const KeyVersion version{
        .sequence = ++sequence_, .deleted = random_.OneIn(3), .value = random_.Next()};
    memtable_[key] = version;
    log_[version.sequence] = {key, version};
    if (version.deleted) {
      contents_.erase(key);
    } else {
      contents_[key] = version.value;
    }
  }

  void StartFlush() {
    if (flush_.has_value()) return;
    if (immutable_.empty()) {
      if (memtable_.empty()) return;
      immutable_.swap(memtable_);
      boundary_ = sequence_;
    }
    flush_ = NewJob(Kind::kFlush);
    flush_->lineage.through = boundary_;
    Divide(Drop(immutable_, -1), &*flush_);
  }

  // ---- Compactions ----

  void StartCompaction() {
    const auto level = static_cast<uint32_t>(random_.Uniform(kLevels - 1));
    const uint32_t output = random_.OneIn(8) && level > 0 ? level : level + 1;
    std::set<uint64_t> inputs;
    int first = kChoiceKeys;
    int last = -1;
    const auto take = [&](uint64_t id) {
      inputs.insert(id);
      first = std::min(first, memory_.at(id).records.begin()->first);
      last = std::max(last, memory_.at(id).records.rbegin()->first);
    };
    for (const auto& [id, at] : live_) {
      if (at == level && (level == 0 || inputs.empty())) take(id);
    }
    if (inputs.empty()) return;
    for (bool grown = true; grown;) {
      grown = false;
      for (const auto& [id, at] : live_) {
        if ((at != output && at != level) || inputs.contains(id)) continue;
        const Records& records = memory_.at(id).records;
        if (records.rbegin()->first < first || records.begin()->first > last) continue;
        take(id);
        grown = true;
      }
    }
    for (const auto& [number, job] : compactions_) {
      const bool other_keys = job.begin > last || first >= job.end;
      const bool other_levels = job.output_level < level || output < job.level;
      if (!other_keys && !other_levels) return;
    }
    Job job = NewJob(Kind::kCompaction);
    job.level = level;
    job.output_level = output;
    job.begin = first;
    job.end = last + 1;
    job.lineage.inputs.assign(inputs.begin(), inputs.end());
    // The newest version of each key comes first.
    std::vector<uint64_t> order(inputs.begin(), inputs.end());
    std::sort(order.begin(), order.end(), [this](uint64_t a, uint64_t b) {
      if (live_.at(a) != live_.at(b)) return live_.at(a) < live_.at(b);
      return a > b;
    });
    Records merged;
    for (const uint64_t id : order) {
      const Records& records = memory_.at(id).records;
      merged.insert(records.begin(), records.end());
    }
    Divide(Drop(merged, static_cast<int>(output)), &job);
    compactions_[job.lineage.job] = std::move(job);
  }

  /// What a merge into `level` keeps: at the bottom no tombstones, and sequences of 0.
  Records Drop(const Records& records, int level) const {
    std::set<int> deeper;
    for (const auto& [id, at] : live_) {
      if (static_cast<int>(at) <= level) continue;
      for (const auto& [key, version] : memory_.at(id).records) deeper.insert(key);
    }
    Records kept;
    for (const auto& [key, version] : records) {
      if (deeper.contains(key)) {
        kept.emplace(key, version);
      } else if (!version.deleted) {
        kept.emplace(key, KeyVersion{.sequence = 0, .deleted = false, .value = version.value});
      }
    }
    return kept;
  }

  void Move() {
    for (const auto& [id, level] : live_) {
      if (level == 0 || level + 1 == kLevels || !random_.OneIn(3)) continue;
      const Records& records = memory_.at(id).records;
      const auto overlaps = [&](int begin, int end) {
        return records.begin()->first < end && begin <= records.rbegin()->first;
      };
      bool alone = true;
      for (const auto& [other, at] : live_) {
        const Records& there = memory_.at(other).records;
        alone = alone &&
                (at != level + 1 || !overlaps(there.begin()->first, there.rbegin()->first + 1));
      }
      for (const auto& [number, job] : compactions_) {
        alone = alone && !overlaps(job.begin, job.end);
      }
      if (!alone) continue;
      live_[id] = level + 1;
      ++version_;
      return;
    }
  }

  // ---- Jobs ----

  Job NewJob(Kind kind) {
    Job job;
    job.lineage.kind = kind;
    job.lineage.epoch = epoch_;
    job.lineage.job = ++last_job_;
    job.lineage.base_version = version_;
    job.lineage.flushed = flushed_;
    job.lineage.tables = live_;
    job.lineage.num_levels = kLevels;
    job.manifest_version = version_ + 1;
    return job;
  }

  void Divide(const Records& records, Job* job) {
    const int ranges = 1 + static_cast<int>(random_.Uniform(3));
    job->ranges.resize(static_cast<size_t>(ranges));
    job->lineage.ranges = static_cast<uint32_t>(ranges);
    for (const auto& [key, version] : records) {
      job->ranges[static_cast<size_t>(key * ranges / kChoiceKeys)][key] = version;
    }
  }

  /// One more range of a job, or its end.
  void GoOn() {
    if (flush_.has_value() && (compactions_.empty() || random_.OneIn(2))) {
      if (WriteRange(&*flush_)) return;
      if (flush_->failed) return flush_.reset();
      for (const uint64_t id : flush_->outputs) live_[id] = 0;
      flushed_ = flush_->lineage.through;
      ++version_;
      flush_.reset();
      immutable_.clear();
      return;
    }
    if (compactions_.empty()) return;
    auto it = compactions_.begin();
    std::advance(it, static_cast<long>(random_.Uniform(compactions_.size())));
    Job& job = it->second;
    if (WriteRange(&job)) return;
    if (job.failed) {
      compactions_.erase(it);
      return;
    }
    for (const uint64_t id : job.lineage.inputs) Free(id);
    for (const uint64_t id : job.outputs) live_[id] = job.output_level;
    ++version_;
    if (job.outputs.empty()) states_ = {NewJob(Kind::kState).lineage};
    compactions_.erase(it);
  }

  /// False: there is none left.
  bool WriteRange(Job* job) {
    if (job->ranges.empty()) return false;
    const Records records = std::move(job->ranges.back());
    job->ranges.pop_back();
    if (records.empty()) return true;
    // The place of dead ones, which are gone whether or not this table is ever finished.
    while (dead() > 0 && random_.OneIn(2)) {
      auto it = memory_.begin();
      std::advance(it, static_cast<long>(random_.Uniform(memory_.size())));
      if (!live_.contains(it->first) && !Pending(it->first)) memory_.erase(it);
    }
    job->failed = job->failed || random_.OneIn(10);
    if (job->failed) return true;
    Table table;
    table.records = records;
    TableMeta& meta = table.candidate.meta;
    meta.id = ++last_id_;
    meta.level = job->output_level;
    meta.manifest_version = job->manifest_version;
    meta.part = 0;
    meta.last_part = true;
    table.candidate.lineage = job->lineage;
    table.candidate.lineage.range = static_cast<uint32_t>(job->ranges.size());
    job->outputs.push_back(meta.id);
    memory_[meta.id] = std::move(table);
    return true;
  }

  bool Pending(uint64_t id) const {
    const auto has = [id](const Job& job) {
      return std::find(job.outputs.begin(), job.outputs.end(), id) != job.outputs.end();
    };
    return (flush_.has_value() && has(*flush_)) ||
           std::any_of(compactions_.begin(), compactions_.end(),
                       [&](const auto& each) { return has(each.second); });
  }

  void Free(uint64_t id) { live_.erase(id); }

  void Fail() {
    if (random_.OneIn(2)) flush_.reset();
    if (!compactions_.empty()) compactions_.erase(compactions_.begin());
  }

  /// The next owner replays the log.
  void Crash() {
    flush_.reset();
    compactions_.clear();
    immutable_.clear();
    memtable_.clear();
    for (const auto& [sequence, update] : log_) {
      if (sequence > flushed_) memtable_[update.first] = update.second;
    }
    ++epoch_;
    ++version_;
    last_job_ = 0;
  }

  Random random_;
  std::map<int, uint64_t> contents_;
  std::map<uint64_t, Table> memory_;  ///< Keyed by id.
  std::map<uint64_t, uint32_t> live_;
  std::vector<TableLineage> states_;  ///< Recorded; the last one only.
  std::map<SequenceNumber, std::pair<int, KeyVersion>> log_;
  Records memtable_;
  Records immutable_;
  SequenceNumber boundary_ = 0;
  SequenceNumber sequence_ = 0;
  SequenceNumber flushed_ = 0;
  uint64_t epoch_ = 1;
  uint64_t version_ = 1;
  uint64_t last_id_ = 0;
  uint64_t last_job_ = 0;
  std::optional<Job> flush_;
  std::map<uint64_t, Job> compactions_;
};

TEST(TableChoiceTest, GivesWhatTheDatabaseLastSaid) {
  const uint64_t seed = TestSeed(901);
  size_t most_dead = 0;
  for (size_t round = 0; round < Scaled(300); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Model model(seed + round);
    for (int step = 0; step < 600; ++step) {
      model.Step();
      ASSERT_NO_FATAL_FAILURE(model.Check()) << "step " << step;
      most_dead = std::max(most_dead, model.dead());
    }
  }
  EXPECT_GT(most_dead, 5u);
}

}  // namespace
}  // namespace nacre
