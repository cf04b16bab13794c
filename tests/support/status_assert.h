#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "nacre/status.h"

namespace nacre {

/// `EXPECT_TRUE(IsOk(db->Put(...)))`: a failure shows what the status says.
inline testing::AssertionResult IsOk(const Status& status) {
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.ToString();
}

/// The code, and a message that names the culprit.
inline testing::AssertionResult IsFailure(const Status& status, Status::Code code,
                                          std::string_view culprit = {}) {
  if (status.code() == code && status.ToString().find(culprit) != std::string::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << status.ToString() << ", expected code "
                                     << static_cast<int>(code) << " naming '" << culprit << "'";
}

}  // namespace nacre
