#include "db/version/compaction_picker.h"

#include <algorithm>
#include <utility>

namespace nacre {

namespace {

/// How many tables one choice compares.
constexpr size_t kCompared = 128;

uint64_t TotalBytes(const TableList& tables) {
  uint64_t bytes = 0;
  for (const auto& table : tables) bytes += table->size();
  return bytes;
}

bool AnyMarked(const TableList& tables) {
  return std::any_of(tables.begin(), tables.end(),
                     [](const auto& table) { return table->being_compacted.load(); });
}

}  // namespace

uint64_t Compaction::InputBytes() const { return TotalBytes(inputs) + TotalBytes(overlap); }

bool Compaction::IsTrivialMove() const {
  if (level == output_level || !overlap.empty()) return false;
  if (inputs.size() > 1 && InputBytes() < inputs.size() * min_moved_bytes) return false;
  TableList sorted = inputs;
  const InternalKeyComparator& comparator = version->comparator();
  std::sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
    return comparator.Compare(a->meta().smallest, b->meta().smallest) < 0;
  });
  for (size_t i = 1; i < sorted.size(); ++i) {
    // Two tables of level 0 that share but one key may not be in the order of its versions.
    if (comparator.CompareUserKeys(sorted[i - 1]->meta().largest_user_key(),
                                   sorted[i]->meta().smallest_user_key()) >= 0) {
      return false;
    }
  }
  return std::none_of(sorted.begin(), sorted.end(), [&](const auto& table) {
    if (table->meta().tombstones == 0) return false;
    // A rewrite gets rid of tombstones below which there is nothing.
    const Slice begin = table->meta().smallest_user_key();
    const Slice end = table->meta().largest_user_key();
    return !version->AnyBelow(output_level, begin, end);
  });
}

uint64_t CompactionPicker::MaxLevelBytes(int level) const {
  double bytes = static_cast<double>(options().max_bytes_for_level_base);
  for (int i = 1; i < level; ++i) bytes *= options().max_bytes_for_level_multiplier;
  return bytes > 1e18 ? static_cast<uint64_t>(1e18) : static_cast<uint64_t>(bytes);
}

uint64_t CompactionPicker::TargetTableBytes(int level) const {
  constexpr uint64_t kMost = uint64_t{1} << 40;  // The largest base; far below an overflow.
  uint64_t bytes = options().target_file_size_base;
  for (int i = 1; i < level && bytes < kMost; ++i) {
    bytes *= static_cast<uint64_t>(options().target_file_size_multiplier);
  }
  return std::min(bytes, kMost);
}

double CompactionPicker::Score(const Version& version, int level) const {
  if (level == 0) {
    const auto count = static_cast<double>(version.level0_runs());
    const double by_count = count / options().level0_file_num_compaction_trigger;
    const double by_bytes = static_cast<double>(version.LevelBytes(0)) /
                            static_cast<double>(options().max_bytes_for_level_base);
    // Bytes alone make a compaction due only once there is more than one flush to merge.
    return count > 1 ? std::max(by_count, by_bytes) : by_count;
  }
  if (level == version.num_levels() - 1) return 0;
  return static_cast<double>(version.LevelBytes(level)) / static_cast<double>(MaxLevelBytes(level));
}

bool CompactionPicker::Due(const Version& version) const {
  if (options().disable_auto_compactions) return false;
  if (!suggested_.empty()) return true;
  for (int level = 0; level < version.num_levels() - 1; ++level) {
    if (Score(version, level) >= 1) return true;
  }
  return false;
}

