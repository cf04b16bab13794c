#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "console/console_source.h"
#include "console/history.h"
#include "ctl/console/pool_events.h"
#include "ctl/top/pool_sampler.h"
#include "pool/pool_client.h"
#include "rdma/diagnosis.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre::ctl {

/// What the console shows of a pool: samples that a thread takes again and again, and what is read
/// or examined when it is asked for.
///
/// Thread safety: all methods may be called from many threads at once.
class PoolConsoleSource : public console::ConsoleSource {
 public:
  /// How many samples the figures over time reach back.
  static constexpr size_t kHistory = 900;
  static constexpr size_t kEventsMax = 200;
  /// What was read of levels, or examined, is good for so long.
  static constexpr std::chrono::seconds kFresh{3};
  /// Levels are read of so many databases, the first by name.
  static constexpr size_t kDatabasesMax = 64;

  using Examiner = std::function<std::vector<rdma::Finding>()>;

  /// `client` outlives this; `examine` is what the doctor does, one call at a time. `interval` lies
  /// between two samples.
  PoolConsoleSource(pool::PoolClient* client, std::chrono::milliseconds interval, Examiner examine);
  ~PoolConsoleSource() override;

  uint64_t samples() const override { return sampler_.rounds(); }
  std::string PoolJson() const override;
  std::string HistoryJson() const override { return history_.Json(); }
  std::string LevelsJson() override EXCLUDES(levels_mutex_);
  std::string DoctorJson() override EXCLUDES(doctor_mutex_);
  Status Carry(const console::Order& order) override;

 private:
  /// A text, and when it was made.
  struct Kept {
    std::string json;
    uint64_t made_at_nanos = 0;
  };

  void Hear(const PoolSample& sample);
  bool IsFresh(const Kept& kept) const;
  std::string LevelsOf(const pool::KnownDatabase& database);
  void WatchOwners();

  pool::PoolClient* const client_;
  const Examiner examine_;
  console::History history_;
  mutable Mutex events_mutex_;
  PoolEvents events_ GUARDED_BY(events_mutex_){kEventsMax};
  Mutex levels_mutex_;
  Kept levels_ GUARDED_BY(levels_mutex_);
  Mutex doctor_mutex_;
  Kept findings_ GUARDED_BY(doctor_mutex_);
  Mutex end_mutex_;
  CondVar ended_{&end_mutex_};
  bool ending_ GUARDED_BY(end_mutex_) = false;
  PoolSampler sampler_;  ///< Uses what is above.
  Thread owners_;
};

}  // namespace nacre::ctl
