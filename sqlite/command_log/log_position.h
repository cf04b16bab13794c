#pragma once

#include <cstdint>
#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "util/coding.h"

namespace nacre::sqlite {

/// How far a database is in its command log: the log's id, and the last transaction that was made.
/// In the catalogue as fixed64, varint; written with the transaction itself.
struct LogPosition {
  uint64_t log_id = 0;
  uint64_t number = 0;
};

inline std::string EncodeLogPosition(const LogPosition& position) {
  std::string value;
  PutFixed64(&value, position.log_id);
  PutVarint64(&value, position.number);
  return value;
}

inline Status DecodeLogPosition(Slice value, LogPosition* position) {
  if (GetFixed64(&value, &position->log_id) && GetVarint64(&value, &position->number)) {
    return Status::OK();
  }
  return Status::Corruption("catalogue: the place in the command log");
}

}  // namespace nacre::sqlite
