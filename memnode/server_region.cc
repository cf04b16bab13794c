#include "memnode/server_region.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "pool/wire/node_stats.h"
#include "util/codes/crc32c.h"
#include "util/log.h"
#include "util/memory/round_up.h"
#include "util/uri.h"

namespace nacre::pool {
namespace {

constexpr uint64_t kSmallPageBytes = 4096;
/// Large slabs start where huge pages do.
constexpr uint64_t kHugePageBytes = 2 << 20;

}  // namespace

Status ServerRegion::LayOut(uint64_t bytes, uint64_t slab_bytes, Logger* log,
                            std::unique_ptr<ServerRegion>* region) {
  if (slab_bytes < kMinSlabBytes || slab_bytes % kSmallPageBytes != 0 ||
      slab_bytes > uint64_t{1} << 40) {
    return Status::InvalidArgument(
        fmt::format("slab size {} is not a multiple of {} from {} to {}", slab_bytes,
                    kSmallPageBytes, FormatBytes(kMinSlabBytes), FormatBytes(uint64_t{1} << 40)));
  }
  if (bytes < slab_bytes) {
    return Status::InvalidArgument(fmt::format("size {} is smaller than one slab of {}",
                                               FormatBytes(bytes), FormatBytes(slab_bytes)));
  }
  if (bytes > uint64_t{1} << 47) {
    return Status::InvalidArgument(fmt::format("size {} is absurd", FormatBytes(bytes)));
  }
  std::unique_ptr<ServerRegion> result(new ServerRegion());
  result->log_ = log;
  result->slab_bytes_ = slab_bytes;
  result->slab_count_ = bytes / slab_bytes;
  result->slab_area_ = RoundUp(kSlabTableOffset + result->slab_count_ * sizeof(SlabEntry),
                               slab_bytes >= kHugePageBytes ? kHugePageBytes : kSmallPageBytes);
  result->size_ = result->slab_area_ + result->slab_count_ * slab_bytes;
  result->grants_.resize(result->slab_count_);
  *region = std::move(result);
  return Status::OK();
}

Status ServerRegion::SizeOf(uint64_t bytes, uint64_t slab_bytes, uint64_t* total) {
  std::unique_ptr<ServerRegion> region;
  NACRE_RETURN_IF_ERROR(LayOut(bytes, slab_bytes, nullptr, &region));
  *total = region->size_;
  return Status::OK();
}

RegionHeader ServerRegion::HeaderOf(uint64_t instance_id) const {
  RegionHeader header{.magic = kRegionMagic,
                      .format_version = kRegionFormatVersion,
                      .header_crc = 0,
                      .instance_id = instance_id,
                      .slab_bytes = slab_bytes_,
                      .slab_count = slab_count_,
                      .slab_area = slab_area_};
  header.header_crc = Crc32c(reinterpret_cast<const char*>(&header), sizeof(header));
  return header;
}

Status ServerRegion::Create(rdma::Device* device, uint64_t bytes, uint64_t slab_bytes,
                            uint64_t instance_id, Logger* log,
                            std::unique_ptr<ServerRegion>* region) {
  std::unique_ptr<ServerRegion> result;
  NACRE_RETURN_IF_ERROR(LayOut(bytes, slab_bytes, log, &result));
  NACRE_RETURN_IF_ERROR(
      device->AllocateRegion(result->size_, rdma::Access::kRemoteReadOnly, &result->memory_));
  const RegionHeader header = result->HeaderOf(instance_id);
  std::memcpy(result->memory_->data(), &header, sizeof(header));
  *region = std::move(result);
  return Status::OK();
}

Status ServerRegion::Open(rdma::Device* device, uint64_t bytes, uint64_t slab_bytes,
                          const RegionFile& file, Logger* log,
                          std::unique_ptr<ServerRegion>* region) {
  std::unique_ptr<ServerRegion> result;
  NACRE_RETURN_IF_ERROR(LayOut(bytes, slab_bytes, log, &result));
  NACRE_RETURN_IF_ERROR(
      device->MapRegion(file.fd(), result->size_, rdma::Access::kRemoteReadOnly, &result->memory_));
  const RegionHeader header = result->HeaderOf(file.instance_id());
  if (file.keeping() == Keeping::kEmpty) {
    std::memcpy(result->memory_->data(), &header, sizeof(header));
  } else if (std::memcmp(result->memory_->data(), &header, sizeof(header)) != 0) {
    return Status::Corruption(
        "the head of the region in its file is damaged (--region_reset makes a new, empty one)");
  }
  for (uint64_t slab = 0; slab < result->slab_count_; ++slab) {
    if (result->entries()[slab].database_id != 0) ++result->leased_;
  }
  *region = std::move(result);
  return Status::OK();
}

bool ServerRegion::IsFree(uint64_t first, uint64_t count) const {
  if (first > slab_count_ || count > slab_count_ - first) return false;
  for (uint64_t slab = first; slab < first + count; ++slab) {
    if (entries()[slab].database_id != 0 || stuck_.contains(slab)) return false;
  }
  return true;
}

uint64_t ServerRegion::SlabAt(uint64_t offset) const {
  if (offset < slab_area_ || (offset - slab_area_) % slab_bytes_ != 0) return slab_count_;
  return std::min(slab_count_, (offset - slab_area_) / slab_bytes_);
}

Status ServerRegion::RevokeOne(uint64_t slab) {
  Status revoked = job_grants_.RevokeWithin(OffsetOf(slab), slab_bytes_);
  if (grants_[slab] != nullptr) {
    Status own = grants_[slab]->Revoke();
    if (own.ok()) {
      grants_[slab].reset();
    } else {
      revoked = std::move(own);
    }
  }
  if (revoked.ok()) {
    stuck_.erase(slab);
  } else if (stuck_.insert(slab).second) {
    Log(log_, LogLevel::kError, "slab {} stays unused, since it may still be written to: {}", slab,
        revoked.ToString());
  }
  return revoked;
}

void ServerRegion::FreeStuck() {
  for (const uint64_t slab : std::vector<uint64_t>(stuck_.begin(), stuck_.end())) {
    if (entries()[slab].database_id == 0 && RevokeOne(slab).ok()) {
      leased_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

Status ServerRegion::GrantOne(uint64_t slab) {
  if (stuck_.contains(slab)) NACRE_RETURN_IF_ERROR(RevokeOne(slab));
  if (grants_[slab] != nullptr) return Status::OK();
  return memory_->Grant(OffsetOf(slab), slab_bytes_, rdma::Access::kRemoteAll, &grants_[slab]);
}

void ServerRegion::TakeBack(uint64_t slab) {
  const bool revoked = RevokeOne(slab).ok();
  entries()[slab] = {};
  if (revoked) leased_.fetch_sub(1, std::memory_order_relaxed);
}

Status ServerRegion::Assign(uint64_t slab, uint64_t count, uint64_t database_id,
                            std::vector<uint64_t>* offsets) {
  for (uint64_t i = 0; i < count; ++i) {
    if (Status s = GrantOne(slab + i); !s.ok()) {
      for (uint64_t taken = 0; taken < i; ++taken) {
        TakeBack(slab + taken);
        offsets->pop_back();
      }
      return s;
    }
    entries()[slab + i] = {.database_id = database_id, .owner_epoch = 0};
    leased_.fetch_add(1, std::memory_order_relaxed);
    offsets->push_back(OffsetOf(slab + i));
  }
  return Status::OK();
}

Status ServerRegion::Lease(uint64_t database_id, uint32_t count, bool contiguous,
                           uint64_t extend_at, uint32_t extend_count,
                           std::vector<uint64_t>* offsets) {
  offsets->clear();
  if (database_id == 0 || count == 0) return Status::InvalidArgument("lease of nothing");
  FreeStuck();
  const uint64_t free = slab_count_ - leased();
  const auto full = [&] {
    return Status::NoSpace(fmt::format("{} slabs of {} asked, {} of {} are free{}", count,
                                       FormatBytes(slab_bytes_), free, slab_count_,
                                       contiguous && count <= free ? ", not side by side" : ""));
  };

  if (extend_count > 0) {
    const uint64_t first = SlabAt(extend_at);
    if (first < slab_count_ && IsFree(first, extend_count)) {
      return Assign(first, extend_count, database_id, offsets);
    }
  }
  if (count > free) return full();
  if (!contiguous) {
    for (uint64_t slab = 0; slab < slab_count_ && offsets->size() < count; ++slab) {
      if (!IsFree(slab, 1)) continue;
      if (Status s = Assign(slab, 1, database_id, offsets); !s.ok()) {
        for (const uint64_t offset : *offsets) TakeBack(SlabAt(offset));
        offsets->clear();
        return s;
      }
    }
    return Status::OK();
  }
  uint64_t run = 0;
  for (uint64_t slab = 0; slab < slab_count_; ++slab) {
    run = IsFree(slab, 1) ? run + 1 : 0;
    if (run < count) continue;
    return Assign(slab + 1 - count, count, database_id, offsets);
  }
  return full();
}

Status ServerRegion::Return(uint64_t database_id, const std::vector<uint64_t>& offsets,
                            const std::vector<uint32_t>& keys) {
  if (keys.size() != offsets.size()) return Status::InvalidArgument("a return without keys");
  for (size_t i = 0; i < offsets.size(); ++i) {
    const uint64_t slab = SlabAt(offsets[i]);
    if (slab == slab_count_ || database_id == 0 || entries()[slab].database_id != database_id) {
      return Status::InvalidArgument(
          fmt::format("offset {} is no slab of database {:x}", offsets[i], database_id));
    }
    if (grants_[slab] == nullptr || grants_[slab]->remote_key().key != keys[i]) {
      return Status::InvalidArgument(
          fmt::format("the slab at {} has another key than it is returned with", offsets[i]));
    }
  }
  for (const uint64_t offset : offsets) {
    const uint64_t slab = SlabAt(offset);
    if (entries()[slab].database_id != 0) TakeBack(slab);  // Otherwise it was named twice.
  }
  return Status::OK();
}

void ServerRegion::ReturnAll(uint64_t database_id) {
  for (uint64_t slab = 0; slab < slab_count_; ++slab) {
    if (database_id != 0 && entries()[slab].database_id == database_id) TakeBack(slab);
  }
}

void ServerRegion::ReturnAllBut(const std::set<uint64_t>& database_ids) {
  for (uint64_t slab = 0; slab < slab_count_; ++slab) {
    const uint64_t owner = entries()[slab].database_id;
    if (owner != 0 && !database_ids.contains(owner)) TakeBack(slab);
  }
}

Status ServerRegion::GrantAll(uint64_t database_id) {
  for (uint64_t slab = 0; slab < slab_count_; ++slab) {
    if (entries()[slab].database_id == database_id) NACRE_RETURN_IF_ERROR(GrantOne(slab));
  }
  return Status::OK();
}

void ServerRegion::RevokeAll(uint64_t database_id) {
  job_grants_.EndAll(database_id);
  for (uint64_t slab = 0; slab < slab_count_; ++slab) {
    // One that may still be written to is logged, and is looked at again by GrantAll.
    if (entries()[slab].database_id == database_id) RevokeOne(slab).IgnoreError();
  }
}

std::vector<uint64_t> ServerRegion::SlabsOf(uint64_t database_id) const {
  std::vector<uint64_t> offsets;
  for (uint64_t slab = 0; slab < slab_count_; ++slab) {
    if (entries()[slab].database_id == database_id) offsets.push_back(OffsetOf(slab));
  }
  return offsets;
}

uint64_t ServerRegion::LeasedTo(const std::set<uint64_t>& database_ids) const {
  const SlabEntry* const first = entries();
  return static_cast<uint64_t>(std::count_if(
      first, first + slab_count_,
      [&](const SlabEntry& entry) { return database_ids.contains(entry.database_id); }));
}

uint32_t ServerRegion::WriteKey(uint64_t offset) const {
  const auto& grant = grants_[(offset - slab_area_) / slab_bytes_];
  assert(grant != nullptr);
  return grant->remote_key().key;
}

bool ServerRegion::Owns(uint64_t database_id, uint64_t offset, uint64_t length) const {
  if (offset < slab_area_ || offset > size_ || length > size_ - offset) return false;
  const uint64_t first = (offset - slab_area_) / slab_bytes_;
  const uint64_t end = (offset + length - slab_area_ + slab_bytes_ - 1) / slab_bytes_;
  for (uint64_t slab = first; slab < end; ++slab) {
    if (entries()[slab].database_id != database_id) return false;
  }
  return true;
}

}  // namespace nacre::pool
