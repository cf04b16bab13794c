#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "db/db_impl.h"
#include "util/exceptions.h"
#include "util/log.h"

namespace nacre {

IndexLoader::Needs DBImpl::IndexNeeds() const {
  return {.name = name_,
          .log = options_.info_log.get(),
          .tier = point_tiers_.first(),
          .threads = static_cast<size_t>(options_.max_background_jobs),
          .closing = &closing_,
          .tables = [this] { return state_.Versions(); }};
}

void DBImpl::LoadIndexes() {
  constexpr std::chrono::seconds kRest{1};
  for (;;) {
    auto result = IndexLoader::Result::kSomeFailed;
    CatchAll([&] {
      result = index_loader_.LoadAll();
      return Status::OK();
    }).IgnoreError();  // A lack of memory is over at the next attempt, perhaps.
    MutexLock lock(&state_.mutex);
    if (closing_.load(std::memory_order_relaxed)) return;
    // Reads need the processors first, then what was replayed can be flushed.
    try {
      state_.MaybeSchedule();
    } catch (...) {
      result = IndexLoader::Result::kSomeFailed;
    }
    if (result == IndexLoader::Result::kNothingToDo) break;
    if (result == IndexLoader::Result::kSomeFailed) changed_.WaitFor(kRest);
  }
  CatchAll([this] {
    point_tiers_.Rebalance();
    MutexLock lock(&state_.mutex);
    open_timeline_.EndStep("indexes");
    return Status::OK();
  }).IgnoreError();            // What does not get its tier now gets it after a compaction.
  epochs_.PrepareToReclaim();  // Takes its time, and nobody has to wait for it here.
}

}  // namespace nacre
