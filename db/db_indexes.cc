#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "db/db_impl.h"
#include "util/exceptions.h"
#include "util/log.h"

namespace nacre {

void DBImpl::LoadIndexes() {
  constexpr std::chrono::seconds kRest{1};
  for (;;) {
    auto result = IndexLoader::Result::kSomeFailed;
    CatchAll([&] {
      result = parts_.indexes.LoadAll();
      return Status::OK();
    }).IgnoreError();  // A lack of memory is over at the next attempt, perhaps.
    MutexLock lock(&parts_.state.mutex);
    if (parts_.state.closing.load(std::memory_order_relaxed)) return;
    // Reads need the processors first, then what was replayed can be flushed.
    try {
      parts_.state.MaybeSchedule();
    } catch (...) {
      result = IndexLoader::Result::kSomeFailed;
    }
    if (result == IndexLoader::Result::kNothingToDo) break;
    if (result == IndexLoader::Result::kSomeFailed) parts_.state.changed.WaitFor(kRest);
  }
  CatchAll([this] {
    parts_.context.point_tiers.Start(parts_.context.client->threads());
    parts_.context.point_tiers.Rebalance();
    MutexLock lock(&parts_.state.mutex);
    parts_.open_timeline.EndStep("indexes");
    return Status::OK();
  }).IgnoreError();  // What does not get its tier now gets it after a compaction.
  // This takes its time, and no caller waits for it here.
  parts_.context.epochs.PrepareToReclaim();
}

}  // namespace nacre
