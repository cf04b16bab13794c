#include "tests/support/process/crash_points.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <string_view>

#include "tests/support/scale.h"

namespace nacre {

namespace {

constexpr size_t kMaxPoints = 256;
constexpr uint64_t kNoPoint = UINT64_MAX;

/// Part `shard` of the hits of a run, each a place to die at; some of them where a sanitizer makes
/// each dearer (tests/support/scale.h). To which of `shards` parts a hit belongs does not depend on
/// the others, so runs that differ a little leave nothing out.
std::vector<CrashAt> CrashesOf(const std::map<std::string, uint64_t>& hits, size_t shard,
                               size_t shards) {
  std::vector<CrashAt> crashes;
  for (const auto& [point, count] : hits) {
    for (uint64_t hit = 1; hit <= count; ++hit) {
      if ((std::hash<std::string>()(point) + hit) % shards == shard)
        crashes.push_back({point, hit});
    }
  }
  const size_t step = std::max<size_t>(1, crashes.size() / Scaled(crashes.size()));
  std::vector<CrashAt> tried;
  for (size_t i = shard % step; i < crashes.size(); i += step) tried.push_back(crashes[i]);
  return tried;
}

/// The only crash to try; hit 0: all.
CrashAt OnlyCrash() {
  const char* const set = std::getenv("NACRE_CRASH_AT");
  const std::string text = set == nullptr ? "" : set;
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return {};
  return {text.substr(0, colon), std::strtoull(text.c_str() + colon + 1, nullptr, 10)};
}

/// The number of each point of this binary.
const std::map<const NamedPoint*, size_t>& Numbers() {
  static const auto* const numbers = [] {
    auto* made = new std::map<const NamedPoint*, size_t>();  // Threads may reach points at exit.
    for (const NamedPoint* point : AllPoints()) made->emplace(point, made->size());
    return made;
  }();
  return *numbers;
}

}  // namespace

std::string ToString(const CrashAt& at) { return at.point + ":" + std::to_string(at.hit); }

struct CrashPoints::Shared {
  std::atomic<uint64_t> acknowledged;
  std::atomic<uint64_t> destroying;
  std::atomic<uint64_t> point;  ///< The point at which to die; kNoPoint: nowhere.
  std::atomic<uint64_t> hit;
  std::array<std::atomic<uint64_t>, kMaxPoints> hits;
  std::array<char, 512> failure;
};

namespace {

/// Used by the process that is to die.
std::atomic<void*> installed{nullptr};

}  // namespace

CrashPoints::CrashPoints() : folder_(std::make_unique<TempFolder>()), path_(folder_->File("run")) {
  const int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_EQ(::ftruncate(fd, sizeof(Shared)), 0);
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  EXPECT_NE(memory, MAP_FAILED);
  ::close(fd);
  EXPECT_LE(Numbers().size(), kMaxPoints);
  shared_ = new (memory) Shared();
  Aim({});
}

CrashPoints::CrashPoints(const std::string& path) : path_(path) {
  const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  EXPECT_NE(memory, MAP_FAILED);
  ::close(fd);
  shared_ = static_cast<Shared*>(memory);
}

CrashPoints::~CrashPoints() {
  if (installed.load() == shared_) {
    SetPointHandler(nullptr);
    return;  // A thread may be at a point; the process is about to end.
  }
  ::munmap(shared_, sizeof(Shared));
}

void CrashPoints::Aim(const CrashAt& at) {
  shared_->point = kNoPoint;
  shared_->acknowledged = 0;
  shared_->destroying = 0;
  for (auto& hits : shared_->hits) hits = 0;
  shared_->failure.fill('\0');
  if (at.hit == 0) return;
  for (const auto& [point, number] : Numbers()) {
    if (point->name != at.point) continue;
    shared_->hit = at.hit;
    shared_->point = number;
  }
  EXPECT_NE(shared_->point, kNoPoint) << "no point is called " << at.point;
}

void CrashPoints::Install() {
  Numbers();  // They must be made before several threads may ask for them.
  installed = shared_;
  SetPointHandler(&CrashPoints::Reached);
}

void CrashPoints::Reached(const NamedPoint& point) {
  Shared* const shared = static_cast<Shared*>(installed.load());
  const uint64_t number = Numbers().at(&point);
  const uint64_t hit = ++shared->hits[number];
  if (shared->point != number || shared->hit != hit) return;
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();  // It must not go a step further than the point.
}

std::map<std::string, uint64_t> CrashPoints::Hits() const {
  std::map<std::string, uint64_t> hits;
  for (const auto& [point, number] : Numbers()) hits[point->name] = shared_->hits[number];
  return hits;
}

void CrashPoints::Acknowledge(uint64_t operations) { shared_->acknowledged = operations; }
uint64_t CrashPoints::acknowledged() const { return shared_->acknowledged; }
void CrashPoints::Destroying() { shared_->destroying = 1; }
bool CrashPoints::destroying() const { return shared_->destroying != 0; }

void CrashPoints::Fail(const Status& status) {
  std::strncpy(shared_->failure.data(), status.ToString().c_str(), shared_->failure.size() - 1);
}

std::string CrashPoints::failure() const { return shared_->failure.data(); }

bool IsOfNode(const NamedPoint& point) { return std::string_view(point.name).starts_with("node."); }

void RunWithEachCrash(const CrashPoints& points, size_t shard, size_t shards,
                      const std::function<void(const CrashAt&)>& run,
                      const std::function<bool(const std::string&)>& of_interest) {
  std::vector<CrashAt> crashes;
  if (const CrashAt only = OnlyCrash(); only.hit > 0) {
    crashes.push_back(only);
  } else {
    run({});
    if (testing::Test::HasFatalFailure()) return;
    std::map<std::string, uint64_t> hits = points.Hits();
    if (of_interest != nullptr) {
      std::erase_if(hits, [&](const auto& hit) { return !of_interest(hit.first); });
    }
    crashes = CrashesOf(hits, shard, shards);
  }
  for (const CrashAt& at : crashes) {
    SCOPED_TRACE("replay with NACRE_CRASH_AT=" + ToString(at));
    run(at);
    if (testing::Test::HasFatalFailure()) return;
  }
  std::cout << crashes.size() << " crashes\n";
}

}  // namespace nacre
