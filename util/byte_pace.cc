#include "util/byte_pace.h"

#include <algorithm>
#include <chrono>

namespace nacre {

namespace {

constexpr std::chrono::nanoseconds kNap = std::chrono::milliseconds(5);

}  // namespace

BytePace::BytePace(Clock* clock, uint64_t bytes_per_second, const std::atomic<bool>* cancelled)
    : clock_(clock),
      bytes_per_second_(bytes_per_second),
      cancelled_(cancelled),
      start_nanos_(clock->NowNanos()) {}

Status BytePace::Pass(uint64_t bytes) {
  bytes_ += bytes;
  while (true) {
    // Acquire: pairs with the release of the thread that cancels.
    if (cancelled_ != nullptr && cancelled_->load(std::memory_order_acquire)) {
      return Status::Aborted("cancelled");
    }
    if (bytes_per_second_ == 0) return Status::OK();
    const double due = static_cast<double>(bytes_) / static_cast<double>(bytes_per_second_) * 1e9;
    const auto passed = static_cast<double>(clock_->NowNanos() - start_nanos_);
    if (passed >= due) return Status::OK();
    clock_->SleepFor(std::min<std::chrono::nanoseconds>(
        std::chrono::nanoseconds(static_cast<int64_t>(due - passed)), kNap));
  }
}

}  // namespace nacre
