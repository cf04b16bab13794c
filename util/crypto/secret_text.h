#pragma once

#include <cstddef>
#include <string>

#include "nacre/status.h"

namespace nacre {

/// The other users that may read a file with a secret, by its mode. A pipe has none.
struct SecretReaders {
  bool group = false;
  bool others = false;
};

/// Reads a file with a secret: all of it, or `most` + 1 bytes of a longer one. `IOError` naming the
/// file. No copy of it is left elsewhere; the caller wipes `*content` (util/crypto/secret_key.h).
Status ReadSecretText(const std::string& path, size_t most, std::string* content,
                      SecretReaders* readers);

}  // namespace nacre
