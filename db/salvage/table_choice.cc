#include "db/salvage/table_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace nacre {
namespace {

using Kind = TableLineage::Kind;

/// The outputs of one flush or compaction that are there.
using Outputs = std::vector<size_t>;

class Chooser {
 public:
  Chooser(const std::vector<SalvageCandidate>& candidates, const std::vector<TableLineage>& states)
      : candidates_(candidates), states_(states) {}

  TableChoice Run() {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const TableLineage& lineage = candidates_[i].lineage;
      choice_.last_version = std::max(
          {choice_.last_version, lineage.base_version, candidates_[i].meta.manifest_version});
      choice_.last_table_id = std::max(choice_.last_table_id, candidates_[i].meta.id);
      for (const auto& [id, level] : lineage.tables) {
        choice_.last_table_id = std::max(choice_.last_table_id, id);
      }
      if (choice_.newest == SIZE_MAX || Order(i) > Order(choice_.newest)) choice_.newest = i;
    }
    if (choice_.newest != SIZE_MAX) state_ = &candidates_[choice_.newest].lineage;
    for (size_t i = 0; i < states_.size(); ++i) {
      choice_.last_version = std::max(choice_.last_version, states_[i].base_version);
      for (const auto& [id, level] : states_[i].tables) {
        choice_.last_table_id = std::max(choice_.last_table_id, id);
      }
      if (choice_.record == SIZE_MAX || Order(states_[i]) > Order(states_[choice_.record])) {
        choice_.record = i;
      }
      if (state_ == nullptr || Order(states_[i]) > Order(*state_)) state_ = &states_[i];
    }
    if (state_ == nullptr) return std::move(choice_);
    choice_.num_levels = state_->num_levels;
    choice_.flushed = state_->flushed;
    choice_.comparator = state_->comparator;
    choice_.families = state_->families;
    choice_.next_family = state_->next_family;
    TakeState();
    FindJobs();
    ReplaceInputs();
    AddFlush();
    for (const auto& [id, chosen] : live_) choice_.chosen.insert(chosen);
    return std::move(choice_);
  }

 private:
  static std::pair<uint64_t, uint64_t> Order(const TableLineage& lineage) {
    return {lineage.epoch, lineage.base_version};
  }
  std::pair<uint64_t, uint64_t> Order(size_t i) const { return Order(candidates_[i].lineage); }

  void TakeState() {
    // An id whose table was never part of the database may have been given anew by the next owner.
    std::map<uint64_t, size_t> by_id;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const auto [it, is_new] = by_id.emplace(candidates_[i].meta.id, i);
      if (!is_new && Order(i) > Order(it->second)) it->second = i;
    }
    for (const auto& [id, level] : state_->tables) {
      const auto it = by_id.find(id);
      if (it != by_id.end()) {
        live_[id] = {it->second, level};
      } else {
        missing_.insert(id);
      }
    }
  }

  void FindJobs() {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const TableLineage& lineage = candidates_[i].lineage;
      if (lineage.epoch != state_->epoch || state_->tables.contains(candidates_[i].meta.id)) {
        continue;
      }
      const bool open = lineage.kind == Kind::kFlush
                            ? lineage.through > state_->flushed
                            : std::all_of(lineage.inputs.begin(), lineage.inputs.end(),
                                          [&](uint64_t id) { return state_->tables.contains(id); });
      if (open) (lineage.kind == Kind::kFlush ? flushes_ : compactions_)[lineage.job].push_back(i);
    }
  }

  void ReplaceInputs() {
    std::set<uint64_t> ended;
    for (const uint64_t id : missing_) {
      // A job that failed is run again later, with a higher number.
      const auto job =
          std::find_if(compactions_.rbegin(), compactions_.rend(), [&](const auto& each) {
            const auto& inputs = candidates_[each.second.front()].lineage.inputs;
            return std::find(inputs.begin(), inputs.end(), id) != inputs.end();
          });
      if (job == compactions_.rend()) {
        choice_.lost.push_back(id);
      } else {
        ended.insert(job->first);
      }
    }
    for (const uint64_t number : ended) {
      const Outputs& outputs = compactions_[number];
      const TableLineage& lineage = candidates_[outputs.front()].lineage;
      for (const uint64_t id : lineage.inputs) live_.erase(id);
      for (const size_t i : outputs) {
        live_[candidates_[i].meta.id] = {i, candidates_[i].meta.level};
      }
      choice_.notes.push_back(fmt::format(
          "a compaction of {} tables had ended: the {} that it made stand for them{}",
          lineage.inputs.size(), outputs.size(),
          Whole(outputs) ? "" : "; of some key ranges it left nothing, or they are lost"));
    }
  }

  void AddFlush() {
    if (flushes_.empty()) return;
    // Attempts at one MemTable. The last one that is whole has all that the others have.
    auto flush = std::find_if(flushes_.rbegin(), flushes_.rend(),
                              [&](const auto& each) { return Whole(each.second); });
    const bool whole = flush != flushes_.rend();
    if (!whole) flush = flushes_.rbegin();
    for (const size_t i : flush->second) live_[candidates_[i].meta.id] = {i, 0};
    if (whole) {
      choice_.flushed = candidates_[flush->second.front()].lineage.through;
    } else {
      choice_.notes.push_back(
          fmt::format("the last flush, up to sequence {}, is there in part: the log is to have "
                      "the rest",
                      candidates_[flush->second.front()].lineage.through));
    }
  }

  /// Whether all tables of all key ranges exist. False also if a range gave none.
  bool Whole(const Outputs& outputs) const {
    const uint32_t ranges = candidates_[outputs.front()].lineage.ranges;
    std::map<uint32_t, std::set<uint32_t>> parts;
    std::map<uint32_t, uint32_t> wanted;
    for (const size_t i : outputs) {
      const SalvageCandidate& table = candidates_[i];
      parts[table.lineage.range].insert(table.meta.part);
      if (table.meta.last_part) wanted[table.lineage.range] = table.meta.part + 1;
    }
    if (parts.size() != ranges) return false;
    return std::all_of(parts.begin(), parts.end(), [&](const auto& range) {
      const auto it = wanted.find(range.first);
      return it != wanted.end() && range.second.size() == it->second;
    });
  }

  const std::vector<SalvageCandidate>& candidates_;
  const std::vector<TableLineage>& states_;
  TableChoice choice_;
  const TableLineage* state_ = nullptr;                   ///< S.
  std::map<uint64_t, std::pair<size_t, uint32_t>> live_;  ///< Keyed by id.
  /// Tables that S has and that were not found.
  std::set<uint64_t> missing_;
  std::map<uint64_t, Outputs> compactions_;  ///< Compactions in progress at S; by job.
  std::map<uint64_t, Outputs> flushes_;
};

}  // namespace

TableChoice ChooseTables(const std::vector<SalvageCandidate>& candidates,
                         const std::vector<TableLineage>& states) {
  return Chooser(candidates, states).Run();
}

}  // namespace nacre
