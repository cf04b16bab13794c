#include "db/context/owner_lease.h"

#include <utility>

#include "pool/databases.h"
#include "pool/wire/protocol.h"

namespace nacre {

namespace {

using std::chrono::milliseconds;

/// What the coarse clock may be behind, and the nodes' clocks slower.
constexpr milliseconds kMargin{50};
constexpr milliseconds kPeriod = pool::kOwnerLease / 4;
/// A node that takes longer does not hold up the others' answers.
constexpr milliseconds kPatience = pool::kOwnerLease / 4;

}  // namespace

Status OwnerLease::Start() {
  NACRE_RETURN_IF_ERROR(Await());
  // Reads ask for themselves once the lease has run out, and are told why.
  task_.Start(client_->PeriodicOn(&pool::Background::leases), "nacre-owner", kPeriod,
              PeriodicTask::Begin::kWithRest, [this] { Renew().IgnoreError(); });
  return Status::OK();
}

Status OwnerLease::Renew() {
  // The lease begins before the nodes are asked, so it ends before theirs do.
  const uint64_t start = clock_->NowNanos();
  const uint64_t hang_ups = hang_ups_.load();
  if (ended_.load()) return Status::ShutdownInProgress("the database is closed");
  if (client_->databases()->Fenced(database_id_) || fenced_.load()) {
    return Fenced(Status::Fenced("another owner has taken the database over"));
  }
  if (Status confirmed = client_->databases()->ConfirmOwner(database_id_, kPatience);
      !confirmed.ok()) {
    return confirmed.IsFenced() ? Fenced(std::move(confirmed)) : confirmed;
  }
  // What a node says after a connection to it has ended and another was made would count again;
  // but which of the answers are from before is not known.
  if (hang_ups_.load() != hang_ups) {
    return Status::Unavailable("a connection to a node ended while the nodes were asked");
  }
  hang_ups_then_.store(hang_ups, std::memory_order_relaxed);
  Extend(start + Nanos(pool::kOwnerLease - kMargin));
  waiting_since_nanos_.store(0, std::memory_order_relaxed);
  return Status::OK();
}

void OwnerLease::Extend(uint64_t until_nanos) {
  uint64_t known = until_nanos_.load(std::memory_order_relaxed);
  while (known < until_nanos && !until_nanos_.compare_exchange_weak(known, until_nanos)) {
  }
  if (fenced_.load() || ended_.load()) until_nanos_.store(0);
}

void OwnerLease::End() {
  Stop();
  ended_.store(true);
  until_nanos_.store(0);
}

Status OwnerLease::Fenced(Status why) {
  fenced_.store(true);
  until_nanos_.store(0);
  return why;
}

Status OwnerLease::Await() {
  const uint64_t patience = Nanos(client_->options().operation_timeout);
  for (;;) {
    Status status = Renew();
    if (!status.IsUnavailable()) return status;
    // A read that comes when others have waited in vain does not wait as well.
    const uint64_t now = clock_->NowNanos();
    uint64_t since = 0;
    if (waiting_since_nanos_.compare_exchange_strong(since, now, std::memory_order_relaxed)) {
      since = now;
    }
    if (now >= since + patience) return status;
    clock_->SleepFor(milliseconds(1));
  }
}

}  // namespace nacre
