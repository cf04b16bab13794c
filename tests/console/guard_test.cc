// Goal: the console answers only those that may ask it: by its own names, with the token.
// Method: headers as browsers and attackers send them; files with tokens, good and bad.

#include "console/guard.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"

namespace nacre::console {
namespace {

constexpr const char* kGoodToken = "0123456789abcdef0123456789abcdef";

TEST(GuardTest, ListenAddressesAreHostAndPort) {
  ListenAddress address;
  ASSERT_TRUE(IsOk(ParseListenAddress("127.0.0.1:8080", &address)));
  EXPECT_EQ(address.host, "127.0.0.1");
  EXPECT_EQ(address.port, 8080);
  ASSERT_TRUE(IsOk(ParseListenAddress("[::1]:0", &address)));
  EXPECT_EQ(address.host, "::1");
  EXPECT_EQ(address.port, 0);
  for (const std::string text : {"", "8080", ":8080", "host", "host:", "host:99999", "host:x",
                                 "::1:80", "[::1]", "[::1:80", "[host]:80"}) {
    const Status status = ParseListenAddress(text, &address);
    EXPECT_TRUE(status.IsInvalidArgument()) << text;
    EXPECT_NE(status.ToString().find("'" + text + "'"), std::string::npos) << status.ToString();
  }
}

TEST(GuardTest, OnlyLoopbackIsLoopback) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost", "LocalHost"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.com", "example.com",
                           "::ffff:127.0.0.1", ""}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

TEST(GuardTest, NamesFromElsewhereAreNotKnown) {
  const Guard guard("", {"Pool.example.com"}, "session");
  for (const char* host : {"127.0.0.1:8080", "localhost", "LOCALHOST:80", "[::1]:8080", "10.1.2.3",
                           "pool.example.com:8080", "POOL.EXAMPLE.COM"}) {
    EXPECT_TRUE(guard.KnowsHost(host)) << host;
  }
  for (const char* host : {"", "evil.example.com", "evil.example.com:8080", "127.0.0.1.evil.com",
                           "[::1", "[::1]x", "pool.example.com.evil.com", "localhost.evil.com"}) {
    EXPECT_FALSE(guard.KnowsHost(host)) << host;
  }
}

TEST(GuardTest, TheTokenOrItsSessionAdmits) {
  const Guard guard(kGoodToken, {}, "0011223344");
  EXPECT_TRUE(guard.asks_for_token());
  EXPECT_TRUE(guard.IsToken(kGoodToken));
  EXPECT_TRUE(guard.Admits(std::string("Bearer ") + kGoodToken, ""));
  EXPECT_TRUE(guard.Admits("", "nacre_console=0011223344"));
  EXPECT_TRUE(guard.Admits("", "a=b; nacre_console=wrong; nacre_console=0011223344; c=d"));
  for (const std::string& authorization :
       {std::string(), std::string(kGoodToken), std::string("Bearer "),
        std::string("Bearer ") + kGoodToken + "x", std::string("Basic ") + kGoodToken,
        std::string("Bearer 0123456789abcdef0123456789abcdeF")}) {
    EXPECT_FALSE(guard.Admits(authorization, "")) << authorization;
  }
  // The token itself is no session, and nothing else is.
  for (const std::string& cookie :
       {std::string("nacre_console="), std::string("nacre_console"),
        std::string("nacre_console=") + kGoodToken, std::string("nacre_console=00112233440"),
        std::string("nacre_console2=0011223344"), std::string(";;; ;")}) {
    EXPECT_FALSE(guard.Admits("", cookie)) << cookie;
  }
  const std::string cookie = guard.SetCookie();
  for (const char* part : {"nacre_console=0011223344;", "HttpOnly", "SameSite=Strict", "Path=/"}) {
    EXPECT_NE(cookie.find(part), std::string::npos) << cookie;
  }
  EXPECT_EQ(cookie.find(kGoodToken), std::string::npos);
}

class TokenFileTest : public testing::Test {
 protected:
  Status Read(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_, std::ios::trunc) << text;
    EXPECT_EQ(::chmod(path_.c_str(), mode), 0);
    return ReadTokenFile(path_, &token_, &open_to_all_);
  }

  const TempFolder folder_;
  const std::string path_ = folder_.path() + "/token";
  std::string token_;
  bool open_to_all_ = false;
};

TEST_F(TokenFileTest, TheFirstLineIsTheToken) {
  ASSERT_TRUE(IsOk(Read(std::string(kGoodToken) + "\nwhat follows is not\n")));
  EXPECT_EQ(token_, kGoodToken);
  EXPECT_FALSE(open_to_all_);
  ASSERT_TRUE(IsOk(Read(kGoodToken, 0644)));
  EXPECT_EQ(token_, kGoodToken);
  EXPECT_TRUE(open_to_all_);
}

TEST_F(TokenFileTest, WhatIsNoTokenIsRefusedAndNotTold) {
  for (const std::string& text :
       {std::string(), std::string("\n") + kGoodToken, std::string("short"),
        std::string("with spaces in the line"), std::string(1025, 'x'),
        std::string("carriage-return-here\r\n")}) {
    const Status status = Read(text);
    EXPECT_TRUE(status.IsInvalidArgument()) << text;
    EXPECT_NE(status.ToString().find(path_), std::string::npos) << status.ToString();
    EXPECT_EQ(status.ToString().find("carriage"), std::string::npos) << status.ToString();
  }
  const Status status = ReadTokenFile(path_ + "-not-there", &token_, &open_to_all_);
  EXPECT_TRUE(status.IsIOError()) << status.ToString();
}

}  // namespace
}  // namespace nacre::console
