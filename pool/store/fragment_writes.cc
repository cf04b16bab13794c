#include "pool/store/fragment_writes.h"

#include <cstring>
#include <utility>

namespace nacre::pool {

FragmentWrites::FragmentWrites(TableStore::Rep* store, std::unique_ptr<Lane> lane,
                               const Placement& placement, size_t flights, const WriteKeys* keys)
    : ExtentWrites(store->fabric, &store->connections, flights, std::move(lane), keys),
      store_(store) {
  for (const ExtentAddr& extent : placement.fragments) {
    fragments_.push_back({.start = extent.start, .local = store->LocalBytes(extent)});
  }
}

Status FragmentWrites::Write(size_t number, int64_t offset, rdma::LocalBuffer from, size_t flight) {
  NACRE_RETURN_IF_ERROR(failure());
  if (from.size == 0) return Status::OK();
  const Fragment& fragment = fragments_[number];
  if (fragment.local != nullptr) {
    char* const to = fragment.local + offset;
    if (to != from.data) std::memcpy(to, from.data, from.size);
    return Status::OK();
  }
  const int64_t in_fragment = static_cast<int64_t>(kFragmentHeadBytes) + offset;
  return WriteTo(fragment.start.node, fragment.start.offset + static_cast<uint64_t>(in_fragment),
                 from, flight);
}

}  // namespace nacre::pool
