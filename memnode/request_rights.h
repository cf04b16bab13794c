#pragma once

#include <cstdint>
#include <string>

#include "nacre/status.h"
#include "pool/wire/messages.h"
#include "pool/wire/rights.h"

namespace nacre::pool {

/// What a request needs of the secret that its sender has proven to know.
struct NeededRight {
  enum class Kind : uint8_t {
    kRead,        ///< Any secret will do.
    kWriteNamed,  ///< To write to the database of this name, which need not exist.
    kWriteKnown,  ///< To write to the database that has this id here.
    kAdminister,
  };

  Kind kind = Kind::kAdminister;
  std::string database{};    ///< For kWriteNamed.
  uint64_t database_id = 0;  ///< For kWriteKnown.
};

/// A kind that this has not been told of needs kAdminister.
NeededRight RightNeededFor(const control::Request& request);

/// OK if `rights`, of the secret `name`, are enough; else `NotSupported` naming what is missing.
/// `database`: the name behind NeededRight::database_id, or null if there is no such database. What
/// a writer says of one of these goes through to the request, which then fails for want of it.
Status CheckRight(const NeededRight& needed, const Rights& rights, const std::string& name,
                  const std::string* database);

}  // namespace nacre::pool
