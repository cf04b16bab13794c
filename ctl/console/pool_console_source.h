#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "console/console_source.h"
#include "console/history.h"
#include "ctl/console/pool_events.h"
#include "ctl/top/pool_sampler.h"
#include "pool/pool_client.h"
#include "rdma/diagnosis.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/periodic_task.h"

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

  uint64_t samples() const override { return sampler_.rounds(); }
  std::string PoolJson() const override;
  std::string HistoryJson() const override { return history_.Json(); }
  /// While it is being read for another caller, what was read before.
  std::string LevelsJson() override { return levels_.Get(client_->clock()); }
  /// While another caller has it examined, what was found before.
  std::string DoctorJson() override { return findings_.Get(client_->clock()); }
  Status Carry(const console::Order& order) override;

 private:
  /// A text that takes long to make: one caller at a time makes it, and no other one waits for
  /// that.
  class Kept {
   public:
    /// `json`: as long as none has been made.
    Kept(std::string json, std::function<std::string()> make)
        : make_(std::move(make)), json_(std::move(json)) {}
    std::string Get(Clock* clock) EXCLUDES(mutex_);

   private:
    const std::function<std::string()> make_;
    Mutex mutex_;
    std::string json_ GUARDED_BY(mutex_);
    uint64_t fresh_until_nanos_ GUARDED_BY(mutex_) = 0;
    bool making_ GUARDED_BY(mutex_) = false;
  };

  void Hear(const PoolSample& sample);
  std::string ReadLevels();
  std::string LevelsOf(const pool::KnownDatabase& database);
  /// Looks once whether databases have new owners.
  void LookAtOwners();

  pool::PoolClient* const client_;
  const Examiner examine_;
  console::History history_;
  mutable Mutex events_mutex_;
  PoolEvents events_ GUARDED_BY(events_mutex_){kEventsMax};
  Kept levels_;
  Kept findings_;
  PoolSampler sampler_;  ///< Uses what is above.
  PeriodicTask owners_;
};

}  // namespace nacre::ctl
