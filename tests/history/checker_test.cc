// Goal: the checker refuses what no database may answer, and nothing else.
// Method: histories made by hand, each with one fault or none.

#include <gtest/gtest.h>

#include <fstream>
#include <ostream>
#include <string>

#include "tests/history/run_checker.h"
#include "tests/support/temp_folder.h"

namespace nacre {
namespace {

/// A history made by hand, and what the checker says of it by key and by group.
struct MadeHistory {
  const char* name;
  int by_key;
  int by_group;
  const char* lines;

  friend std::ostream& operator<<(std::ostream& out, const MadeHistory& made) {
    return out << made.name;
  }
};

const MadeHistory kMadeHistories[] = {
    {"ConcurrentWritesInEitherOrder", kExplained, kExplained,
     R"({"client":0,"call":10,"return":40,"op":"write","keys":["g/a"],"values":["0.1"]}
{"client":1,"call":20,"return":30,"op":"write","keys":["g/a"],"values":["1.1"]}
{"client":1,"call":50,"return":60,"op":"read","keys":["g/a"],"values":["0.1"]})"},
    {"StaleRead", kNotExplained, kNotExplained,
     R"({"client":0,"call":10,"return":20,"op":"write","keys":["g/a"],"values":["0.1"]}
{"client":0,"call":30,"return":40,"op":"write","keys":["g/a"],"values":["0.2"]}
{"client":1,"call":50,"return":60,"op":"read","keys":["g/a"],"values":["0.1"]})"},
    {"LostWrite", kNotExplained, kNotExplained,
     R"({"client":0,"call":10,"return":20,"op":"write","keys":["g/a"],"values":["0.1"]}
{"client":1,"call":30,"return":40,"op":"read","keys":["g/a"],"values":[null]})"},
    {"DeletedAndStillThere", kNotExplained, kNotExplained,
     R"({"client":0,"call":10,"return":20,"op":"write","keys":["g/a"],"values":["0.1"]}
{"client":0,"call":30,"return":40,"op":"write","keys":["g/a"],"values":[null]}
{"client":1,"call":50,"return":60,"op":"read","keys":["g/a"],"values":["0.1"]})"},
    {"ReadBeforeItWasWritten", kNotExplained, kNotExplained,
     R"({"client":1,"call":10,"return":20,"op":"read","keys":["g/a"],"values":["0.1"]}
{"client":0,"call":30,"return":40,"op":"write","keys":["g/a"],"values":["0.1"]})"},
    {"NobodyWroteIt", kNotExplained, kNotExplained,
     R"({"client":1,"call":10,"return":20,"op":"read","keys":["g/a"],"values":["7.7"]})"},
    {"TornBatch", kExplained, kNotExplained,
     R"({"client":0,"call":10,"return":40,"op":"write","keys":["g/a","g/b"],"values":["0.1","0.2"]}
{"client":1,"call":20,"return":30,"op":"read","keys":["g/a","g/b"],"values":["0.1",null]})"},
    {"WholeBatch", kExplained, kExplained,
     R"({"client":0,"call":10,"return":40,"op":"write","keys":["g/a","g/b"],"values":["0.1","0.2"]}
{"client":1,"call":20,"return":30,"op":"read","keys":["g/a","g/b"],"values":["0.1","0.2"]})"},
    {"SnapshotsThatDisagreeOnTheOrderOfTwoWrites", kExplained, kNotExplained,
     R"({"client":0,"call":10,"return":90,"op":"write","keys":["g/a"],"values":["0.1"]}
{"client":1,"call":10,"return":90,"op":"write","keys":["g/b"],"values":["1.1"]}
{"client":2,"call":20,"return":80,"op":"read","keys":["g/a","g/b"],"values":["0.1",null]}
{"client":3,"call":20,"return":80,"op":"read","keys":["g/a","g/b"],"values":[null,"1.1"]})"},
    {"AnUnknownWriteMayTakeEffectLate", kExplained, kExplained,
     R"({"client":0,"call":10,"return":0,"op":"write","keys":["g/a"],"values":["0.1"]}
{"client":1,"call":20,"return":30,"op":"read","keys":["g/a"],"values":[null]}
{"client":1,"call":40,"return":50,"op":"read","keys":["g/a"],"values":["0.1"]})"},
    {"AnUnknownWriteMayNotComeAndGo", kNotExplained, kNotExplained,
     R"({"client":0,"call":10,"return":0,"op":"write","keys":["g/a"],"values":["0.1"]}
{"client":1,"call":20,"return":30,"op":"read","keys":["g/a"],"values":["0.1"]}
{"client":1,"call":40,"return":50,"op":"read","keys":["g/a"],"values":[null]})"},
    {"HalfOfAnUnknownBatch", kExplained, kNotExplained,
     R"({"client":0,"call":10,"return":0,"op":"write","keys":["g/a","g/b"],"values":["0.1","0.2"]}
{"client":1,"call":20,"return":30,"op":"read","keys":["g/a","g/b"],"values":["0.1",null]})"},
    {"AnUnknownDeleteTakesEffectOnce", kNotExplained, kNotExplained,
     R"({"client":0,"call":10,"return":20,"op":"write","keys":["g/a"],"values":["0.1"]}
{"client":0,"call":30,"return":0,"op":"write","keys":["g/a"],"values":[null]}
{"client":1,"call":40,"return":50,"op":"read","keys":["g/a"],"values":[null]}
{"client":1,"call":60,"return":70,"op":"write","keys":["g/a"],"values":["1.1"]}
{"client":1,"call":80,"return":90,"op":"read","keys":["g/a"],"values":[null]})"},
    {"NoJson", kNoHistory, kNoHistory, "put a 1"},
    {"WrittenTwice", kNoHistory, kNoHistory,
     R"({"client":0,"call":10,"return":20,"op":"write","keys":["g/a"],"values":["0.1"]}
{"client":0,"call":30,"return":40,"op":"write","keys":["g/a"],"values":["0.1"]})"},
    {"Nothing", kNoHistory, kNoHistory, ""},
};

class HistoryCheckerTest : public testing::TestWithParam<MadeHistory> {};

INSTANTIATE_TEST_SUITE_P(Made, HistoryCheckerTest, testing::ValuesIn(kMadeHistories),
                         [](const auto& made) { return std::string(made.param.name); });

TEST_P(HistoryCheckerTest, TellsRightFromWrong) {
  const TempFolder folder;
  const std::string path = folder.File("history");
  std::ofstream(path) << GetParam().lines << (*GetParam().lines == '\0' ? "" : "\n");
  const ProcessResult by_key = RunChecker("keys", path);
  EXPECT_EQ(by_key.exit_code, GetParam().by_key) << by_key.output;
  const ProcessResult by_group = RunChecker("groups", path);
  EXPECT_EQ(by_group.exit_code, GetParam().by_group) << by_group.output;
}

}  // namespace
}  // namespace nacre
