#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/status.h"
#include "pool/store/extent_writes.h"
#include "pool/store/table_store_rep.h"
#include "rdma/transport.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// The writes of one table that is being made, to all of its fragments: those in local memory are
/// copied at once.
///
/// Thread safety: none.
class FragmentWrites : public ExtentWrites {
 public:
  /// `placement` is checked by the caller, and `lane` connected to its nodes. `keys`: see
  /// TableStore::NewWriter.
  FragmentWrites(TableStore::Rep* store, std::unique_ptr<Lane> lane, const Placement& placement,
                 size_t flights, const WriteKeys* keys);

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

 private:
  struct Fragment {
    RemoteAddr start;
    char* local = nullptr;
  };

  TableStore::Rep* const store_;
  std::vector<Fragment> fragments_;
};

}  // namespace nacre::pool
