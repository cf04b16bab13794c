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
  EXPECT_TRUE(Open("embedded").ok());
  EXPECT_TRUE(Open("shm", {{"rtt_us", "2"}, {"gbps", "100"}}).ok());
  EXPECT_TRUE(Open("embedded", {{"rtt_us", "0.5"}}).ok());
}

TEST(OpenDeviceTest, SchemesToCome) {
  for (const std::string scheme : {"verbs", "tcp"}) {
    const Status status = Open(scheme);
    EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
    EXPECT_TRUE(Names(status, scheme)) << status.ToString();
  }
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
