#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "table/format/internal_key.h"

namespace nacre {

// The range index cuts the records of a table into intervals of about 2 KiB and keeps, for each
// boundary between two of them, a short user key that separates them: not before the last key on
// the left, before the first key on the right. A boundary between two versions of one user key has
// that key itself, and a tag that separates them: less than those on the left.
//
// A boundary lies where the last record on the left ends (and its padding). If the next one starts
// a chunk, what is left of the old chunk belongs to the right: the gap is never longer than the
// record that caused it, so that a short interval does not become a long read.
//
// Section (docs/formats.md): boundaries, front-coded, with the whole key at every 16th (a restart);
// the restarts' offsets in the section; a trailer.
//
//     boundary: varint32 bytes shared with the key before (0 at a restart)
//               varint32 further bytes of the key
//               varint64 record offset >> alignment_shift, << 1 | 1 if a tag follows; the offset is
//                        relative to the boundary before, absolute at a restart
//               bytes    of the key
//               fixed64  tag (as PackTag makes it), if there is one
//     restart:  fixed32  offset of its boundary
//     trailer:  fixed32  number of restarts
//               fixed32  number of boundaries

class RangeIndexBuilder {
 public:
  explicit RangeIndexBuilder(uint32_t alignment_shift) : alignment_shift_(alignment_shift) {}

  /// A boundary at `offset`. Keys in order, offsets ascending and > 0.
  void Add(const Slice& separator, uint64_t offset) { AddBoundary(separator, offset, nullptr); }
  /// A boundary between two versions of `user_key`: the first has a tag > `tag`, the second <=.
  void AddWithinKey(const Slice& user_key, uint64_t tag, uint64_t offset) {
    AddBoundary(user_key, offset, &tag);
  }

  /// Bytes that Finish would append now.
  size_t Bytes() const;
  /// Most that Bytes grows by one more boundary.
  static size_t BytesBound(size_t key_size);
  void Finish(std::string* dst) const;

 private:
  void AddBoundary(const Slice& key, uint64_t offset, const uint64_t* tag);

  uint32_t alignment_shift_;
  std::string boundaries_;
  std::vector<uint32_t> restarts_;
  uint32_t count_ = 0;
  std::string last_key_;
  uint64_t last_offset_ = 0;
};

/// Records of a table between two boundaries.
struct RecordInterval {
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// Finds intervals. Views the section's bytes.
/// Thread safety: const methods from many threads at once.
class RangeIndex {
 public:
  /// Checks the whole section, so that later calls need not; false if it is malformed. The
  /// comparator and `section` must outlive the index. `records_bytes` is the end of the last
  /// interval.
  bool Parse(const Slice& section, const InternalKeyComparator& comparator,
             uint32_t alignment_shift, uint64_t records_bytes);

  /// The interval that holds the first entry >= (user_key, tag), or ends right before it.
  RecordInterval Seek(const Slice& user_key, uint64_t tag) const;
  /// The interval that holds the byte at `offset` < records_bytes.
  RecordInterval Containing(uint64_t offset) const;
  /// A user key near the byte at `offset`, as one boundary has it. False: there is no boundary
  /// before it.
  bool KeyNear(uint64_t offset, std::string* user_key) const;
  /// Serves a walk backwards: lists the beginnings of some intervals that lead up to `limit`, at
  /// least of that with the byte before it, and then `limit` itself, 1 to records_bytes.
  void BoundariesUpTo(uint64_t limit, std::vector<uint64_t>* boundaries) const;

  uint32_t boundaries() const { return count_; }
  /// Bytes of the arrays made by Parse.
  size_t MemoryUsage() const { return restarts_.capacity() * sizeof(Restart) + common_.capacity(); }

 private:
  /// What the binary searches look at; one for 16 boundaries.
  struct Restart {
    uint64_t record_offset;
    uint64_t prefix;    ///< KeyPrefix behind common_; only under the bytewise order.
    uint32_t position;  ///< Its position in the section.
  };
  class Cursor;

  bool BuildRestarts(const Slice& section, uint32_t restarts);
  bool BuildPrefixes();
  /// The last restart whose boundary is at or before the target; -1 if none is.
  ptrdiff_t FindRestart(const Slice& user_key, uint64_t tag) const;
  /// Whether the first entry >= (user_key, tag) lies behind the boundary.
  bool AtOrBefore(const Cursor& boundary, const Slice& user_key, uint64_t tag) const;
  const char* BlockEnd(size_t restart) const;
  uint64_t BlockEndOffset(size_t restart) const;

  const char* boundaries_ = nullptr;
  const char* boundaries_end_ = nullptr;
  uint32_t count_ = 0;
  uint32_t alignment_shift_ = 0;
  uint64_t records_bytes_ = 0;
  const InternalKeyComparator* comparator_ = nullptr;
  std::vector<Restart> restarts_;
  std::string common_;  ///< What all boundary keys start with; only under the bytewise order.
};

}  // namespace nacre
