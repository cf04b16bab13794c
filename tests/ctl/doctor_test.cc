// Goal: the doctor finds what is wrong with a pool, says what to do about it, and finds nothing
// wrong with one that works. Method: nodes in this process, each ill in its own way.

#include "ctl/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "memnode/memory_node.h"
#include "tests/support/status_assert.h"

namespace nacre::ctl {
namespace {

using rdma::Finding;
using Verdict = Finding::Verdict;

struct Node {
  std::unique_ptr<rdma::Device> device;
  std::unique_ptr<pool::MemoryNode> node;
};

Node StartNode(uint64_t slab_bytes, const std::string& secret) {
  Node node;
  EXPECT_TRUE(IsOk(rdma::OpenDevice("tcp", {.secret = secret}, Clock::System(), &node.device)));
  pool::MemoryNodeOptions options;
  options.listen = "tcp:127.0.0.1:0";
  options.region_bytes = 8 << 20;
  options.slab_bytes = slab_bytes;
  EXPECT_TRUE(
      IsOk(pool::MemoryNode::Start(options, node.device.get(), Clock::System(), &node.node)));
  return node;
}

std::vector<Finding> ExaminePool(const std::string& pool, const std::string& secret = "") {
  Uri uri;
  EXPECT_TRUE(IsOk(ParseUri(pool, &uri)));
  rdma::DeviceOptions options;
  options.parameters = uri.parameters;
  options.secret = secret;
  std::vector<Finding> findings =
      Examine(uri, options, std::chrono::milliseconds(2000), Clock::System());
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.verdict == Verdict::kOk, finding.remedy.empty()) << finding.subject;
    EXPECT_FALSE(finding.subject.empty());
    EXPECT_FALSE(finding.found.empty()) << finding.subject;
  }
  return findings;
}

/// Those about `subject` that are failures.
size_t Failures(const std::vector<Finding>& findings, const std::string& subject = "") {
  return static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(), [&](const Finding& finding) {
        return finding.verdict == Verdict::kFailure &&
               finding.subject.find(subject) != std::string::npos;
      }));
}

TEST(DoctorTest, APoolThatWorks) {
  const Node a = StartNode(1 << 20, "s");
  const Node b = StartNode(1 << 20, "s");
  const std::string pool = a.node->address() + "," + b.node->address().substr(4);
  EXPECT_EQ(Failures(ExaminePool(pool, "s")), 0u);
}

TEST(DoctorTest, NamesTheNodeThatIsNotThere) {
  const Node a = StartNode(1 << 20, "");
  std::string gone;
  {
    const Node b = StartNode(1 << 20, "");
    gone = b.node->address();
  }
  const auto findings = ExaminePool(a.node->address() + "," + gone.substr(4));
  EXPECT_EQ(Failures(findings, gone), 1u);
  EXPECT_EQ(Failures(findings), 1u);
}

TEST(DoctorTest, TellsAWrongSecretFromADeadNode) {
  const Node a = StartNode(1 << 20, "right");
  const auto findings = ExaminePool(a.node->address(), "wrong");
  ASSERT_EQ(Failures(findings, a.node->address()), 1u);
  EXPECT_NE(findings.back().remedy.find("NACRE_SECRET"), std::string::npos);
}

TEST(DoctorTest, SlabsOfTwoSizes) {
  const Node a = StartNode(1 << 20, "");
  const Node b = StartNode(2 << 20, "");
  const auto findings = ExaminePool(a.node->address() + "," + b.node->address().substr(4));
  EXPECT_EQ(Failures(findings, "slab size"), 1u);
  EXPECT_EQ(Failures(findings), 1u);
}

TEST(DoctorTest, BadParametersAreFailuresOfTheirOwn) {
  EXPECT_EQ(Failures(ExaminePool("tcp:127.0.0.1:1?jump=1"), "transport"), 1u);
  EXPECT_GE(Failures(ExaminePool("verbs:?device=there_is_none"), "RDMA device"), 1u);
}

}  // namespace
}  // namespace nacre::ctl
