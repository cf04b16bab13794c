#include "db/wal/log_supply.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "pool/connect/fabric.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"

namespace nacre {
namespace {

/// How often the task looks whether the spare's nodes are still there.
constexpr std::chrono::milliseconds kLookInterval{100};
/// Segments in a row whose nodes cannot be reached, though the space took them for alive.
constexpr int kMaxAttempts = 8;
/// After so many, nodes are waited for that have become slow since they were chosen: where all are
/// by turns, none would do.
constexpr int kHastyAttempts = 4;

}  // namespace

LogSupply::LogSupply(pool::PoolClient* client, LogSpace* space, uint64_t first_number,
                     uint64_t first_bytes, uint64_t bytes, Logger* log)
    : client_(client),
      space_(space),
      most_bytes_(bytes),
      log_(log),
      next_number_(std::max<uint64_t>(1, first_number)),
      bytes_(std::min(first_bytes, bytes)),
      wanted_bytes_(bytes_) {
  task_.Start({client->threads()}, "nacre-log", kLookInterval, PeriodicTask::Begin::kWithWork,
              [this]() noexcept { Look(); });
}

LogSupply::~LogSupply() {
  Stop();
  task_.Stop();
}

void LogSupply::Stop() {
  MutexLock lock(&mutex_);
  stop_ = true;
  wanted_bytes_ = 0;
  DropSpare();
  changed_.SignalAll();
  while (preparing_) changed_.Wait();
}

Status LogSupply::Take(uint64_t bytes, PreparedSegment* prepared) {
  MutexLock lock(&mutex_);
  if (spare_.extent != nullptr && (!Usable(spare_) || spare_.extent->length() < bytes)) {
    DropSpare();
  }
  while (spare_.extent == nullptr || spare_.extent->length() < bytes) {
    if (stop_) return Status::ShutdownInProgress("the log is closed");
    wanted_bytes_ = std::max(bytes, bytes_);
    const uint64_t before = attempts_;
    task_.Wake();
    while (attempts_ == before && !stop_) changed_.Wait();
    // An attempt that was under way before may have made one that is too small.
    if (!failure_.ok()) return failure_;
    if (spare_.extent != nullptr && spare_.extent->length() < bytes) DropSpare();
  }
  *prepared = std::move(spare_);
  spare_ = PreparedSegment();
  bytes_ = std::min(most_bytes_, 2 * bytes_);
  wanted_bytes_ = bytes_;
  task_.Wake();
  return Status::OK();
}

void LogSupply::StartOver(uint64_t bytes) {
  MutexLock lock(&mutex_);
  while (preparing_) changed_.Wait();
  DropSpare();
  bytes_ = std::min(bytes, most_bytes_);
  wanted_bytes_ = bytes_;
  const uint64_t before = attempts_;
  task_.Wake();
  while (attempts_ == before && !stop_) changed_.Wait();
}

void LogSupply::GiveLane(std::unique_ptr<pool::Lane> lane) {
  MutexLock lock(&mutex_);
  if (lane != nullptr && lane_ == nullptr) lane_ = std::move(lane);
}

std::vector<LogSegment> LogSupply::TakeUnused() {
  MutexLock lock(&mutex_);
  return std::exchange(unused_, {});
}

bool LogSupply::HasManyUnused() {
  MutexLock lock(&mutex_);
  return ManyUnused();
}

bool LogSupply::LeaveNodes(const std::function<bool(NodeId)>& leave) {
  MutexLock lock(&mutex_);
  if (spare_.extent != nullptr && HasCopyOn(spare_.segment, leave)) {
    DropSpare();
    wanted_bytes_ = bytes_;
    task_.Wake();
  }
  return std::any_of(unused_.begin(), unused_.end(),
                     [&](const LogSegment& segment) { return HasCopyOn(segment, leave); });
}

bool LogSupply::Usable(const PreparedSegment& prepared) const {
  return std::all_of(prepared.segment.copies.begin(), prepared.segment.copies.end(),
                     [this](const ExtentAddr& copy) { return client_->alive(copy.start.node); }) &&
         !prepared.extent->BecameSlow();
}

void LogSupply::DropSpare() {
  if (spare_.extent == nullptr) return;
  unused_.push_back(std::move(spare_.segment));
  spare_ = PreparedSegment();
}

void LogSupply::Look() {
  MutexLock lock(&mutex_);
  if (!stop_ && spare_.extent != nullptr && !ManyUnused() && !Usable(spare_)) {
    DropSpare();
    wanted_bytes_ = bytes_;
  }
  while (!stop_ && wanted_bytes_ != 0 && spare_.extent == nullptr) {
    const uint64_t bytes = std::exchange(wanted_bytes_, 0);
    PreparedSegment prepared;
    Status s;
    preparing_ = true;
    {
      MutexUnlock unlock(&mutex_);
      s = CatchAll([&] {
        Status done = Prepare(bytes, &prepared);
        if (!done.ok()) Log(log_, LogLevel::kWarn, "no segment for the log: {}", done.ToString());
        return done;
      });
    }
    preparing_ = false;
    if (s.ok()) spare_ = std::move(prepared);
    if (stop_) DropSpare();
    failure_ = std::move(s);
    ++attempts_;
    changed_.SignalAll();
  }
}

Status LogSupply::Prepare(uint64_t bytes, PreparedSegment* prepared) {
  std::unique_ptr<pool::Lane> lane;
  {
    MutexLock lock(&mutex_);
    lane = std::move(lane_);
  }
  Status s;
  for (int i = 0; i < kMaxAttempts; ++i) {
    const uint64_t number = next_number_++;
    const uint64_t chosen =
        i < kHastyAttempts ? client_->fabric()->pace.changes() : pool::MirroredExtent::kChosenNow;
    NACRE_RETURN_IF_ERROR(space_->NewSegment(number, bytes, &prepared->segment));
    prepared->segment.number = number;
    s = pool::MirroredExtent::Open(client_->fabric(), prepared->segment.copies, &lane,
                                   &prepared->extent, chosen);
    if (s.ok() && prepared->extent->length() < bytes) {
      s = Status::InvalidArgument("a segment that is shorter than was asked for");
    }
    NACRE_POINT("log.segment-recorded");
    if (s.ok()) return Status::OK();
    prepared->extent.reset();
    MutexLock lock(&mutex_);
    unused_.push_back(std::move(prepared->segment));
    if (stop_ || !s.IsUnavailable()) break;
  }
  return s;
}

}  // namespace nacre
