#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "db/manifest/manifest_ring.h"
#include "db/manifest/manifest_root.h"
#include "db/manifest/slot_image.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/store/mirrored_extent.h"
#include "rdma/transport.h"
#include "table/format/placement.h"
#include "util/clock.h"

namespace nacre {

/// One manifest on its nodes: made with a whole image, then extended edit by edit until another one
/// takes its place. Knows which part of the ring is free, and nothing of what edits mean.
///
/// Thread safety: none.
class ManifestWriter {
 public:
  /// Writes a manifest whose image is `image`, of `version`, into `copies` (at least
  /// `sizes.bytes()` each); `sizes` also has its identity. When this returns OK, all of it is on
  /// all replicas, and root() is what to publish. Failures are those of MirroredExtent; each chunk
  /// of the image has a deadline of its own. `chosen` says when the nodes of `copies` were chosen;
  /// kChosenNow: those that are late are waited for, until WaitForLate(false).
  static Status Create(pool::PoolClient* client, const ManifestRoot& sizes,
                       std::vector<ExtentAddr> copies, const SlotImage& image, uint64_t version,
                       uint64_t chosen, std::unique_ptr<ManifestWriter>* writer);
  /// See MirroredExtent.
  void WaitForLate(bool waits) { extent_->WaitForLate(waits); }

  /// Whether an edit of so many bytes can be appended to an empty ring.
  bool FitsEver(size_t edit_bytes) const;
  /// Whether it can be appended now.
  bool Fits(size_t edit_bytes) const {
    return FitsEver(edit_bytes) && Needed(edit_bytes) <= Free();
  }
  /// Appends an edit that fits. OK: it is on all replicas. A failure is final; the edit may be on
  /// any number of replicas then.
  Status Append(uint64_t version, const Slice& edit);

  /// The place of the next entry, counted without end; in the ring, modulo its size.
  uint64_t tail() const { return tail_; }
  uint64_t tail_in_ring() const { return tail_ % root_.ring_bytes; }
  /// The place in the ring of the first entry that is or will be needed.
  uint64_t head_in_ring() const { return head_ % root_.ring_bytes; }
  /// What lies before `position`, an earlier tail, is not needed any more.
  void FreeUpTo(uint64_t position) { head_ = position; }
  bool half_full() const { return Free() < root_.ring_bytes / 2; }

  const ManifestRoot& root() const { return root_; }
  const std::vector<ExtentAddr>& copies() const { return copies_; }

 private:
  ManifestWriter(pool::PoolClient* client, const ManifestRoot& root)
      : client_(client), root_(root), ring_(root.identity) {}

  Status WriteAll(const SlotImage& image, uint64_t version);
  Status WriteImage(const SlotImage& image);
  Deadline OperationDeadline() const;
  /// Bytes [from, to) of what is written, and where they go.
  struct Part {
    size_t from = 0;
    size_t to = 0;
    uint64_t offset = 0;
  };
  /// Copies `bytes` into registered memory and waits until its parts are in their places. No part
  /// is on a copy before those that are named before it.
  Status Write(const std::string& bytes, std::span<const Part> parts);
  /// Bytes up to the end of the ring, if the entry does not fit before it.
  uint64_t Skipped(size_t edit_bytes) const;
  uint64_t Needed(size_t edit_bytes) const;
  uint64_t Free() const { return root_.ring_bytes - (tail_ - head_); }

  pool::PoolClient* const client_;
  ManifestRoot root_;
  const ManifestRing ring_;
  std::vector<ExtentAddr> copies_;
  std::unique_ptr<rdma::MemoryRegion> buffer_;  ///< Outlives the writes of extent_.
  std::unique_ptr<pool::MirroredExtent> extent_;
  std::string entry_;
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
};

}  // namespace nacre
