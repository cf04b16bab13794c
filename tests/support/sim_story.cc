#include "tests/support/sim_story.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ctl/database_view.h"
#include "ctl/fsck.h"
#include "memnode/pool_client.h"
#include "memnode/pool_device.h"
#include "util/clock.h"
#include "util/uri.h"

namespace nacre::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kGroups = 60;
constexpr milliseconds kLook{100};
/// A cut that connections outlive.
constexpr uint64_t kShortCutMillis = 300;

/// One more than the fragments of a table; and a new owner needs more than half of the nodes.
size_t NodesFor(size_t fragments, size_t spare) { return std::max(fragments, 2 * spare) + 1; }

}  // namespace

const Story::Redundancy Story::kRedundancies[] = {
    {"rep(2)", 2, 1}, {"rep(3)", 3, 2}, {"rs(2,1)", 3, 1}, {"rs(2,2)", 4, 2}};

Story::Story(Scheduler* scheduler, uint64_t seed)
    : scheduler_(scheduler),
      random_(seed),
      redundancy_(kRedundancies[random_.Uniform(std::size(kRedundancies))]),
      // These live until the simulation's process ends, as what was killed still refers to them.
      cluster_(std::make_unique<Cluster>(
                   scheduler,
                   ClusterOptions{.nodes = NodesFor(redundancy_.fragments, redundancy_.spare) +
                                           random_.Uniform(2)})
                   .release()),
      model_(std::make_unique<Model>(scheduler, kGroups).release()) {}

std::string Story::Run() {
  Tell(fmt::format("{} nodes, {}", cluster_->size(), redundancy_.name));
  StartOwner(/*take_over=*/false);
  AwaitOwner();
  const uint64_t acts = 4 + random_.Uniform(8);
  for (uint64_t i = 0; i < acts; ++i) {
    Sleep(milliseconds(random_.Uniform(random_.OneIn(3) ? 2000 : 200)));
    Act();
  }
  Heal();
  CheckAll();
  return fmt::format("{}, {} owners, {} nodes killed, {} cuts; {} writes, {} unresolved, {} reads",
                     redundancy_.name, owners_.size(), node_kills_, cuts_, model_->acknowledged(),
                     model_->unresolved(), model_->reads());
}

void Story::Act() {
  switch (random_.Uniform(12)) {
    case 0:
    case 1:
      return KillNode();
    case 2:
      return StartNodes();
    case 3:
      return SlowNode();
    case 4:
    case 5:
      return CutOff();
    case 6:
      return CutOffOwner();
    case 7:
      return KillOwner();
    case 8:
      return StopOwner();
    case 9:
      return ReplaceOwner();
    case 10:
      return CloseOwner();
    default:
      Heal();
      return AwaitWhole();
  }
}

void Story::Await(const char* what, seconds patience, const std::function<bool()>& done) {
  const uint64_t end =
      scheduler_->TrueNanos() + static_cast<uint64_t>(std::chrono::nanoseconds(patience).count());
  while (!done()) {
    if (scheduler_->TrueNanos() > end) {
      Check(/*full=*/false);
      scheduler_->Fail(fmt::format("{}: not within {} s; the owner's last failure: {}; {}", what,
                                   patience.count(), owner().last_failure().ToString(), found_));
    }
    Sleep(kLook);
  }
}

// ---- Owners -------------------------------------------------------------------------------------

void Story::StartOwner(bool take_over) {
  OwnerOptions options;
  options.number = static_cast<uint32_t>(owners_.size() + 1);
  options.first = owners_.empty();
  options.take_over = take_over;
  options.seed = random_.Next();
  options.database = cluster_->DatabaseOptions();
  options.database.redundancy = redundancy_.name;
  options.database.operation_timeout = seconds(2);
  Tell(fmt::format("owner {} starts{}", options.number, take_over ? " and takes over" : ""));
  owners_.push_back(std::make_unique<Owner>(cluster_, model_, options));
}

void Story::AwaitOwner() {
  Await("opening", seconds(60), [this] { return owner().opened(); });
}

void Story::KillOwner() {
  const bool told = random_.OneIn(2);
  Tell(fmt::format("owner {} is killed{}", owner().number(), told ? "" : " with its machine"));
  cluster_->KillProcess(owner().process(), told);
  Sleep(milliseconds(random_.Uniform(500)));
  StartOwner(/*take_over=*/random_.OneIn(3));
}

void Story::StopOwner() {
  Tell(fmt::format("owner {} is stopped", owner().number()));
  const ProcessId process = owner().process();
  scheduler_->Stop(process);
  stopped_.push_back(process);
  Sleep(milliseconds(random_.Uniform(2000)));
  if (random_.OneIn(3)) {
    stopped_.pop_back();
    scheduler_->Continue(process);
    return;
  }
  StartOwner(/*take_over=*/true);
}

