// Goal: nacre-perf measures every operation, tells what it cannot do, and ends. Method: workloads
// against a peer in this process, and the program itself with a far side of its own. Its speed is
// not tested here.

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

#include "perf/peer.h"
#include "perf/socket_ping.h"
#include "perf/workload.h"
#include "tests/support/status_assert.h"

namespace nacre::perf {
namespace {

class PerfTest : public testing::TestWithParam<const char*> {
 protected:
  PerfTest() {
    for (auto* device : {&near_, &far_}) {
      EXPECT_TRUE(IsOk(rdma::OpenDevice(GetParam(), {}, Clock::System(), device)));
    }
    const std::string scheme = GetParam();
    const std::string address = scheme + (scheme == "tcp" ? ":127.0.0.1:0" : ":@");
    EXPECT_TRUE(IsOk(Peer::Start(far_.get(), address, kRegionBytes, &peer_)));
  }

  Status Measure(const Workload& workload, Result* result) {
    return perf::Run(workload, near_.get(), peer_->address(), Clock::System(), result);
  }

  static constexpr size_t kRegionBytes = 1 << 20;
  std::unique_ptr<rdma::Device> near_;
  std::unique_ptr<rdma::Device> far_;
  std::unique_ptr<Peer> peer_;
};

INSTANTIATE_TEST_SUITE_P(Transports, PerfTest, testing::Values("embedded", "shm", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(PerfTest, MeasuresEveryOperation) {
  for (const Operation operation :
       {Operation::kRead, Operation::kWrite, Operation::kCas, Operation::kSend}) {
    for (const int depth : {1, 7, 32}) {
      Workload workload;
      workload.operation = operation;
      workload.depth = depth;
      workload.batch = depth == 1 ? 1 : 3;
      workload.threads = depth == 7 ? 3 : 1;
      workload.seconds = 0.05;
      workload.random = depth == 32;
      Result result;
      ASSERT_TRUE(IsOk(Measure(workload, &result)));
      EXPECT_GT(result.operations, 0u);
      EXPECT_EQ(result.latency.count(), result.operations);
      EXPECT_GT(result.seconds, 0);
    }
  }
}

TEST_P(PerfTest, SaysWhatItCannotDo) {
  const auto failure = [&](auto change) {
    Workload workload;
    workload.seconds = 0.01;
    change(&workload);
    Result result;
    return Measure(workload, &result);
  };
  using Code = Status::Code;
  EXPECT_TRUE(IsFailure(failure([](Workload* w) { w->size = kRegionBytes + 1; }),
                        Code::kInvalidArgument, "--region"));
  EXPECT_TRUE(IsFailure(failure([](Workload* w) { w->depth = 0; }), Code::kInvalidArgument, "0"));
  EXPECT_TRUE(IsFailure(failure([](Workload* w) { w->batch = 2; }), Code::kInvalidArgument, "2"));
  EXPECT_TRUE(IsFailure(failure([](Workload* w) { w->threads = 0; }), Code::kInvalidArgument, "0"));
  EXPECT_TRUE(
      IsFailure(failure([](Workload* w) { w->seconds = -1; }), Code::kInvalidArgument, "seconds"));
  EXPECT_TRUE(IsFailure(failure([](Workload* w) {
                          w->operation = Operation::kSend;
                          w->size = 5'000;
                        }),
                        Code::kInvalidArgument, "4096"));
}

TEST(PerfSocketTest, PingPong) {
  Result result;
  ASSERT_TRUE(IsOk(RunSocketPing(512, 0.05, Clock::System(), &result)));
  EXPECT_GT(result.operations, 0u);
}

/// What the program writes, both streams; `*ok`: whether it says that it succeeded.
std::string RunProgram(const std::string& arguments, bool* ok) {
  const std::string command =
      std::string(NACRE_TEST_BIN_DIR) + "/nacre-perf " + arguments + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string output;
  char buffer[512];
  while (pipe != nullptr && std::fgets(buffer, sizeof(buffer), pipe) != nullptr) output += buffer;
  *ok = pipe != nullptr && ::pclose(pipe) == 0;
  return output;
}

TEST(PerfProgramTest, WithAFarSideOfItsOwn) {
  for (const char* scheme : {"shm", "tcp"}) {
    bool ok = false;
    const std::string output =
        RunProgram(std::string("read ") + scheme + ": --seconds=0.05 --size=64", &ok);
    EXPECT_TRUE(ok) << output;
    EXPECT_NE(output.find("ops/s"), std::string::npos) << output;
  }
}

TEST(PerfProgramTest, BadArguments) {
  for (const char* arguments : {"", "read", "jump shm:", "read embedded:", "read nowhere:x",
                                "read shm:/nobody/listens/here", "serve shm: --region=lots"}) {
    bool ok = true;
    const std::string output = RunProgram(arguments, &ok);
    EXPECT_FALSE(ok) << arguments;
    EXPECT_NE(output.find("nacre-perf: "), std::string::npos) << arguments << ": " << output;
  }
}

}  // namespace
}  // namespace nacre::perf
