#include "db/table_handle.h"

#include <utility>

namespace nacre {

Status PointTier::Load(const TableReader& reader, Kind kind,
                       std::unique_ptr<const PointTier>* tier) {
  std::unique_ptr<char[]> section;
  if (kind == Kind::kIndex) {
    PointIndex index;
    NACRE_RETURN_IF_ERROR(reader.LoadPointIndex(&section, &index));
    auto loaded = std::unique_ptr<PointTier>(
        new PointTier(kind, std::move(section), reader.meta().point_index.length));
    loaded->index_ = index;
    *tier = std::move(loaded);
    return Status::OK();
  }
  NACRE_RETURN_IF_ERROR(reader.LoadBloom(&section));
  PointIndexShape shape;
  NACRE_RETURN_IF_ERROR(reader.LoadPointIndexShape(&shape));
  const size_t bytes = reader.meta().bloom.length;
  auto loaded = std::unique_ptr<PointTier>(new PointTier(kind, std::move(section), bytes));
  loaded->bloom_ = BloomFilter(Slice(loaded->section_.get(), bytes));
  loaded->shape_ = shape;
  *tier = std::move(loaded);
  return Status::OK();
}

TableHandle::TableHandle(std::shared_ptr<const TableMeta> meta, memnode::SpaceAllocator* space,
                         EpochDomain* epochs)
    : meta_(std::move(meta)), space_(space), epochs_(epochs) {}

Status TableHandle::Open(TableMeta meta, const Comparator* comparator, memnode::TableStore* store,
                         memnode::SpaceAllocator* space, EpochDomain* epochs, PointTier::Kind tier,
                         std::shared_ptr<TableHandle>* handle) {
  auto shared_meta = std::make_shared<const TableMeta>(std::move(meta));
  std::shared_ptr<TableHandle> opened(new TableHandle(shared_meta, space, epochs));
  NACRE_RETURN_IF_ERROR(TableReader::Open(
      shared_meta, comparator,
      store->OpenExtent(shared_meta->id, shared_meta->placement, shared_meta->size),
      &opened->reader_));
  NACRE_RETURN_IF_ERROR(opened->SetTier(tier));
  *handle = std::move(opened);
  return Status::OK();
}

TableHandle::~TableHandle() {
  delete tier_.load(std::memory_order_relaxed);
  if (dropped_.load(std::memory_order_relaxed)) space_->Free(meta_->placement);
}

Status TableHandle::SetTier(PointTier::Kind kind) {
  std::unique_ptr<const PointTier> loaded;
  NACRE_RETURN_IF_ERROR(PointTier::Load(*reader_, kind, &loaded));
  // Release pairs with tier().
  const PointTier* old = tier_.exchange(loaded.release(), std::memory_order_acq_rel);
  if (old != nullptr) epochs_->Retire([old] { delete old; });
  return Status::OK();
}

size_t TableHandle::MemoryUsage() const {
  const PointTier* current = tier();
  return sizeof(*this) + sizeof(TableMeta) + meta_->smallest.size() + meta_->largest.size() +
         reader_->MemoryUsage() + (current != nullptr ? current->MemoryUsage() : 0);
}

}  // namespace nacre
