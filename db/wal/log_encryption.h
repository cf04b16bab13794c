#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"
#include "util/crypto/aead_pool.h"
#include "util/crypto/key_ring.h"
#include "util/mutex.h"

namespace nacre {

// The payload of a record in the log of an encrypted database:
//
//     0  1  kEncryptedPayload, which no update begins with
//     1  8  fixed64 epoch of the owner that wrote it
//     9  n  the updates, sealed
//        16 tag
//
// Each owner has a key of its own, derived from the operator's by the database's id and the owner's
// epoch, neither of which comes again. The nonce is the first sequence of the record, which an
// owner gives out once; the number of updates is associated.

/// Seals what an owner writes to the log.
///
/// Thread safety: Encrypt may be called from many threads at once.
class LogEncryptor {
 public:
  static Status Make(const KeyRing& ring, uint64_t database_id, uint64_t epoch,
                     std::unique_ptr<LogEncryptor>* encryptor);

  /// The payload for the concatenated `parts`.
  Status Encrypt(SequenceNumber first, uint32_t count, std::span<const Slice> parts,
                 std::string* payload);

 private:
  LogEncryptor(const SecretKey& key, uint64_t epoch) : epoch_(epoch), aeads_(key) {}

  const uint64_t epoch_;
  AeadPool aeads_;
};

/// Opens what owners wrote.
///
/// Thread safety: Decrypt may be called from many threads at once.
class LogDecryptor {
 public:
  /// `ring` may be null: then only what is not sealed can be read.
  LogDecryptor(std::shared_ptr<const KeyRing> ring, uint64_t database_id)
      : ring_(std::move(ring)), database_id_(database_id) {}

  static bool IsEncrypted(const Slice& payload);
  /// `*updates` are those of a payload. `to` has room for as many bytes as the payload, and may be
  /// where it lies; it is not used if the payload is not sealed. `InvalidArgument` if there is no
  /// key, or none that opens it, which is also what a record looks like that was changed.
  Status Decrypt(SequenceNumber first, uint32_t count, const Slice& payload, char* to,
                 Slice* updates) EXCLUDES(mutex_);

 private:
  std::shared_ptr<AeadPool> Known(uint64_t epoch) EXCLUDES(mutex_);

  const std::shared_ptr<const KeyRing> ring_;
  const uint64_t database_id_;
  Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<AeadPool>> by_epoch_ GUARDED_BY(mutex_);
};

}  // namespace nacre
