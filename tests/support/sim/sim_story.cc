#include "tests/support/sim/sim_story.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nacre/merge_operator.h"
#include "tests/support/key_file.h"
#include "tests/support/sim/sim_run.h"

namespace nacre::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kGroups = 60;

/// One more than the fragments of a table at least; and a new owner needs more than half of the
/// nodes.
size_t NodesFor(size_t fragments, size_t spare, const StoryOptions& options, Random* random) {
  const size_t nodes = std::max(fragments, 2 * spare) + 1 + random->Uniform(2);
  return options.many_splits ? nodes + nodes % 2 : nodes;
}

}  // namespace

const Story::Redundancy Story::kRedundancies[] = {
    {"rep(2)", 2, 1}, {"rep(3)", 3, 2}, {"rs(2,1)", 3, 1}, {"rs(2,2)", 4, 2}};

Story::Story(Scheduler* scheduler, uint64_t seed, const StoryOptions& options)
    : options_(options),
      scheduler_(scheduler),
      random_(seed),
      redundancy_(kRedundancies[random_.Uniform(std::size(kRedundancies))]),
      // These live until the simulation's process ends, as what was killed still refers to them.
      cluster_(
          std::make_unique<Cluster>(
              scheduler, ClusterOptions{.nodes = NodesFor(redundancy_.fragments, redundancy_.spare,
                                                          options, &random_)})
              .release()),
      model_(std::make_unique<Model>(scheduler, kGroups).release()),
      database_(cluster_->DatabaseOptions()) {
  one_family_ = !options_.many_families && (random_.OneIn(2) || options_.one_family);
  if (one_family_) model_->KeepToOneFamily();
  database_.redundancy = redundancy_.name;
  database_.operation_timeout = seconds(2);
  database_.merge_operator = MergeOperators::CreateStringAppendOperator();
  // Tables of less than 64 KiB are replicated.
  if (random_.OneIn(2)) database_.target_file_size_base = 160 << 10;
  if (random_.OneIn(3)) database_.compaction = CompactionSite::kCompute;
  if (random_.OneIn(3)) database_.index_memory_budget = 8 << 10;
  // The ring of edits is as small, too.
  if (random_.OneIn(3)) database_.manifest_image_edits = 4 + random_.Uniform(8);
  if (options_.small_rings) database_.manifest_image_edits = 4;
  // By chances of their own, so that the other stories stay as they are.
  Random of_seed(seed * 41);
  if (of_seed.OneIn(4) || options_.filters) {
    database_.compaction_filter = &filter_;
    model_->ExpectFilter();
  }
  if (of_seed.OneIn(4) || options_.slow_repair) {
    database_.repair_bytes_per_second = uint64_t{64 << 10} << of_seed.Uniform(4);
  }
  if (!of_seed.OneIn(4)) {  // Else both follow the nodes.
    database_.max_subcompactions = 1;
    if (database_.repair_bytes_per_second == kAdaptiveRepair) {
      database_.repair_bytes_per_second = 256 << 20;
    }
  }
  if (of_seed.OneIn(4)) database_.encryption_key_file = KeyFileInMemory({"first"});
  SetPointVisitor([this](const char*) {
    const auto ambush = ambushes_.find(scheduler_->process());
    if (ambush == ambushes_.end() || --ambush->second.left > 0) return;
    const std::function<void()> kill = std::move(ambush->second.kill);
    ambushes_.erase(ambush);
    kill();
  });
}

std::string Story::Run() {
  Tell(fmt::format("{} nodes, {}", cluster_->size(), redundancy_.name));
  StartOwner(/*take_over=*/false);
  AwaitOwner();
  for (uint64_t followers = options_.many_followers ? 3 : random_.Uniform(4); followers > 0;
       --followers)
    StartFollower();
  const uint64_t acts = 4 + random_.Uniform(8);
  for (uint64_t i = 0; i < acts; ++i) {
    const bool long_while = options_.small_rings || random_.OneIn(3);
    Sleep(milliseconds(random_.Uniform(long_while ? 2000 : 200)));
    Act();
  }
  Heal();
  CheckAll();
  return fmt::format(
      "{}, {} nodes, {} owners, {} followers, {} faults; {} families, {} writes, {} unresolved, {} "
      "reads, {} "
      "that were lost afterwards",
      redundancy_.name, cluster_->size(), owners_.size(), followers_made_, faults_,
      model_->families().made(), model_->acknowledged(), model_->unresolved(), model_->reads(),
      lost_by_followers_);
}

