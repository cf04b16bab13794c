// Goal: flushes run near the data until writers wait for them, then where they take less time, and
// the other place is looked at now and then.
// Method: FlushSiteChooser is told what flushes took.

#include "db/flush/flush_site.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace nacre {
namespace {

constexpr uint64_t kBytes = 1 << 20;
constexpr uint64_t kQuick = 1'000'000;
constexpr uint64_t kSlow = 2'000'000;

/// Flushes `count` times with writers that wait; answers how many were near the data.
int Flush(FlushSiteChooser* chooser, int count, uint64_t near_nanos, uint64_t here_nanos) {
  int near = 0;
  for (int i = 0; i < count; ++i) {
    const bool near_data = chooser->NearData();
    near += near_data ? 1 : 0;
    chooser->Flushed(near_data, kBytes, near_data ? near_nanos : here_nanos,
                     /*writers_waited=*/true);
  }
  return near;
}

TEST(FlushSiteChooserTest, NearTheDataWhileNobodyWaits) {
  FlushSiteChooser chooser;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(chooser.NearData());
    chooser.Flushed(true, kBytes, kSlow, /*writers_waited=*/false);
  }
}

TEST(FlushSiteChooserTest, TheQuickerPlaceOnceWritersWait) {
  FlushSiteChooser slow_nodes;
  EXPECT_EQ(Flush(&slow_nodes, 1, kSlow, kQuick), 1);
  const int near = Flush(&slow_nodes, 160, kSlow, kQuick);
  EXPECT_GT(near, 0);
  EXPECT_LT(near, 16);
  FlushSiteChooser quick_nodes;
  EXPECT_EQ(Flush(&quick_nodes, 1, kQuick, kSlow), 1);
  const int here = 160 - Flush(&quick_nodes, 160, kQuick, kSlow);
  EXPECT_GT(here, 0);
  EXPECT_LT(here, 16);
}

TEST(FlushSiteChooserTest, FollowsWhatChanges) {
  FlushSiteChooser chooser;
  Flush(&chooser, 100, kSlow, kQuick);
  // The nodes have less to do now, which one of the looks finds.
  EXPECT_GT(Flush(&chooser, 160, kQuick / 2, kQuick), 120);
  // No writer waits any more.
  chooser.Flushed(false, kBytes, 1, /*writers_waited=*/false);
  EXPECT_TRUE(chooser.NearData());
}

TEST(FlushSitesTest, CountsByReason) {
  FlushSites sites;
  sites.CountNearData();
  std::set<std::string_view> names;
  for (size_t i = 0; i < kFlushFallbacks; ++i) {
    const auto why = static_cast<FlushFallback>(i);
    names.insert(NameOf(why));
    sites.Count(why);
    sites.Count(why);
    EXPECT_EQ(sites.fallbacks(why), 2u);
  }
  EXPECT_EQ(names.size(), kFlushFallbacks);
  EXPECT_EQ(sites.fallbacks(), 2 * kFlushFallbacks);
  EXPECT_EQ(sites.near_data(), 1u);
}

}  // namespace
}  // namespace nacre
