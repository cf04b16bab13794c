#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "util/crypto/aead.h"
#include "util/crypto/aead_pool.h"
#include "util/crypto/secret_key.h"

namespace nacre {

// An encrypted table. Its bytes are sealed in cells of kCellBytes by AES-256-GCM, each with its tag
// behind it; only the last one is shorter. What the nodes have, code, repair and check are these
// stored bytes; offsets in a table's meta are of the plain ones.
//
// Each table has a key of its own, derived from one of the operator's by a salt that is drawn for
// the table and by its name. The nonce of a cell is its number. A cell is sealed once: tables are
// never changed, and one that is written again has another salt.

inline constexpr uint64_t kCellBytes = 1024;
inline constexpr uint64_t kStoredCellBytes = kCellBytes + Aead::kTagBytes;

/// What so many plain bytes take.
constexpr uint64_t StoredBytes(uint64_t plain) {
  return plain + (plain + kCellBytes - 1) / kCellBytes * Aead::kTagBytes;
}
/// How many plain bytes are in so many stored ones.
constexpr uint64_t PlainBytes(uint64_t stored) {
  const uint64_t rest = stored % kStoredCellBytes;
  return stored / kStoredCellBytes * kCellBytes +
         (rest > Aead::kTagBytes ? rest - Aead::kTagBytes : 0);
}

/// How one table is sealed. Its key is there once it was asked for (TableKeys).
///
/// Thread safety: const methods from many threads at once.
class TableSeal {
 public:
  static constexpr size_t kSaltBytes = 32;
  enum class Bound : uint8_t { kSmallest, kLargest };

  /// Without a key. The bounds are sealed; empty: they are not known.
  explicit TableSeal(std::string key_id, std::string salt, std::string smallest = {},
                     std::string largest = {})
      : key_id_(std::move(key_id)),
        salt_(std::move(salt)),
        smallest_(std::move(smallest)),
        largest_(std::move(largest)) {}
  /// `other` with a key.
  TableSeal(const TableSeal& other, const SecretKey& key)
      : TableSeal(other.key_id_, other.salt_, other.smallest_, other.largest_) {
    aeads_ = std::make_shared<AeadPool>(key);
  }

  /// ID of the operator's key.
  const std::string& key_id() const { return key_id_; }
  const std::string& salt() const { return salt_; }
  const std::string& smallest() const { return smallest_; }
  const std::string& largest() const { return largest_; }
  bool has_key() const { return aeads_ != nullptr; }

  // With the key:

  /// The same with the bounds of a table that is finished.
  Status WithBounds(const Slice& smallest, const Slice& largest,
                    std::shared_ptr<const TableSeal>* seal) const;
  /// `Corruption`: it was not sealed like this.
  Status OpenBound(Bound bound, std::string* plain) const;

  /// Seals the cells from number `first` on. `to` has room for StoredBytes(plain.size()).
  Status SealCells(uint64_t first, const Slice& plain, char* to) const;
  /// Opens them. What does not match its tag becomes bytes that are no record, no index and no
  /// meta, so that readers take them for damaged. `to` has room for PlainBytes(stored.size()).
  Status OpenCells(uint64_t first, const Slice& stored, char* to) const;

 private:
  std::string key_id_;
  std::string salt_;
  std::string smallest_;
  std::string largest_;
  std::shared_ptr<AeadPool> aeads_;  ///< Null: it has no key.
};

}  // namespace nacre
