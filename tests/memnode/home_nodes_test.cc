// Goal: a home is of nodes in different domains, where the database is, or where there is most
// room; and it moves off nodes that failed, to where its data went. Method: candidates and
// placements made by hand.

#include "pool/space/home_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace nacre::pool {
namespace {

std::vector<HomeNodes::Candidate> Alike(size_t count) {
  std::vector<HomeNodes::Candidate> nodes;
  for (size_t i = 0; i < count; ++i) {
    const auto node = static_cast<NodeId>(i);
    nodes.push_back({.node = node, .domain = node, .leased = 10, .slabs = 100});
  }
  return nodes;
}

Placement On(const std::vector<NodeId>& nodes) {
  Placement placement;
  for (const NodeId node : nodes) {
    ExtentAddr extent;
    extent.start.node = node;
    extent.length = 1;
    placement.fragments.push_back(extent);
  }
  return placement;
}

std::set<NodeId> SetOf(const HomeNodes& home) { return {home.nodes().begin(), home.nodes().end()}; }

TEST(HomeNodesTest, IsWhereTheDatabaseIsAndThenWhereThereIsRoom) {
  std::vector<HomeNodes::Candidate> nodes = Alike(6);
  nodes[4].used_bytes = 100;
  nodes[4].leased = 100;
  nodes[2].leased = 1;
  nodes[5].leased = 2;
  HomeNodes home;
  EXPECT_TRUE(home.empty());
  home.Choose(1, nodes, 3);
  EXPECT_EQ(SetOf(home), (std::set<NodeId>{2, 4, 5}));
}

TEST(HomeNodesTest, NodesOfOneDomainAreNotInItTogether) {
  std::vector<HomeNodes::Candidate> nodes = Alike(6);
  for (size_t i = 0; i < 6; ++i) nodes[i].domain = static_cast<NodeId>(i / 2 * 2);
  HomeNodes home;
  for (uint64_t id = 0; id < 50; ++id) {
    home.Choose(id, nodes, 3);
    std::set<NodeId> domains;
    for (const NodeId node : home.nodes()) domains.insert(nodes[node].domain);
    EXPECT_EQ(domains.size(), 3u);
  }
}

TEST(HomeNodesTest, NodesThatAreAlikeAreChosenEquallyOften) {
  constexpr size_t kNodes = 8;
  constexpr uint64_t kDatabases = 800;
  std::vector<int> chosen(kNodes, 0);
  for (uint64_t id = 0; id < kDatabases; ++id) {
    HomeNodes home;
    home.Choose(id, Alike(kNodes), 2);
    ASSERT_EQ(home.size(), 2u);
    for (const NodeId node : home.nodes()) ++chosen[node];
  }
  // 200 on average; five standard deviations are 61.
  for (const int count : chosen) EXPECT_NEAR(count, 200, 61);
}

TEST(HomeNodesTest, MovesOffNodesThatFailedOnly) {
  std::vector<HomeNodes::Candidate> nodes = Alike(6);
  for (size_t i = 0; i < 3; ++i) nodes[i].used_bytes = 1;
  HomeNodes home;
  home.Choose(1, nodes, 3);
  ASSERT_EQ(SetOf(home), (std::set<NodeId>{0, 1, 2}));
  home.Move(On({0, 1, 5}), [](NodeId) { return false; });
  EXPECT_EQ(SetOf(home), (std::set<NodeId>{0, 1, 2}));
  home.Move(On({0, 1, 5}), [](NodeId node) { return node == 2; });
  EXPECT_EQ(SetOf(home), (std::set<NodeId>{0, 1, 5}));
  home.Move(On({3, 4, 5}), [](NodeId node) { return node < 2; });
  EXPECT_EQ(SetOf(home), (std::set<NodeId>{3, 4, 5}));
}

}  // namespace
}  // namespace nacre::pool