void Story::ReplaceOwner() { StartOwner(/*take_over=*/true); }

void Story::CloseOwner() {
  Owner* const closing = &owner();
  Tell(fmt::format("owner {} is to close", closing->number()));
  closing->Finish();
  if (random_.OneIn(2)) Sleep(milliseconds(random_.Uniform(5000)));
  StartOwner(/*take_over=*/!closing->ended() && random_.OneIn(2));
}

// ---- Nodes --------------------------------------------------------------------------------------

void Story::KillNode() {
  if (lost_ == redundancy_.spare) return;
  const size_t i = random_.Uniform(cluster_->size());
  if (!cluster_->running(i)) return;
  const bool told = random_.OneIn(2);
  Tell(fmt::format("node {} is killed{}", i, told ? "" : " with its machine"));
  cluster_->KillNode(i, told);
  ++lost_;
  ++node_kills_;
  if (random_.OneIn(2)) return;
  Sleep(milliseconds(random_.Uniform(1500)));
  cluster_->StartNode(i);
}

void Story::StartNodes() {
  for (size_t i = 0; i < cluster_->size(); ++i) {
    if (cluster_->running(i)) continue;
    Tell(fmt::format("node {} starts", i));
    cluster_->StartNode(i);
  }
}

void Story::SlowNode() {
  const size_t i = random_.Uniform(cluster_->size());
  const uint64_t factor = uint64_t{1} << random_.Uniform(11);
  Tell(fmt::format("node {} is {} times as slow", i, factor));
  cluster_->network().SetSlowness(cluster_->process(i), factor);
}

// ---- The network --------------------------------------------------------------------------------

void Story::CutOff() {
  const ProcessId a = cluster_->process(random_.Uniform(cluster_->size()));
  const ProcessId b =
      random_.OneIn(2) ? owner().process() : cluster_->process(random_.Uniform(cluster_->size()));
  if (a == b) return;
  ++cuts_;
  const uint64_t ways = 1 + random_.Uniform(3);
  uint64_t millis = random_.Uniform(random_.OneIn(2) ? kShortCutMillis : 5000);
  // An owner that has lost sight of a node goes on with the others, and so with less to lose.
  if (b == owner().process() && millis > kShortCutMillis) {
    const bool spare = lost_ < redundancy_.spare;
    if (spare) ++lost_;
    if (!spare) millis %= kShortCutMillis;
  }
  Tell(fmt::format("{} {} {} for {} ms", scheduler_->NameOf(a),
                   ways == 1   ? "->"
                   : ways == 2 ? "<-"
                               : "<->",
                   scheduler_->NameOf(b), millis));
  rdma::SimNetwork* const network = &cluster_->network();
  if ((ways & 1) != 0) network->Block(a, b);
  if ((ways & 2) != 0) network->Block(b, a);
  scheduler_->At(scheduler_->TrueNanos() + millis * 1'000'000, [network, a, b] {
    network->Unblock(a, b);
    network->Unblock(b, a);
  });
}

void Story::CutOffOwner() {
  ++cuts_;
  const ProcessId cut = owner().process();
  uint64_t millis = random_.Uniform(4000);
  // Of the nodes, some come back to it before the others.
  if (millis > kShortCutMillis) {
    const bool spare = lost_ == 0;
    if (spare) lost_ = redundancy_.spare;
    if (!spare) millis %= kShortCutMillis;
  }
  Tell(fmt::format("owner {} is cut off for {} ms", owner().number(), millis));
  rdma::SimNetwork* const network = &cluster_->network();
  std::vector<ProcessId> nodes;
  for (size_t i = 0; i < cluster_->size(); ++i) nodes.push_back(cluster_->process(i));
  for (const ProcessId node : nodes) {
    network->Block(cut, node);
    network->Block(node, cut);
  }
  scheduler_->At(scheduler_->TrueNanos() + millis * 1'000'000, [network, cut, nodes] {
    for (const ProcessId node : nodes) {
      network->Unblock(cut, node);
      network->Unblock(node, cut);
    }
  });
  if (random_.OneIn(2)) return;
  Sleep(milliseconds(random_.Uniform(1000)));
  StartOwner(/*take_over=*/random_.OneIn(2));
}

// ---- The end ------------------------------------------------------------------------------------

