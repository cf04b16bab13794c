#include "adapters/rocksdb_fs/file_space.h"

#include <fmt/format.h>

#include <utility>

#include "pool/databases.h"

namespace nacre::rocksfs {
namespace {

/// The allocator's chunk size: extents have no chunks here, so this only rounds.
constexpr uint64_t kChunkBytes = 1 << 20;

}  // namespace

FileSpace::FileSpace(std::shared_ptr<Pool> pool, pool::PoolClient* client,
                     const Redundancy& redundancy)
    : pool_(std::move(pool)),
      client_(client),
      redundancy_(redundancy),
      // A writer has no more requests under way than one node takes.
      connections_(client->fabric(), /*nodes_at_once=*/1) {}

Status FileSpace::Open(std::shared_ptr<Pool> pool, const std::string& name,
                       const std::string& redundancy, std::shared_ptr<FileSpace>* space) {
  Redundancy copies;
  NACRE_RETURN_IF_ERROR(ParseRedundancy(redundancy, &copies));
  if (copies.striped()) {
    return Status::InvalidArgument(
        fmt::format("redundancy {}: files are kept in whole copies: none or rep(n)", redundancy));
  }
  auto* const impl = dynamic_cast<pool::PoolImpl*>(pool.get());
  if (impl == nullptr) return Status::InvalidArgument("the pool was not made by Pool::Open");
  std::shared_ptr<FileSpace> made(new FileSpace(std::move(pool), impl->client(), copies));
  pool::DatabaseLease lease;
  NACRE_RETURN_IF_ERROR(
      made->client_->databases()
          ->Open(name, {.create_if_missing = true, .error_if_exists = true}, &lease)
          .WithContext("files of " + name));
  made->database_id_ = lease.database_id;
  made->space_ = std::make_unique<pool::SpaceAllocator>(
      made->client_, lease.database_id, made->client_->options().slab_bytes, kChunkBytes);
  *space = std::move(made);
  return Status::OK();
}

FileSpace::~FileSpace() {
  // Waits for requests for slabs, which need the database.
  space_.reset();
  // The nodes notice the end of this process, too.
  if (database_id_ != 0) client_->databases()->Leave(database_id_).IgnoreError();
}

Status FileSpace::Reserve(uint64_t begin, uint64_t bytes, FileExtent* extent) {
  NACRE_RETURN_IF_ERROR(space_->Reserve(redundancy_, bytes, kNoNode, &extent->placement));
  extent->begin = begin;
  extent->bytes = bytes;
  return Status::OK();
}

void FileSpace::Trim(FileExtent* extent, uint64_t bytes) {
  space_->Trim(&extent->placement, bytes);
  extent->bytes = bytes;
}

}  // namespace nacre::rocksfs
