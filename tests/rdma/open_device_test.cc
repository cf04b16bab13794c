// Goal: OpenDevice understands the URI schemes and parameters that exist and names the culprit in
// those that do not.

#include <gtest/gtest.h>

#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre::rdma {

namespace {

Status Open(const std::string& scheme, const std::map<std::string, std::string>& parameters = {}) {
  std::unique_ptr<Device> device;
  const Status status = OpenDevice(scheme, {.parameters = parameters}, Clock::System(), &device);
  EXPECT_EQ(device != nullptr, status.ok());
  if (status.ok()) {
    EXPECT_EQ(device->scheme(), scheme);
  }
  return status;
}

bool Names(const Status& status, const std::string& culprit) {
  return status.message().find(culprit) != std::string_view::npos;
}

TEST(OpenDeviceTest, SchemesThatExist) {
  EXPECT_TRUE(Open("shm").ok());
  EXPECT_TRUE(Open("cxl").ok());
  EXPECT_TRUE(Open("embedded").ok());
  EXPECT_TRUE(Open("shm", {{"rtt_us", "2"}, {"gbps", "100"}}).ok());
  EXPECT_TRUE(Open("embedded", {{"rtt_us", "0.5"}}).ok());
  EXPECT_TRUE(Open("tcp").ok());
  EXPECT_TRUE(Open("tcp", {{"rtt_us", "2"},
                           {"io_threads", "2"},
                           {"timeout_ms", "500"},
                           {"spin_us", "0"},
                           {"io_spin_us", "20"}})
                  .ok());
}

TEST(OpenDeviceTest, TellsWhetherCallersMoveTheBytes) {
  for (const char* scheme : {"shm", "embedded", "tcp"}) {
    for (const bool modelled : {false, true}) {
      std::unique_ptr<Device> device;
      DeviceOptions options;
      if (modelled) options.parameters["rtt_us"] = "2";
      ASSERT_TRUE(OpenDevice(scheme, options, Clock::System(), &device).ok());
      EXPECT_TRUE(device->callers_move_bytes()) << scheme;
    }
  }
}

TEST(OpenDeviceTest, VerbsSaysWhatIsMissing) {
  // With a device in this machine there is nothing to say.
  const Status status = Open("verbs", {{"device", "nacre-nobody"}});
  EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
  EXPECT_TRUE(Names(status, "RDMA device")) << status.ToString();
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"port", "0"}, {"gid", "-1"}, {"timeout_ms", "soon"}, {"piece_mib", "3"}}) {
    const Status malformed = Open("verbs", {{name, value}});
    EXPECT_TRUE(malformed.IsInvalidArgument()) << malformed.ToString();
    EXPECT_TRUE(Names(malformed, name + "=" + value)) << malformed.ToString();
  }
  EXPECT_TRUE(Names(Open("verbs", {{"gbit", "1"}}), "gbit"));
}

TEST(OpenDeviceTest, SchemesUnknown) {
  for (const std::string scheme : {"", "http", "SHM"}) {
    const Status status = Open(scheme);
    EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
    EXPECT_TRUE(Names(status, "'" + scheme + "'")) << status.ToString();
  }
}

TEST(OpenDeviceTest, ParametersUnknownOrMalformed) {
  const Status unknown = Open("shm", {{"gbit", "1"}});
  EXPECT_TRUE(unknown.IsInvalidArgument()) << unknown.ToString();
  EXPECT_TRUE(Names(unknown, "gbit"));
  for (const std::string value : {"", "0", "-1", "many", "1x"}) {
    const Status status = Open("tcp", {{"io_threads", value}});
    EXPECT_TRUE(status.IsInvalidArgument()) << value << ": " << status.ToString();
    EXPECT_TRUE(Names(status, "io_threads=" + value)) << status.ToString();
  }
  EXPECT_TRUE(Names(Open("tcp", {{"gbit", "1"}}), "gbit"));
  EXPECT_TRUE(Open("shm", {{"io_threads", "1"}}).IsInvalidArgument());
  for (const std::string value : {"", "-1", "fast", "1x", "nan", "inf", "1e300"}) {
    const Status status = Open("shm", {{"rtt_us", value}});
    EXPECT_TRUE(status.IsInvalidArgument()) << value << ": " << status.ToString();
    EXPECT_TRUE(Names(status, "rtt_us=" + value)) << status.ToString();
  }
}

TEST(OpenDeviceTest, EachCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(CompletionCode::kReceiverNotReady); code++) {
    EXPECT_STRNE(ToString(static_cast<CompletionCode>(code)), "unknown completion code");
  }
}

}  // namespace

}  // namespace nacre::rdma
