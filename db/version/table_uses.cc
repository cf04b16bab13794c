#include "db/version/table_uses.h"

namespace nacre {

uint32_t TableUses::Add(const std::shared_ptr<const TableMeta>& table) {
  MutexLock lock(&mutex_);
  const uint32_t gap = 1 + static_cast<uint32_t>(random_.Uniform(2 * kLookupsInSample - 1));
  // Without a call of Collect this ends here.
  if (samples_.load(std::memory_order_relaxed) >= 2 * kSamplesInPeriod) return gap;
  samples_.fetch_add(1, std::memory_order_relaxed);
  TableUse& use = uses_[table->id];
  if (use.table == nullptr) use.table = table;
  use.lookups += 1;
  return gap;
}

std::vector<TableUse> TableUses::Collect() {
  MutexLock lock(&mutex_);
  std::vector<TableUse> result;
  result.reserve(uses_.size());
  for (const auto& [id, use] : uses_) result.push_back(use);
  if (samples_.load(std::memory_order_relaxed) < kSamplesInPeriod) return result;
  samples_.store(0, std::memory_order_relaxed);
  for (auto& [id, use] : uses_) use.lookups /= 2;
  std::erase_if(uses_, [](const auto& entry) { return entry.second.lookups < kForgottenBelow; });
  return result;
}

}  // namespace nacre
