#include <fmt/format.h>

#include <memory>
#include <utility>

#include "ctl/ctl_directions.h"
#include "ctl/fsck.h"
#include "pool/connect/pool_device.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "tests/support/sim/sim_story.h"
#include "util/clock.h"
#include "util/uri.h"

// How a story ends: no faults any more, and everything is looked at.

namespace nacre::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

void Story::Heal() {
  Tell("all faults end");
  cluster_->network().UnblockAll();
  for (const ProcessId process : std::exchange(stopped_, {})) Continue(process);
  for (const ProcessId process : std::exchange(others_, {})) {
    cluster_->KillProcess(process, /*told=*/true);
  }
  StartNodes();
  cluster_->AwaitNodes();
  for (size_t i = 0; i < cluster_->size(); ++i) {
    cluster_->network().SetSlowness(cluster_->process(i), 1);
    cluster_->network().SetTail(cluster_->process(i), 0, std::chrono::nanoseconds(0));
  }
  if (std::exchange(drained_, false)) {
    Await("taking orders back", seconds(60), [this] {
      return WithPool([](pool::PoolClient* client) {
               return ctl::ChangeDirections(
                   client, [](pool::Directions* directions) { directions->draining.clear(); });
             })
          .ok();
    });
  }
  // An owner may have been asked to close when its successor was started without force.
  for (size_t i = 0; i + 1 < owners_.size(); ++i) {
    Owner* const former = owners_[i].get();
    if (!scheduler_->alive(former->process())) continue;
    former->Finish();
    Await("the end of a former owner", seconds(60), [former] { return former->ended(); });
  }
  // One that was about to open it when it was replaced may have replaced its successor in turn.
  const auto lost = [this] { return owner().ended() || owner().fenced(); };
  do {
    Await("an owner", seconds(60), [&] { return owner().opened() || lost(); });
    if (lost()) StartOwner(/*take_over=*/true);
    AwaitOwner();
    const uint64_t before = owner().writes();
    Await("a write", seconds(60), [&] { return owner().writes() > before || lost(); });
  } while (lost());
}

Status Story::WithPool(const std::function<Status(pool::PoolClient*)>& body) {
  Uri pool;
  ParseUri(cluster_->pool_uri(), &pool).IgnoreError();
  std::unique_ptr<rdma::Device> device;
  std::unique_ptr<pool::PoolClient> client;
  pool::PoolClientOptions options;
  options.slab_bytes = 0;
  options.connect_all = false;
  options.operation_timeout = seconds(2);
  NACRE_RETURN_IF_ERROR(pool::OpenPoolDevice(pool, {}, Clock::System(), &device));
  NACRE_RETURN_IF_ERROR(
      pool::PoolClient::Connect(pool, options, device.get(), Clock::System(), &client));
  return body(client.get());
}

ctl::FsckReport Story::Check(bool full) {
  ctl::FsckReport report;
  found_.clear();
  const Status status = WithPool([&](pool::PoolClient* client) {
    report = ctl::Fsck(client, {.database = "db", .full = full});
    for (const ctl::DatabaseHealth& health : report.databases) {
      ctl::DatabaseView view;
      const Status seen = ctl::ViewDatabase(client, "db", &view);
      found_ += fmt::format(
          "{} more nodes may be lost; {} tables of {} bytes, {} segments, {} more bytes in slabs\n"
          "root of {} members, {} manifest copies: {}\n",
          health.spare_nodes, health.tables, health.table_bytes, health.segments,
          health.unreferenced_bytes, view.root.members.size(), health.manifest_copies,
          seen.ToString());
      for (const std::string& remark : health.remarks) found_ += remark + "\n";
    }
    return Status::OK();
  });
  if (!status.ok()) report.failures.push_back(status);
  for (const ctl::Finding& finding : report.findings) found_ += ctl::ToString(finding) + "\n";
  for (const Status& failure : report.failures) found_ += failure.ToString() + "\n";
  return report;
}

