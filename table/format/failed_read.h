#pragma once

#include <utility>

#include "nacre/status.h"
#include "table/format/extent.h"

namespace nacre {

/// A read that could not even be started.
class FailedRead final : public PendingRead {
 public:
  explicit FailedRead(Status status) : status_(std::move(status)) {}
  Status Await(Slice* /*bytes*/) override { return status_; }

 private:
  const Status status_;
};

}  // namespace nacre
