#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "util/crypto/secret_key.h"

struct evp_cipher_ctx_st;

namespace nacre {

/// Seals and opens bytes with one key, by AES-256-GCM of OpenSSL: what is sealed can be neither
/// read nor changed without the key. The key's schedule is computed once, so that small pieces are
/// cheap.
///
/// Two pieces must never be sealed with the same nonce of the same key: with both of them they
/// could be read, and others be forged. Callers give each writer a key of its own (DeriveSecretKey
/// with a salt that is drawn), and number or place what it writes.
///
/// Thread safety: none.
class Aead {
 public:
  static constexpr size_t kTagBytes = 16;
  using Nonce = std::array<char, 12>;
  /// That of a number, such as an offset.
  static Nonce NonceOf(uint64_t number);

  explicit Aead(const SecretKey& key);
  ~Aead();
  Aead(const Aead&) = delete;
  Aead& operator=(const Aead&) = delete;

  /// Writes as many bytes as `plain` has to `to`, which may be where these are, and their tag. The
  /// tag is of `associated`, too, which is not sealed. `IOError` if OpenSSL fails.
  Status Seal(const Nonce& nonce, const Slice& associated, const Slice& plain, char* to, char* tag);
  /// The reverse. `Corruption` if anything is not as it was sealed: then `to` has nothing of use.
  Status Open(const Nonce& nonce, const Slice& associated, const Slice& sealed, const char* tag,
              char* to);

 private:
  struct FreeContext {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  using Context = std::unique_ptr<evp_cipher_ctx_st, FreeContext>;

  /// The context for one direction, with the key and this nonce; null if OpenSSL fails.
  evp_cipher_ctx_st* Begin(Context* context, bool seal, const Nonce& nonce);

  const SecretKey key_;
  Context sealing_;
  Context opening_;
};

}  // namespace nacre
