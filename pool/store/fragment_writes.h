#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/lane.h"
#include "pool/store/table_store_rep.h"
#include "pool/store/write_keys.h"
#include "rdma/transport.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// The writes of one table that is being made, to all of its fragments: those in local memory are
/// copied at once, the others are in flight until they are awaited. Writes belong to flights, each
/// of which has a buffer that is free again when its writes have ended. The first failure ends all.
///
/// Thread safety: none.
class FragmentWrites {
 public:
  /// `placement` is checked by the caller, and `lane` connected to its nodes. `keys`: see
  /// TableStore::NewWriter.
  FragmentWrites(TableStore::Rep* store, std::unique_ptr<Lane> lane, const Placement& placement,
                 size_t flights, const WriteKeys* keys);
  /// Waits for nothing: what is on its way is given up.
  ~FragmentWrites();
  FragmentWrites(const FragmentWrites&) = delete;
  FragmentWrites& operator=(const FragmentWrites&) = delete;

  size_t fragments() const { return fragments_.size(); }
  /// The fragment's bytes (without head) in local memory; null if they are not there.
  char* Local(size_t fragment) const { return fragments_[fragment].local; }
  /// The registered bytes there, as a source of writes.
  rdma::LocalBuffer LocalPart(char* bytes, size_t n) const {
    return {.data = bytes, .size = static_cast<uint32_t>(n), .region = store_->local.region};
  }

  /// Has `bytes` of `from` written to `offset` of the fragment, head not counted (so a head is at
  /// -kFragmentHeadBytes). Bytes that are there already need no write.
  Status Write(size_t fragment, int64_t offset, rdma::LocalBuffer from, size_t flight);
  /// The flight's buffer, once its writes have ended.
  Status Buffered(size_t flight, size_t bytes, Buffer** buffer);
  Status AwaitFlight(size_t flight) { return AwaitZero(&flights_[flight].outstanding); }
  Status AwaitAll() { return AwaitZero(&outstanding_); }
  /// Takes what has ended.
  void Poll();

  /// The table cannot be finished any more. Nothing will be written once this returns. Returns the
  /// first failure.
  Status Fail(Status why);
  const Status& failure() const { return failure_; }

 private:
  struct Fragment {
    NodeLink* link = nullptr;
    uint64_t offset = 0;  ///< Offset in the region.
    char* local = nullptr;
    int outstanding = 0;
  };
  struct Flight {
    Buffer buffer;
    int outstanding = 0;
  };
  static constexpr uint64_t kFragmentBits = 8;

  Status Post(size_t fragment, uint64_t offset, rdma::LocalBuffer from, size_t flight);
  bool Translate(const NodeLink& link, uint64_t offset, rdma::RemoteBuffer* to,
                 uint64_t* contiguous) const {
    return keys_ == nullptr ? link.TranslateWrite(offset, to, contiguous)
                            : keys_->Translate(link, offset, to, contiguous);
  }
  Status AwaitZero(const int* outstanding);

  TableStore::Rep* const store_;
  const WriteKeys* const keys_;
  std::unique_ptr<Lane> lane_;
  std::vector<Fragment> fragments_;
  std::vector<Flight> flights_;
  int outstanding_ = 0;  ///< Counted over all fragments.
  Status failure_;
};

}  // namespace nacre::pool
