// Goal: pool and node names, sizes and numbers are read exactly, and whatever is malformed is
// refused with its text in the message.
// Method: tables of good and bad texts; random texts must neither crash nor change on a round trip.

#include "util/uri.h"

#include <gtest/gtest.h>

#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {
namespace {

TEST(UriTest, Reads) {
  Uri uri;
  ASSERT_TRUE(ParseUri("embedded:?nodes=4&size=1GiB", &uri).ok());
  EXPECT_EQ("embedded", uri.scheme);
  EXPECT_TRUE(uri.addresses.empty());
  EXPECT_EQ((std::map<std::string, std::string>{{"nodes", "4"}, {"size", "1GiB"}}), uri.parameters);
  EXPECT_EQ("embedded:?nodes=4&size=1GiB", uri.ToString());

  ASSERT_TRUE(ParseUri("tcp:host:7000,[::1]:7001?rtt_us=2", &uri).ok());
  EXPECT_EQ("tcp", uri.scheme);
  EXPECT_EQ((std::vector<std::string>{"host:7000", "[::1]:7001"}), uri.addresses);
  EXPECT_EQ("tcp:host:7000,[::1]:7001?rtt_us=2", uri.ToString());

  ASSERT_TRUE(ParseUri("shm:/run/n0.sock", &uri).ok());
  EXPECT_EQ(std::vector<std::string>{"/run/n0.sock"}, uri.addresses);
  EXPECT_TRUE(uri.parameters.empty());

  ASSERT_TRUE(ParseUri("embedded:", &uri).ok());
  ASSERT_TRUE(ParseUri("embedded:?", &uri).ok());
  ASSERT_TRUE(ParseUri("shm:a?empty=&equals=a=b", &uri).ok());
  EXPECT_EQ("", uri.parameters["empty"]);
  EXPECT_EQ("a=b", uri.parameters["equals"]);
}

TEST(UriTest, RefusesAndNames) {
  const Uri before{"kept", {}, {}};
  for (const char* text :
       {"", "embedded", ":a", "?nodes=4", "a b:c", "shm/path:x", "shm:,", "shm:a,", "shm:,a",
        "shm:a,,b", "shm:a?x", "shm:a?=1", "shm:a?x=1&x=2", "shm:a?x=1&", "shm:a?&x=1"}) {
    Uri uri = before;
    const Status status = ParseUri(text, &uri);
    EXPECT_TRUE(status.IsInvalidArgument()) << text;
    EXPECT_NE(std::string::npos, status.ToString().find("'" + std::string(text) + "'")) << text;
    EXPECT_EQ("kept", uri.scheme) << text;
  }
}

TEST(UriTest, RandomTextsRoundTrip) {
  Random random(TestSeed(305));
  static constexpr char kAlphabet[] = "ab:,?&=/1";
  int accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string text(random.Uniform(14), ' ');
    for (char& c : text) c = kAlphabet[random.Uniform(sizeof(kAlphabet) - 1)];
    Uri uri;
    if (!ParseUri(text, &uri).ok()) continue;
    ++accepted;
    Uri again;
    ASSERT_TRUE(ParseUri(uri.ToString(), &again).ok()) << text;
    ASSERT_EQ(uri.ToString(), again.ToString());
    ASSERT_EQ(uri.addresses, again.addresses);
    ASSERT_EQ(uri.parameters, again.parameters);
  }
  EXPECT_GT(accepted, 100);
}

TEST(ParseSizeTest, Reads) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"0", 0},
      {"64", 64},
      {"64K", 64 << 10},
      {"64k", 64 << 10},
      {"64KB", 64 << 10},
      {"64KiB", 64 << 10},
      {"3mib", 3 << 20},
      {"1GiB", 1 << 30},
      {"2TB", uint64_t{2} << 40},
      {"18446744073709551615", UINT64_MAX},
      {"16777215T", uint64_t{16777215} << 40},
  };
  for (const auto& [text, expected] : cases) {
    uint64_t bytes = 1;
    EXPECT_TRUE(ParseSize(text, &bytes).ok()) << text;
    EXPECT_EQ(expected, bytes) << text;
  }
}

TEST(ParseSizeTest, RefusesAndNames) {
  for (const char* text : {"", "K", "-1", "+1", "1.5G", "1 G", "1GiBs", "1Gi", "1P", "1bK", " 1",
                           "0x10", "18446744073709551616", "16777216T", "99999999999999999999"}) {
    uint64_t bytes = 77;
    const Status status = ParseSize(text, &bytes);
    EXPECT_TRUE(status.IsInvalidArgument()) << text;
    EXPECT_NE(std::string::npos, status.ToString().find("'" + std::string(text) + "'")) << text;
    EXPECT_EQ(77U, bytes);
  }
}

TEST(ParseNumberTest, KeepsToItsRange) {
  uint64_t value = 77;
  EXPECT_TRUE(ParseNumber("1", 1, 8, &value).ok());
  EXPECT_EQ(1U, value);
  EXPECT_TRUE(ParseNumber("8", 1, 8, &value).ok());
  EXPECT_EQ(8U, value);
  EXPECT_TRUE(ParseNumber("18446744073709551615", 0, UINT64_MAX, &value).ok());
  EXPECT_EQ(UINT64_MAX, value);
  for (const char* text : {"", "0", "9", "-1", "3x", "3.0", " 3", "18446744073709551617"}) {
    const Status status = ParseNumber(text, 1, 8, &value);
    EXPECT_TRUE(status.IsInvalidArgument()) << text;
    EXPECT_NE(std::string::npos, status.ToString().find("from 1 to 8")) << text;
  }
}

TEST(FormatBytesTest, ReadsWell) {
  EXPECT_EQ("0 B", FormatBytes(0));
  EXPECT_EQ("1023 B", FormatBytes(1023));
  EXPECT_EQ("1.0 KiB", FormatBytes(1024));
  EXPECT_EQ("1.5 GiB", FormatBytes(uint64_t{3} << 29));
  EXPECT_EQ("1.0 MiB", FormatBytes((1 << 20) - 1));
  EXPECT_EQ("16.0 EiB", FormatBytes(UINT64_MAX));
}

}  // namespace
}  // namespace nacre
