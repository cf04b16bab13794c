#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "nacre/status.h"
#include "pool/pool_client.h"
#include "util/clock.h"
#include "util/threads/periodic_task.h"

namespace nacre {

/// Whether this process may still answer reads of a database: an owner that was stopped, and taken
/// over from meanwhile, must not answer out of its MemTables when it goes on. A thread has the
/// nodes confirm four times in each lease that there is no other owner; a new owner waits until the
/// last lease has run out (pool::kOwnerLease). Writes need no lease: they are not acknowledged
/// before nodes have taken them that would refuse. A node whose connection to this process was
/// ended by this side lets others in at once, so the lease is over with each connection that this
/// process ends, and begins anew when the nodes have been asked again.
///
/// While too few nodes answer, reads wait until that has lasted for as long as an operation may
/// take, and then answer `Unavailable`: a successor may be at work where this owner cannot see it.
///
/// Thread safety: Check and Renew from any thread; Start and Stop from one.
class OwnerLease {
 public:
  /// `clock` goes on while the host sleeps (util/boot_clock.h).
  OwnerLease(pool::PoolClient* client, uint64_t database_id, Clock* clock)
      : client_(client), clock_(clock), database_id_(database_id), hang_ups_(client->hang_ups()) {}
  ~OwnerLease() { Stop(); }
  OwnerLease(const OwnerLease&) = delete;
  OwnerLease& operator=(const OwnerLease&) = delete;

  /// Has the first lease when this returns OK.
  Status Start();
  void Stop() { task_.Stop(); }
  /// Ends the lease for good: the database is closed here, and Check answers `ShutdownInProgress`.
  void End();

  /// OK as long as the lease lasts, and when it could be renewed; else `Fenced`, or `Unavailable`
  /// naming nodes. Three relaxed loads and a coarse clock as a rule.
  Status Check() {
    if (Lasts()) [[likely]]
      return Status::OK();
    return Await();
  }
  /// Whether Check would answer at once that all is well.
  bool Lasts() const {
    return clock_->CoarseNanos() < until_nanos_.load(std::memory_order_relaxed) &&
           hang_ups_.load(std::memory_order_relaxed) ==
               hang_ups_then_.load(std::memory_order_relaxed);
  }
  /// Asks now. `Fenced` is final, and ends the lease at once.
  Status Renew();

 private:
  Status Await();
  Status Fenced(Status why);
  /// The lease lasts until then at least, unless it was ended.
  void Extend(uint64_t until_nanos);

  pool::PoolClient* const client_;
  Clock* const clock_;
  const uint64_t database_id_;
  const std::atomic<uint64_t>& hang_ups_;  ///< The client's.
  std::atomic<uint64_t> until_nanos_{0};
  /// What hang_ups_ was before the nodes were asked. Stored before until_nanos_: a later time with
  /// an earlier count renews once too often, an earlier time with a later count is within the lease
  /// that has just been confirmed.
  std::atomic<uint64_t> hang_ups_then_{0};
  /// There is another owner, or the database is closed here. Sequentially consistent with
  /// until_nanos_ where either is written: a thread that extends the lease reads these afterwards,
  /// one that ends it has set one of these before.
  std::atomic<bool> fenced_{false};
  std::atomic<bool> ended_{false};
  std::atomic<uint64_t> waiting_since_nanos_{0};  ///< 0: no read waits for a lease.
  PeriodicTask task_;
};

}  // namespace nacre