void Story::Heal() {
  Tell("all faults end");
  cluster_->network().UnblockAll();
  StartNodes();
  cluster_->AwaitNodes();
  for (size_t i = 0; i < cluster_->size(); ++i) {
    cluster_->network().SetSlowness(cluster_->process(i), 1);
  }
  for (const ProcessId process : std::exchange(stopped_, {})) scheduler_->Continue(process);
  // An owner may have been asked to close when its successor was started without force.
  for (size_t i = 0; i + 1 < owners_.size(); ++i) {
    Owner* const former = owners_[i].get();
    if (!scheduler_->alive(former->process())) continue;
    former->Finish();
    Await("the end of a former owner", seconds(60), [former] { return former->ended(); });
  }
  Await("an owner", seconds(60), [this] { return owner().opened() || owner().ended(); });
  // One that was about to open it when it was replaced may have replaced its successor in turn.
  if (owner().ended()) StartOwner(/*take_over=*/true);
  AwaitOwner();
  const uint64_t before = owner().writes();
  Await("a write", seconds(60), [=, this] { return owner().writes() > before; });
}

ctl::FsckReport Story::Check(bool full) {
  Uri pool;
  ParseUri(cluster_->pool_uri(), &pool).IgnoreError();
  std::unique_ptr<rdma::Device> device;
  std::unique_ptr<memnode::PoolClient> client;
  memnode::PoolClientOptions options;
  options.slab_bytes = 0;
  options.connect_all = false;
  options.operation_timeout = seconds(2);
  ctl::FsckReport report;
  Status status = memnode::OpenPoolDevice(pool, {}, Clock::System(), &device);
  if (status.ok()) {
    status = memnode::PoolClient::Connect(pool, options, device.get(), Clock::System(), &client);
  }
  if (!status.ok()) {
    report.failures.push_back(status);
  } else {
    report = ctl::Fsck(client.get(), {.database = "db", .full = full});
  }
  found_.clear();
  for (const ctl::Finding& finding : report.findings) found_ += ctl::ToString(finding) + "\n";
  for (const Status& failure : report.failures) found_ += failure.ToString() + "\n";
  for (const ctl::DatabaseHealth& health : report.databases) {
    found_ += fmt::format(
        "{} more nodes may be lost; {} tables of {} bytes, {} segments, {} more "
        "bytes in slabs\n",
        health.spare_nodes, health.tables, health.table_bytes, health.segments,
        health.unreferenced_bytes);
    ctl::DatabaseView view;
    const Status seen = ctl::ViewDatabase(client.get(), "db", &view);
    found_ += fmt::format("{} members, {} copies of the manifest {}\n", view.root.members.size(),
                          health.manifest_copies, seen.ToString());
    for (const std::string& remark : health.remarks) found_ += remark + "\n";
  }
  return report;
}

void Story::AwaitWhole() {
  Tell("all is to become whole");
  int in_a_row = 0;
  Await("wholeness", seconds(120), [&] {
    const ctl::FsckReport report = Check(/*full=*/false);
    const bool whole = report.failures.empty() && report.databases.size() == 1 &&
                       report.databases[0].spare_nodes >= static_cast<int>(redundancy_.spare);
    in_a_row = whole ? in_a_row + 1 : 0;
    return in_a_row == 3;
  });
  lost_ = 0;
}

void Story::InOwner(const std::function<void()>& body) {
  bool done = false;
  cluster_->Run(owner().process(), "check", [&] {
    body();
    done = true;
  });
  Await("a check", seconds(60), [&done] { return done; });
}

void Story::CheckAll() {
  AwaitWhole();
  owner().Rest();
  Sleep(seconds(1));
  InOwner([this] {
    for (size_t group = 0; group < model_->size(); ++group) {
      Status status;
      // A connection that was cut may show so only now; the next is a new one.
      while (!model_->Read(owner().number(), owner().db(), group, &status)) Sleep(kLook);
    }
  });
  owner().Finish();
  Await("closing", seconds(60), [this] { return owner().ended(); });
  if (owner().fenced()) scheduler_->Fail("the last owner was fenced");
  // Who opens it next finds the same.
  StartOwner(/*take_over=*/false);
  AwaitOwner();
  owner().Rest();
  InOwner([this] {
    Status status;
    while (!model_->Scan(owner().number(), owner().db(), &status)) Sleep(kLook);
  });
  owner().Finish();
  Await("closing", seconds(60), [this] { return owner().ended(); });
  const ctl::FsckReport report = Check(/*full=*/true);
  if (report.exit_status() != 0) scheduler_->Fail("in the end: " + found_);
}

std::string TellStory(Scheduler* scheduler, uint64_t seed) {
  return std::make_unique<Story>(scheduler, seed).release()->Run();
}

}  // namespace nacre::sim
