#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

/// 32 secret bytes, such as a key of AES-256. They are overwritten when the object goes.
/// Thread safety: const methods from many threads at once.
class SecretKey {
 public:
  static constexpr size_t kBytes = 32;

  SecretKey() = default;
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey();

  char* data() { return bytes_.data(); }
  const char* data() const { return bytes_.data(); }
  Slice bytes() const { return {bytes_.data(), bytes_.size()}; }

 private:
  std::array<char, kBytes> bytes_{};
};

/// Overwrites a text that had a secret, and empties it.
void WipeSecret(std::string* text);

/// Fills `to` with random bytes of the system; `IOError` if there are none. At most 256 bytes.
Status DrawRandomBytes(size_t n, char* to);

/// Derives a key from a secret by HKDF-SHA256 (RFC 5869). Another salt or another purpose gives
/// another key, of which nothing tells the others or the secret. `IOError` if OpenSSL fails.
Status DeriveSecretKey(const Slice& secret, const Slice& salt, const Slice& purpose,
                       SecretKey* key);

}  // namespace nacre