uint64_t CompactionPicker::PendingBytes(const Version& version) const {
  uint64_t pending = 0;
  uint64_t carried = 0;  // What the levels above will have pushed down.
  if (Score(version, 0) >= 1) {
    carried = version.LevelBytes(0);
    pending += carried + version.LevelBytes(1);
  }
  for (int level = 1; level < version.num_levels() - 1; ++level) {
    const uint64_t bytes = version.LevelBytes(level) + carried;
    const uint64_t limit = MaxLevelBytes(level);
    carried = bytes > limit ? bytes - limit : 0;
    if (carried == 0) continue;
    const double fanout =
        static_cast<double>(version.LevelBytes(level + 1)) / static_cast<double>(bytes);
    pending += static_cast<uint64_t>(static_cast<double>(carried) * (fanout + 1));
  }
  return pending;
}

std::unique_ptr<Compaction> CompactionPicker::Pick(const std::shared_ptr<const Version>& version) {
  if (options().disable_auto_compactions) return nullptr;
  std::vector<std::pair<double, int>> scores;
  for (int level = 0; level < version->num_levels() - 1; ++level) {
    const double score = Score(*version, level);
    if (score >= 1) scores.emplace_back(score, level);
  }
  std::sort(scores.begin(), scores.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  for (const auto& [score, level] : scores) {
    if (auto compaction = PickLevel(version, level)) return compaction;
  }
  return suggested_.empty() ? nullptr : PickSuggested(version);
}

void CompactionPicker::Suggest(int level, const TableList& tables) {
  for (const auto& table : tables) {
    suggested_.insert_or_assign({level, table->id()}, table->shared_meta());
  }
}

std::unique_ptr<Compaction> CompactionPicker::PickSuggested(
    const std::shared_ptr<const Version>& version) {
  // Those that are being compacted are passed over, a bounded number of times: they are asked for
  // again when a compaction has ended.
  size_t passed_over = 0;
  for (auto next = suggested_.begin(); next != suggested_.end() && passed_over < kCompared;) {
    const auto suggested = next++;
    const int level = suggested->first.first;
    const std::shared_ptr<TableHandle> table =
        level + 1 < version->depth() ? version->Find(level, *suggested->second) : nullptr;
    if (table == nullptr) {
      suggested_.erase(suggested);  // It has been compacted since, or there is nothing below.
      continue;
    }
    auto compaction = std::make_unique<Compaction>();
    compaction->level = level;
    compaction->output_level = level + 1;
    compaction->version = version;
    compaction->inputs = level == 0 ? version->level0() : TableList{table};
    if (!Complete(compaction.get())) {
      ++passed_over;
      continue;
    }
    for (const auto& input : compaction->inputs) suggested_.erase({level, input->id()});
    return compaction;
  }
  return nullptr;
}

std::unique_ptr<Compaction> CompactionPicker::PickLevel(
    const std::shared_ptr<const Version>& version, int level) {
  auto compaction = std::make_unique<Compaction>();
  compaction->level = level;
  compaction->output_level = level + 1;
  compaction->version = version;
  if (level == 0) {
    // Level 0 goes as a whole: its tables overlap one another.
    compaction->inputs = version->level0();
    return Complete(compaction.get()) ? std::move(compaction) : nullptr;
  }
  // If other compactions work on all of these, the next choice goes on behind them.
  constexpr size_t kLookedAtMax = 8 * kCompared;
  const size_t most = std::min(version->CountTables(level), kLookedAtMax);
  for (size_t looked_at = 0; looked_at < most;) {
    if (PickBest(compaction.get(), &looked_at)) return compaction;
  }
  return nullptr;
}

bool CompactionPicker::PickBest(Compaction* compaction, size_t* looked_at) {
  const SortedLevel& level = compaction->version->sorted_level(compaction->level);
  const SortedLevel& next_level = compaction->version->sorted_level(compaction->output_level);
  // All tables of a small level are compared, in their order.
  LevelIterator at = level.Begin();
  const auto from = compare_from_.find(compaction->level);
  if (level.size() > kCompared && from != compare_from_.end()) {
    const Slice key(from->second);
    at = level.Overlapping(&key, nullptr).begin();
  }
  std::vector<std::pair<double, std::shared_ptr<TableHandle>>> order;
  for (size_t i = std::min(level.size(), kCompared); i > 0; --i) {
    if (at == level.End()) at = level.Begin();
    const std::shared_ptr<TableHandle>& table = *at++;
    ++*looked_at;
    if (table->being_compacted) continue;
    const Slice begin = table->meta().smallest_user_key();
    const Slice end = table->meta().largest_user_key();
    const auto overlap =
        static_cast<double>(next_level.BytesOf(next_level.Overlapping(&begin, &end)));
    order.emplace_back(overlap / static_cast<double>(table->size()), table);
  }
  if (at == level.End()) at = level.Begin();
  compare_from_[compaction->level] = (*at)->meta().largest_user_key().ToString();
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return std::any_of(order.begin(), order.end(), [&](const auto& candidate) {
    compaction->inputs = {candidate.second};
    return Complete(compaction);
  });
}

CompactionPicker::Found CompactionPicker::PickRange(const std::shared_ptr<const Version>& version,
                                                    const Range& range,
                                                    std::unique_ptr<Compaction>* compaction) const {
  auto picked = std::make_unique<Compaction>();
  picked->level = range.level;
  picked->output_level = range.output_level;
  picked->version = version;
  if (range.level == 0) {
    const bool any = !version->Overlapping(0, range.begin, range.end).empty();
    if (any) picked->inputs = version->level0();
  } else {
    const SortedLevel& level = version->sorted_level(range.level);
    uint64_t bytes = 0;
    for (const auto& table : level.Overlapping(range.begin, range.end, range.after_begin)) {
      if (table->being_compacted && !picked->inputs.empty()) break;
      bytes += table->size();
      picked->inputs.push_back(table);
      uint64_t overlap_bytes = 0;
      if (range.output_level != range.level) {
        const SortedLevel& output = version->sorted_level(range.output_level);
        const Slice begin = picked->inputs.front()->meta().smallest_user_key();
        const Slice end = table->meta().largest_user_key();
        overlap_bytes = output.BytesOf(output.Overlapping(&begin, &end));
      }
      if (picked->inputs.size() > 1 && bytes + overlap_bytes > range.bytes_max) {
        picked->inputs.pop_back();
        break;
      }
    }
  }
  if (picked->inputs.empty()) return Found::kNothing;
  if (!Complete(picked.get())) return Found::kMarked;
  *compaction = std::move(picked);
  return Found::kPicked;
}

bool CompactionPicker::Complete(Compaction* compaction) const {
  const Version& version = *compaction->version;
  if (compaction->level > 0) ExpandToCleanCut(version, compaction->level, &compaction->inputs);
  compaction->overlap.clear();
  compaction->min_moved_bytes = TargetTableBytes(compaction->output_level) / 4;
  if (compaction->output_level != compaction->level) {
    const auto [begin, end] = UserKeyRange(*comparator_, compaction->inputs);
    compaction->overlap = version.Overlapping(compaction->output_level, &begin, &end);
    if (!compaction->overlap.empty()) {
      ExpandToCleanCut(version, compaction->output_level, &compaction->overlap);
    }
  }
  if (AnyMarked(compaction->inputs) || AnyMarked(compaction->overlap)) return false;
  for (const auto& table : compaction->inputs) table->being_compacted = true;
  for (const auto& table : compaction->overlap) table->being_compacted = true;
  return true;
}

void CompactionPicker::ExpandToCleanCut(const Version& version, int level,
                                        TableList* tables) const {
  for (;;) {
    const auto [begin, end] = UserKeyRange(*comparator_, *tables);
    TableList expanded = version.Overlapping(level, &begin, &end);
    if (expanded.size() == tables->size()) return;
    *tables = std::move(expanded);
  }
}

void CompactionPicker::Release(const Compaction& compaction) const {
  for (const auto& table : compaction.inputs) table->being_compacted = false;
  for (const auto& table : compaction.overlap) table->being_compacted = false;
}

}  // namespace nacre
