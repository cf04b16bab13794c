// Goal: requests are the same however the bytes arrive, and what is none is refused with Redis's
// words. Method: the same bytes whole, byte by byte, and cut at random; limits one below and above.

#include "server/resp/request_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::server {
namespace {

using Words = std::vector<std::string>;
using Result = RequestParser::Result;

/// All requests of `bytes`, which arrive in pieces of at most `piece`; the error comes last.
std::vector<Words> Parse(const std::string& bytes, size_t piece, const RequestLimits& limits = {}) {
  RequestParser parser(&limits);
  std::vector<Words> all;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    parser.Append(std::string_view(bytes).substr(at, piece));
    Request request;
    Result result;
    while ((result = parser.Next(&request)) == Result::kRequest) {
      all.emplace_back(request.args.begin(), request.args.end());
    }
    if (result == Result::kError) {
      all.push_back({"error", parser.error()});
      break;
    }
  }
  return all;
}

std::string Encoded(const Words& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return bytes;
}

TEST(RequestParserTest, TakesArraysAndLinesInAnyPieces) {
  const std::string bytes = Encoded({"SET", "key", std::string("a\r\n\0b", 5)}) +
                            "PING\r\n\r\n*0\r\n  ECHO   \"two words\\x41\\n\" 'it\\'s'\n" +
                            Encoded({"GET", ""}) + "*-1\r\n" + Encoded({"LAST"});
  const std::vector<Words> expected = {{"SET", "key", std::string("a\r\n\0b", 5)},
                                       {"PING"},
                                       {"ECHO", "two wordsA\n", "it's"},
                                       {"GET", ""},
                                       {"LAST"}};
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    EXPECT_EQ(Parse(bytes, piece), expected) << "pieces of " << piece;
  }
}

TEST(RequestParserTest, TakesRandomRequests) {
  Random random(TestSeed(1));
  for (int round = 0; round < 200; ++round) {
    std::vector<Words> expected;
    std::string bytes;
    for (uint64_t i = random.Uniform(20); i > 0; --i) {
      Words words;
      for (uint64_t n = random.Uniform(5) + 1; n > 0; --n) {
        std::string word;
        for (uint64_t size = random.Skewed(12); size > 0; --size) {
          word.push_back(static_cast<char>(random.Uniform(256)));
        }
        words.push_back(word);
      }
      bytes += Encoded(words);
      expected.push_back(words);
    }
    EXPECT_EQ(Parse(bytes, random.Uniform(300) + 1), expected);
  }
}

TEST(RequestParserTest, RefusesWhatIsNoRequest) {
  const auto error = [](const std::string& bytes, const RequestLimits& limits = {}) {
    const std::vector<Words> all = Parse(bytes, 7, limits);
    return all.empty() || all.back()[0] != "error" ? "none" : all.back()[1];
  };
  EXPECT_EQ(error("*x\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(error("*20000000\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(error("*1\r\n!3\r\n"), "Protocol error: expected '$', got '!'");
  EXPECT_EQ(error("*1\r\n$x\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(error("*1\r\n$-1\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(error("SET \"a b\r\n"), "Protocol error: unbalanced quotes in request");
  const RequestLimits limits = {.bulk_bytes_max = 10, .args_max = 3, .line_bytes_max = 100};
  EXPECT_EQ(error(Encoded({"1234567890", "2", "3"}), limits), "none");
  EXPECT_EQ(error(Encoded({"12345678901"}), limits), "Protocol error: invalid bulk length");
  EXPECT_EQ(error(Encoded({"1", "2", "3", "4"}), limits),
            "Protocol error: invalid multibulk length");
  EXPECT_EQ(error(std::string(100, 'x'), limits), "none");
  EXPECT_EQ(error(std::string(120, 'x'), limits), "Protocol error: too big inline request");
  EXPECT_EQ(error("*" + std::string(120, '1'), limits),
            "Protocol error: too big mbulk count string");
  EXPECT_EQ(error("*1\r\n$" + std::string(120, '1'), limits),
            "Protocol error: too big bulk count string");
}

}  // namespace
}  // namespace nacre::server
