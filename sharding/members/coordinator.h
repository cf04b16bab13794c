#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "util/clock.h"

namespace nacre {

/// A small linearizable store with leases, as etcd is: what the members of a keyspace agree by.
/// It says which member should own a shard. The memory nodes' root registers say which one does.
///
/// Failures of all methods: `Unavailable` if the store cannot be reached or has no leader,
/// `TimedOut` after the deadline. Of a `Commit` that fails so it is unknown whether it took place.
///
/// Thread safety: all methods may be called from many threads at once.
class Coordinator {
 public:
  using Lease = int64_t;  ///< 0: none.

  struct Entry {
    std::string key;
    std::string value;
    int64_t changed = 0;  ///< The store's revision by which it got this value; more than 0.
    Lease lease = 0;      ///< It vanishes when the lease ends.
  };

  /// What a Commit does to one key.
  struct Change {
    std::string key;
    /// `Entry::changed` that the key must have; 0: there must be no such key.
    int64_t expected = 0;
    /// None: the key is deleted.
    std::optional<std::string> value{};
    Lease lease = 0;
    /// Only looks whether it is as expected.
    bool only_check = false;
  };

  virtual ~Coordinator() = default;

  /// All entries whose keys begin with `prefix`, in the order of their keys, as of `*revision`.
  virtual Status Read(const std::string& prefix, Deadline deadline, std::vector<Entry>* entries,
                      int64_t* revision) = 0;
  /// Makes all changes in one step, if all keys are as expected; else none, and `*done` is false.
  /// `NotFound` if a lease that is named has ended. Keys are named once.
  virtual Status Commit(const std::vector<Change>& changes, Deadline deadline, bool* done) = 0;
  /// Returns OK once an entry under `prefix` has changed after `revision`, `TimedOut` if none has.
  /// It may return OK without such a change.
  virtual Status AwaitChange(const std::string& prefix, int64_t revision, Deadline deadline) = 0;

  /// A lease that ends `ttl` after it was kept the last time (rounded up to whole seconds, and no
  /// less than the store's least).
  virtual Status GrantLease(std::chrono::milliseconds ttl, Deadline deadline, Lease* lease) = 0;
  /// `NotFound` if it has ended.
  virtual Status KeepLease(Lease lease, Deadline deadline) = 0;
  /// Ends the lease, and deletes its entries. OK if it has ended before.
  virtual Status EndLease(Lease lease, Deadline deadline) = 0;

  /// "etcd 10.0.0.1:2379", for messages.
  virtual const std::string& name() const = 0;
};

/// Makes the coordinator for what follows "SCHEME:" in `ShardedOptions::coordinator`.
using CoordinatorFactory =
    std::function<Status(const std::string& address, std::shared_ptr<Coordinator>* coordinator)>;

/// From here on OpenCoordinator knows `scheme`. A later call for the same scheme replaces it.
void RegisterCoordinator(const std::string& scheme, CoordinatorFactory factory);

/// `uri`: "SCHEME:ADDRESS". `NotSupported` if the scheme is not registered.
Status OpenCoordinator(const std::string& uri, std::shared_ptr<Coordinator>* coordinator);

}  // namespace nacre
