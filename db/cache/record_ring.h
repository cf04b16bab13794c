#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "nacre/slice.h"

namespace nacre {

/// The place of a record in its table. Tables do not change, and their ids are not used again, so
/// the same name always means the same bytes.
struct RecordName {
  uint64_t table_id = 0;
  uint64_t offset = 0;

  friend bool operator==(const RecordName&, const RecordName&) = default;
};

/// Records one behind another in a ring of memory: what was appended first goes first. An entry is
/// never moved, so a reader needs no lock: it copies, and then looks whether the entry is still
/// there.
///
///     | table id 64 | offset 40, length 24 | record | up to a multiple of 16 bytes |
///
/// No entry goes across the end of the ring; a gap, an entry of no table, fills the rest of it.
/// Positions grow for ever; an entry's is given in 44 bits of it.
///
/// Thread safety: Read may be called from many threads at once, and while another one changes the
/// ring, which one at a time may do.
class RecordRing {
 public:
  static constexpr size_t kUnit = 16;
  static constexpr int kPositionBits = 44;

  struct Entry {
    RecordName name;
    uint64_t position = 0;
    Slice record;
  };

  /// `memory` has `bytes`, a multiple of kUnit, is aligned to it, and outlives this.
  RecordRing(char* memory, size_t bytes);
  RecordRing(const RecordRing&) = delete;
  RecordRing& operator=(const RecordRing&) = delete;

  /// Copies the record of this name at `position` to `*buffer`, which `*record` then views. False:
  /// it is not there, or not any more.
  bool Read(uint64_t position, const RecordName& name, std::unique_ptr<char[]>* buffer,
            Slice* record) const;

  /// Whether the format has room for such numbers.
  static bool CanHold(const RecordName& name, size_t record_bytes);
  size_t capacity() const { return units_ * kUnit; }
  /// Bytes of entries and gaps. May be called from many threads at once.
  size_t used() const;

  // ---- For the one that changes it ----

  bool Fits(size_t record_bytes) const;
  /// Returns the position. It must fit, and CanHold must say so.
  uint64_t Append(const RecordName& name, const Slice& record);
  /// What was appended first of all that is here; nothing if the ring is empty.
  std::optional<Entry> Oldest();
  /// Drops what Oldest has answered.
  void DropOldest();
  /// Whether the entry at `position`, which is in the ring, has this name.
  bool Has(uint64_t position, const RecordName& name) const;

 private:
  struct Header {
    RecordName name;
    size_t length = 0;
  };

  static constexpr uint64_t kPositionMask = (uint64_t{1} << kPositionBits) - 1;

  static uint64_t UnitsOf(size_t record_bytes) {
    return (record_bytes + kUnit - 1) / kUnit + 1;  // One for the header.
  }
  char* At(uint64_t position) const { return memory_ + position % units_ * kUnit; }
  uint64_t UnitsToEnd(uint64_t position) const { return units_ - position % units_; }
  Header HeaderAt(uint64_t position) const;
  void PutHeader(uint64_t position, const Header& header);
  /// The whole of a position, from its low bits; nothing if it lies behind the ring.
  std::optional<uint64_t> WholeOf(uint64_t position, uint64_t tail) const;

  char* const memory_;
  const uint64_t units_;
  /// In units. Written by the one that changes the ring.
  std::atomic<uint64_t> head_;
  /// The same. It passes an entry before that is overwritten: the fence in Append pairs with the
  /// one in Read's copy.
  std::atomic<uint64_t> tail_;
};

}  // namespace nacre
