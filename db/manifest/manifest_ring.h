#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/wire/manifest_image.h"

namespace nacre {

/// The ring of edits behind a manifest's image: how an entry looks, and whether one is there.
///
/// Entries lie one after the other at multiples of kAlignment. Before each a terminator is written,
/// zeros where the header of the next one will be: a reader that finds an entry finds its
/// terminator, however little was written after that. An entry that does not fit before the end is
/// at the beginning, and a marker stands where it would have been. So a reader that knows where an
/// entry has to be sees there one of:
///
///   - the entry: it may count, whether or not it was acknowledged;
///   - the terminator, or, at the beginning of the ring, an entry of an earlier lap: the entry was
///     not written here, hence not acknowledged;
///   - a beginning of the entry, or of its header, without its last bytes: likewise;
///   - anything else: damage. If no replica is better, what was here is unknown.
///
/// Bytes of another manifest in the same memory are none of these: checksums are seeded with the
/// manifest's identity.
class ManifestRing {
 public:
  static constexpr size_t kAlignment = 32;
  static constexpr size_t kHeaderBytes = 32;
  static constexpr size_t kTerminatorBytes = kHeaderBytes;

  explicit ManifestRing(const pool::ManifestIdentity& identity);

  /// Bytes of the entry for an edit of `edit_bytes`, terminator not counted.
  static constexpr size_t EntryBytes(size_t edit_bytes) {
    const size_t bytes = kHeaderBytes + edit_bytes + kTrailerBytes;
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  /// Appends entry and terminator.
  void EncodeEntry(uint64_t version, const Slice& edit, std::string* dst) const;
  /// Appends the marker, of kHeaderBytes: the entry of `version` is at the beginning of the ring.
  void EncodeWrap(uint64_t version, std::string* dst) const;

  enum class Found { kEntry, kWrap, kNothing, kDamage };
  struct Entry {
    Found found = Found::kNothing;
    Slice edit{};       ///< For an entry: its bytes.
    uint64_t next = 0;  ///< For an entry: where the one after it has to be.
  };
  /// What is where the entry of `version` has to be. Safe on any bytes and positions.
  Entry Read(const Slice& ring, uint64_t position, uint64_t version) const;

 private:
  static constexpr size_t kTrailerBytes = 8;

  void EncodeHeader(uint32_t kind, uint64_t version, const Slice& edit, char* dst) const;

  const uint64_t epoch_;
  const uint32_t seed_;
};

}  // namespace nacre
