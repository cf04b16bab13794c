#include "rdma/shm/region.h"

#include "rdma/shm/device.h"

namespace nacre::rdma {

ShmRegion::~ShmRegion() {
  device_->DropRegion(this);
  DiscardMemory(*mapping_, fd_->get());
}

Status ShmRegion::Grant(size_t offset, size_t size, Access access,
                        std::unique_ptr<RegionGrant>* grant) {
  return device_->Grant(this, offset, size, access, grant);
}

ShmGrant::~ShmGrant() { Revoke().IgnoreError(); }

Status ShmGrant::Revoke() {
  if (state_ == State::kOver) return Status::OK();
  const bool first = state_ == State::kInForce;
  state_ = State::kRevoked;
  NACRE_RETURN_IF_ERROR(device_->EndGrant(key_.key, first));
  state_ = State::kOver;
  return Status::OK();
}

}  // namespace nacre::rdma