void Story::AwaitWhole() {
  Tell("all is to become whole");
  // Without the option seeds tell what they told before.
  const bool scrubbed = flipped_ && options_.many_flips && random_.OneIn(2);
  if (flipped_ && !scrubbed) {
    // A new owner writes log and manifest anew, what is wrong there as well.
    FinishOwner();
    StartOwner(/*take_over=*/false);
  }
  if (flipped_) AwaitOwner();
  int in_a_row = 0;
  uint64_t version = 0;
  Await("wholeness", seconds(120), [&] {
    if (scrubbed) VerifyInOwner();
    const ctl::FsckReport report = Check(/*full=*/false);
    const bool whole = report.failures.empty() && report.databases.size() == 1 &&
                       report.databases[0].spare_nodes >= static_cast<int>(redundancy_.spare);
    in_a_row = whole ? in_a_row + 1 : 0;
    // The last edit that is seen later may not be acknowledged yet.
    if (in_a_row == 1) version = report.databases[0].manifest_version;
    return in_a_row == 3;
  });
  if (version < manifest_version_) {
    scheduler_->Fail(fmt::format("manifest version {} after {}", version, manifest_version_));
  }
  manifest_version_ = version;
  if (std::exchange(flipped_, false)) AwaitSound();
  lost_ = 0;
  disturbed_ = false;
}

void Story::AwaitSound() {
  Await("soundness", seconds(120), [this] {
    VerifyInOwner();
    return Check(/*full=*/true).exit_status() == 0;
  });
}

void Story::VerifyInOwner() {
  InOwner([this] {
    const Status status = owner().database().db->VerifyChecksum();
    if (status.IsCorruption()) scheduler_->Fail("all damage: " + status.ToString());
  });
}

void Story::InOwner(const std::function<void()>& body) {
  bool done = false;
  cluster_->Run(owner().process(), "check", [&] {
    body();
    done = true;
  });
  Await("a check", seconds(60), [&done] { return done; });
}

void Story::FinishOwner() {
  owner().Finish();
  Await("closing", seconds(60), [this] { return owner().ended(); });
  if (owner().fenced()) scheduler_->Fail("the last owner was fenced");
}

void Story::AwaitNoUnlinkedSpace() {
  Await("an account of all space", seconds(60), [this] {
    uint64_t unlinked = 1;
    InOwner([this, &unlinked] {
      // Waits for what is going on, and lets go of what is no longer read.
      if (!owner().database().db->WaitForCompact().ok()) return;
      owner().database().db->GetIntProperty("nacre.space.unlinked-bytes", &unlinked);
    });
    return unlinked == 0;
  });
}

void Story::CheckAll() {
  AwaitWhole();
  owner().Rest();
  Sleep(seconds(1));
  InOwner([this] {
    for (size_t group = 0; group < model_->size(); ++group) {
      Status status;
      // A connection that was cut may show so only now; the next is a new one.
      while (!model_->Read(owner().number(), owner().database(), group, &status)) Sleep(kLook);
    }
  });
  CheckFollowers();
  AwaitNoUnlinkedSpace();
  FinishOwner();
  // The next owner finds the same.
  StartOwner(/*take_over=*/false);
  AwaitOwner();
  owner().Rest();
  InOwner([this] {
    Status status;
    while (!model_->Scan(owner().number(), owner().database(), /*pauses_at=*/0, &status))
      Sleep(kLook);
  });
  FinishOwner();
  const ctl::FsckReport report = Check(/*full=*/true);
  if (report.exit_status() != 0) scheduler_->Fail("in the end: " + found_);
  if (report.databases.front().manifest_version < manifest_version_) {
    scheduler_->Fail("the manifest's version has gone back");
  }
  Destroy();
}

void Story::Destroy() {
  Tell("the database is destroyed");
  for (Follower* const follower : followers_) follower->ExpectDestruction();
  Options options = database_;
  options.pool_uri = cluster_->pool_uri();
  const auto destroy = [this, options](bool* done) {
    const ProcessId process = scheduler_->NewProcess("destroyer");
    cluster_->Run(process, "main", [=, this] {
      // The process that tried before may still seem to be there.
      while (!DestroyDB("db", options).ok()) Sleep(kLook);
      *done = true;
    });
    return process;
  };
  auto* const done = new bool(false);  // This outlives the process that may be killed.
  if (random_.OneIn(2)) {
    const ProcessId process = destroy(done);
    KillSomewhere(process, [=, this] { cluster_->KillProcess(process, /*told=*/true); });
  }
  *done = false;
  destroy(done);
  Await("destruction", seconds(60), [done] { return *done; });
  AwaitFollowersEnd();
  Await("the nodes to be empty", seconds(60), [this] {
    uint64_t leased = 0;
    const Status status = WithPool([&](pool::PoolClient* client) {
      for (int i = 0; i < client->node_count(); ++i) {
        pool::NodeStats stats;
        NACRE_RETURN_IF_ERROR(pool::GetStats(client, static_cast<NodeId>(i), &stats));
        leased += stats.slabs_leased;
      }
      return Status::OK();
    });
    return status.ok() && leased == 0;
  });
}

}  // namespace nacre::sim
