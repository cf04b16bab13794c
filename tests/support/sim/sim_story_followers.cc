#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "tests/support/sim/sim_story.h"

// Steps with followers of the database, on compute nodes of their own.

namespace nacre::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMaxFollowers = 3;

}  // namespace

void Story::StartFollower() {
  // It catches up by itself, or only when it is asked to.
  constexpr milliseconds kIntervals[] = {milliseconds(0), milliseconds(20), milliseconds(300)};
  FollowerOptions options;
  options.number = static_cast<uint32_t>(++followers_made_);
  options.seed = random_.Next();
  options.database = database_;
  options.database.follow_interval = kIntervals[random_.Uniform(std::size(kIntervals))];
  if (options_.many_scans) options.scan_one_in = 5;
  Tell(fmt::format("follower {} starts, to follow every {} ms", options.number,
                   options.database.follow_interval.count()));
  followers_.push_back(std::make_unique<Follower>(cluster_, model_, options).release());
}

void Story::DisturbFollower() {
  if (followers_.size() < kMaxFollowers && random_.OneIn(3)) return StartFollower();
  if (followers_.empty()) return;
  const size_t i = random_.Uniform(followers_.size());
  Follower* const follower = followers_[i];
  const ProcessId process = follower->process();
  switch (random_.Uniform(5)) {
    case 0:
      Tell(fmt::format("follower {} is killed", follower->number()));
      followers_.erase(followers_.begin() + static_cast<ptrdiff_t>(i));
      return KillSomewhere(process, [=, this] { cluster_->KillProcess(process, /*told=*/true); });
    case 1: {
      const uint64_t millis = random_.Uniform(3000);
      Tell(fmt::format("follower {} is stopped for {} ms", follower->number(), millis));
      return StopFor(process, millis);
    }
    case 2: {
      const uint64_t factor = uint64_t{1} << random_.Uniform(11);
      Tell(fmt::format("follower {} is {} times as slow", follower->number(), factor));
      return cluster_->network().SetSlowness(process, factor);
    }
    default:
      break;
  }
  // It is cut off from some of the nodes.
  const uint64_t millis = random_.Uniform(4000);
  const uint64_t ways = 1 + random_.Uniform(3);
  const size_t nodes = 1 + random_.Uniform(cluster_->size());
  const size_t first = random_.Uniform(cluster_->size());
  Tell(fmt::format("follower {} and {} nodes from node {} on are cut apart ({}) for {} ms",
                   follower->number(), nodes, first, ways, millis));
  for (size_t n = 0; n < nodes; ++n) {
    Cut(process, cluster_->process((first + n) % cluster_->size()), ways, millis);
  }
}

Follower* Story::TakeFollower() {
  if (followers_.empty()) return nullptr;
  const size_t i = random_.Uniform(followers_.size());
  Follower* const follower = followers_[i];
  followers_.erase(followers_.begin() + static_cast<ptrdiff_t>(i));
  return follower;
}

void Story::CheckFollowers() {
  for (Follower* const follower : followers_) {
    cluster_->network().SetSlowness(follower->process(), 1);
    AwaitFollower("a follower to open", *follower, [=] { return follower->opened(); });
    auto* const done = new bool(false);  // Outlives the thread, whatever becomes of this.
    cluster_->Run(follower->process(), "check", [=] {
      while (!follower->ShowsAll()) {
      }
      *done = true;
    });
    AwaitFollower("a follower to show all", *follower, [=] { return *done; });
    lost_by_followers_ += follower->model().lost();
  }
}

void Story::AwaitFollowersEnd() {
  for (Follower* const follower : followers_) {
    AwaitFollower("a follower to know that the database is gone", *follower, [=] {
      return follower->knows_of_destruction() || (follower->ended() && !follower->opened());
    });
    follower->Finish();
    AwaitFollower("a follower's end", *follower, [=] { return follower->ended(); });
  }
}

void Story::AwaitFollower(const char* what, const Follower& follower,
                          const std::function<bool()>& done) {
  constexpr seconds kPatience{60};
  const uint64_t end =
      scheduler_->TrueNanos() + static_cast<uint64_t>(std::chrono::nanoseconds(kPatience).count());
  while (!done()) {
    if (scheduler_->TrueNanos() > end) {
      scheduler_->Fail(fmt::format("{} ({}): not within {} s; its last failure: {}", what,
                                   follower.number(), kPatience.count(),
                                   follower.last_failure().ToString()));
    }
    Sleep(kLook);
  }
}

}  // namespace nacre::sim
