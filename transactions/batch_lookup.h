#pragma once

#include <cstdint>
#include <vector>

#include "nacre/slice.h"
#include "transactions/batch_index.h"

namespace nacre {

/// What an indexed batch knows of one key. Views the batch.
struct BatchLookup {
  enum class Base : uint8_t {
    kUnknown,  ///< The batch does not say.
    kValue,
    kDeleted,
  };
  Base base = Base::kUnknown;
  Slice value;
  std::vector<Slice> operands;  ///< Added since, oldest first.

  /// Whether the batch alone says what the key is.
  bool decided() const { return operands.empty() && base != Base::kUnknown; }
};

/// Looks up the updates of `key` in `index`.
BatchLookup LookUp(const BatchIndex& index, uint32_t family, const Slice& key);

}  // namespace nacre
