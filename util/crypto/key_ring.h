#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/status.h"
#include "util/crypto/secret_key.h"

namespace nacre {

/// Keys by which files are sealed, with their IDs, as an operator's key file has them:
///
///     # a comment, or nothing
///     ID HEX        such as  2026-11 4f0c...9a   with 64 hexadecimal digits
///
/// The first one seals; all of them open. So a key is replaced by putting another one before it,
/// and goes when no file names it any more. An ID has 1 to 32 characters of A-Z a-z 0-9 . _ -
///
/// Thread safety: const methods from many threads at once.
class KeyRing {
 public:
  static constexpr size_t kMaxIdBytes = 32;
  struct Key {
    std::string id;
    SecretKey key{};
  };

  /// Reads a key file. `IOError` if it cannot be read; `InvalidArgument` if its group or others may
  /// read it, or as Parse. Messages name the file, and never tell a key.
  static Status Read(const std::string& path, std::shared_ptr<const KeyRing>* ring);
  /// Safe on any bytes. `InvalidArgument` naming the line that makes no sense, or an ID that is
  /// there twice; also for a file without keys.
  static Status Parse(std::string_view content, KeyRing* ring);

  /// The one that seals.
  const Key& first() const { return keys_.front(); }
  const std::vector<Key>& keys() const { return keys_; }
  /// Null if there is none with that ID.
  const SecretKey* Find(std::string_view id) const;
  /// The file that they were read from, for messages.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<Key> keys_;
};

/// Whether that may be the ID of a key.
bool IsKeyId(std::string_view id);

}  // namespace nacre
