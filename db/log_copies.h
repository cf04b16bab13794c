#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/log_format.h"
#include "db/log_segments.h"
#include "memnode/pool_client.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "util/arena.h"

namespace nacre {

/// "shm:/run/n0.sock, shm:/run/n2.sock": who holds the segment, for messages.
std::string LogSegmentNodes(memnode::PoolClient* client, const LogSegment& segment);

/// What the first bytes of a segment's copies say of it.
struct LogSegmentHead {
  enum class Kind : char {
    kUsed,
    kUnused,   ///< Nothing was ever written there as this segment.
    kDamaged,  ///< There are records, but no copy has the header.
  };
  Kind kind = Kind::kUnused;
  LogSegmentHeader header;  ///< If used.
  bool healed = false;      ///< A copy that has records lacks the header.
};

/// `Unavailable` naming the nodes if no copy can be read, `NotSupported` for a newer format. Copies
/// that cannot be read are told of in `notes`.
Status ReadLogSegmentHead(memnode::PoolClient* client, uint64_t database_id,
                          const LogSegment& segment, LogSegmentHead* head,
                          std::vector<std::string>* notes);

/// The copies of one segment after the other, each read as far as somebody looks at it. Offsets
/// that are asked for only grow.
///
/// Thread safety: none.
class LogCopies {
 public:
  /// `kept`: where all memory that is read into comes from; null: the next segment is read into
  /// that of the one before.
  LogCopies(memnode::PoolClient* client, ConcurrentArena* kept) : client_(client), kept_(kept) {}

  /// Goes on to `segment`, which stays where it is, of which bytes from `from` to `end` are of
  /// interest. Reads one copy: `Unavailable` naming the nodes if there is none to be read.
  Status Start(const LogSegment* segment, uint64_t from, uint64_t end,
               std::vector<std::string>* notes);
  size_t count() const { return segment_->copies.size(); }
  /// The copy's bytes from `offset` on; none if it cannot be read.
  Slice From(size_t copy, uint64_t offset);

 private:
  struct Copy {
    enum class State : char { kUnread, kRead, kLost } state = State::kUnread;
    uint64_t from = 0;
    uint64_t capacity = 0;
    std::unique_ptr<char[]> own;  ///< If nothing is kept.
    char* bytes = nullptr;
  };

  Status Read(size_t copy, uint64_t from);

  memnode::PoolClient* const client_;
  ConcurrentArena* const kept_;
  const LogSegment* segment_ = nullptr;
  uint64_t end_ = 0;
  std::vector<std::string>* notes_ = nullptr;
  std::vector<Copy> copies_;
};

}  // namespace nacre
