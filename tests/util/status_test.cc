// Goal: a Status keeps its code and message through copies, moves, context and the wire.
// Method: one case per promise of the header.

#include "nacre/status.h"

#include <gtest/gtest.h>

#include <utility>

namespace nacre {
namespace {

TEST(StatusTest, SuccessIsTheDefault) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ("OK", status.ToString());
  EXPECT_EQ("", status.message());
  EXPECT_EQ(Status::OK(), status);
}

TEST(StatusTest, EachPredicateHoldsForItsCodeAlone) {
  const Status all[] = {Status::OK(),
                        Status::NotFound("m"),
                        Status::Corruption("m"),
                        Status::NotSupported("m"),
                        Status::InvalidArgument("m"),
                        Status::IOError("m"),
                        Status::Incomplete("m"),
                        Status::ShutdownInProgress("m"),
                        Status::TimedOut("m"),
                        Status::Aborted("m"),
                        Status::Busy("m"),
                        Status::TryAgain("m"),
                        Status::NoSpace("m"),
                        Status::Unavailable("m"),
                        Status::Fenced("m")};
  bool (Status::*const predicates[])() const = {&Status::ok,
                                                &Status::IsNotFound,
                                                &Status::IsCorruption,
                                                &Status::IsNotSupported,
                                                &Status::IsInvalidArgument,
                                                &Status::IsIOError,
                                                &Status::IsIncomplete,
                                                &Status::IsShutdownInProgress,
                                                &Status::IsTimedOut,
                                                &Status::IsAborted,
                                                &Status::IsBusy,
                                                &Status::IsTryAgain,
                                                &Status::IsNoSpace,
                                                &Status::IsUnavailable,
                                                &Status::IsFenced};
  for (size_t i = 0; i < std::size(all); ++i) {
    const Status& status = all[i];
    for (size_t j = 0; j < std::size(predicates); ++j) {
      // Apart from the call: g++ 12 with UBSan uses the index before it is set in
      // `(status.*predicates[j])()`.
      const auto predicate = predicates[j];
      EXPECT_EQ(i == j, (status.*predicate)()) << status.ToString() << ", predicate " << j;
    }
    // The numbers cross the wire.
    EXPECT_EQ(static_cast<int>(i), static_cast<int>(status.code()));
  }
}

TEST(StatusTest, CopiesAndMovesKeepTheMessage) {
  Status original = Status::Unavailable("node 3");
  Status copy = original;
  EXPECT_EQ("Unavailable: node 3", copy.ToString());
  EXPECT_EQ("Unavailable: node 3", original.ToString());
  const Status moved = std::move(original);
  EXPECT_EQ("Unavailable: node 3", moved.ToString());
  copy = Status::OK();
  EXPECT_EQ("OK", copy.ToString());
  copy = moved;
  EXPECT_EQ("node 3", copy.message());
  Status& alias = copy;
  copy = alias;
  EXPECT_EQ("node 3", copy.message());
}

TEST(StatusTest, ContextComesBeforeTheMessage) {
  EXPECT_EQ("Corruption: table 7: bad checksum",
            Status::Corruption("bad checksum").WithContext("table 7").ToString());
  EXPECT_EQ("NotFound: key", Status::NotFound().WithContext("key").ToString());
  EXPECT_TRUE(Status::OK().WithContext("table 7").ok());
}

TEST(StatusTest, CrossesTheWire) {
  for (int code = 0; code <= static_cast<int>(Status::Code::kFenced); ++code) {
    const Status status = Status::FromCode(code, code == 0 ? "" : "why");
    EXPECT_EQ(code, static_cast<int>(status.code()));
    EXPECT_EQ(code == 0 ? "" : "why", status.message());
  }
  for (const int unknown : {-1, 15, 255, 256, 1 << 20}) {
    const Status status = Status::FromCode(unknown, "why");
    EXPECT_TRUE(status.IsIOError()) << unknown;
    EXPECT_NE(std::string::npos, status.ToString().find("why"));
    EXPECT_NE(std::string::npos, status.ToString().find(std::to_string(unknown)));
  }
}

Status FailsAt(int step) {
  NACRE_RETURN_IF_ERROR(step == 1 ? Status::Busy("one") : Status::OK());
  NACRE_RETURN_IF_ERROR(step == 2 ? Status::NoSpace("two") : Status::OK());
  return Status::OK();
}

TEST(StatusTest, ReturnIfError) {
  EXPECT_TRUE(FailsAt(0).ok());
  EXPECT_TRUE(FailsAt(1).IsBusy());
  EXPECT_TRUE(FailsAt(2).IsNoSpace());
}

}  // namespace
}  // namespace nacre