void Story::Act() {
  if (options_.many_flips && random_.OneIn(2)) return FlipBits();
  if (options_.small_rings && random_.OneIn(2)) return KillOwner();
  if (options_.many_families && random_.OneIn(2)) return KillOwner();
  if (options_.many_followers && random_.OneIn(2)) return DisturbFollower();
  if (options_.many_splits && random_.OneIn(2)) return HalveNetwork();
  if (options_.slow_repair && random_.OneIn(2)) return KillNode();
  if (options_.many_stops && random_.OneIn(2)) return StopNode();
  if (options_.heavy_tails && random_.OneIn(2)) {
    return random_.OneIn(2) ? TailNode() : StopNode();
  }
  switch (random_.Uniform(25)) {
    case 0:
    case 1:
    case 2:
      return KillNode();
    case 3:
      return StopNode();
    case 4:
      return StartNodes();
    case 5:
      return SlowNode();
    case 6:
      return AddNode();
    case 7:
      return DrainNode();
    case 8:
      return FillNodes();
    case 9:
      return FlipBits();
    case 10:
    case 11:
      return CutOff();
    case 12:
      return CutOffOwner();
    case 13:
      return SplitNetwork();
    case 14:
      return LeapClock();
    case 15:
    case 16:
    case 17:
      return KillOwner();
    case 18:
      return StopOwner();
    case 19:
      return ReplaceOwner();
    case 20:
      return CloseOwner();
    case 21:
    case 22:
      return DisturbFollower();
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

void Story::StartOwner(bool take_over, Follower* promoted) {
  OwnerOptions options;
  if (one_family_) options.family_one_in = UINT64_MAX;
  if (options_.many_families) options.family_one_in = 5;
  options.promoted = promoted;
  options.number = static_cast<uint32_t>(owners_.size() + 1);
  options.first = owners_.empty();
  options.take_over = take_over;
  options.seed = random_.Next();
  options.database = database_;
  if (options_.many_scans) options.scan_one_in = 5;
  Tell(fmt::format("owner {} starts{}{}", options.number, take_over ? " and takes over" : "",
                   promoted != nullptr ? ", a follower until now" : ""));
  owners_.push_back(std::make_unique<Owner>(cluster_, model_, options));
}

void Story::AwaitOwner() {
  Await("opening", seconds(60), [this] { return owner().opened(); });
}

void Story::KillOwner() {
  const bool told = random_.OneIn(2);
  Tell(fmt::format("owner {} is killed{}", owner().number(), told ? "" : " with its machine"));
  ++faults_;
  const ProcessId process = owner().process();
  KillSomewhere(process, [=, this] { cluster_->KillProcess(process, told); });
  if (random_.OneIn(2)) Sleep(milliseconds(random_.Uniform(500)));
  Follower* const promoted = random_.OneIn(2) ? TakeFollower() : nullptr;
  StartOwner(/*take_over=*/promoted != nullptr || random_.OneIn(3), promoted);
}

void Story::StopOwner() {
  Tell(fmt::format("owner {} is stopped", owner().number()));
  Disturb();
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

void Story::ReplaceOwner() {
  StartOwner(/*take_over=*/true);
  // Now and then two at once.
  if (random_.OneIn(3)) StartOwner(/*take_over=*/true);
}

void Story::CloseOwner() {
  Owner* const closing = &owner();
  Tell(fmt::format("owner {} is to close", closing->number()));
  closing->Finish();
  if (random_.OneIn(2)) Sleep(milliseconds(random_.Uniform(5000)));
  StartOwner(/*take_over=*/!closing->ended() && random_.OneIn(2));
}

void Story::KillSomewhere(ProcessId process, const std::function<void()>& kill) {
  constexpr uint64_t kMostSteps = 200;
  const uint64_t steps = 1 + random_.Uniform(kMostSteps);
  switch (random_.Uniform(6)) {
    case 0:
      return kill();
    case 1:
    case 2:
    case 3:
      cluster_->network().AtRequest(process, steps, kill);
      break;
    default:
      ambushes_[process] = {.left = 1 + steps / 8, .kill = kill};
  }
  for (int i = 0; i < 10 && scheduler_->alive(process); ++i) Sleep(kLook);
  ambushes_.erase(process);
  cluster_->network().AtRequest(process, 0, nullptr);
  if (scheduler_->alive(process)) kill();
}

std::string TellStory(Scheduler* scheduler, uint64_t seed) {
  return TellStoryWith({}, scheduler, seed);
}

std::string TellStoryWith(const StoryOptions& options, Scheduler* scheduler, uint64_t seed) {
  return std::make_unique<Story>(scheduler, seed, options).release()->Run();
}

}  // namespace nacre::sim
