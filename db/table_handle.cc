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
  if (kind == Kind::kBloom) NACRE_RETURN_IF_ERROR(reader.LoadBloom(&section));
  const size_t bytes = section == nullptr ? 0 : reader.meta().bloom.length;
  auto loaded = std::unique_ptr<PointTier>(new PointTier(kind, std::move(section), bytes));
  loaded->bloom_ = BloomFilter(Slice(loaded->section_.get(), bytes));
  NACRE_RETURN_IF_ERROR(reader.LoadPointIndexShape(&loaded->shape_));
  *tier = std::move(loaded);
  return Status::OK();
}

Status TableHandle::OpenReader(const Comparator* comparator, memnode::TableStore* store,
                               Read read) {
  comparator_ = comparator;
  const auto open = read == Read::kNothing ? TableReader::OpenUnread : TableReader::Open;
  return open(meta_, comparator, store->OpenExtent(meta_->id, meta_->placement, meta_->size),
              &reader_);
}

Status TableHandle::Open(TableMeta meta, const Comparator* comparator, memnode::TableStore* store,
                         memnode::SpaceAllocator* space, EpochDomain* epochs, PointTier::Kind tier,
                         std::shared_ptr<TableHandle>* handle) {
  std::shared_ptr<TableHandle> opened;
  NACRE_RETURN_IF_ERROR(OpenUnread(std::move(meta), comparator, store, space, epochs, &opened));
  NACRE_RETURN_IF_ERROR(opened->Load(tier));
  *handle = std::move(opened);
  return Status::OK();
}

Status TableHandle::OpenUnread(TableMeta meta, const Comparator* comparator,
                               memnode::TableStore* store, memnode::SpaceAllocator* space,
                               EpochDomain* epochs, std::shared_ptr<TableHandle>* handle) {
  std::shared_ptr<TableHandle> opened(
      new TableHandle(std::make_shared<const TableMeta>(std::move(meta)), space, epochs));
  NACRE_RETURN_IF_ERROR(opened->OpenReader(comparator, store, Read::kNothing));
  opened->tier_ = std::make_shared<TierSlot>();
  for (const ExtentAddr& extent : opened->meta_->placement.fragments) {
    opened->fragments_.push_back(std::make_shared<FragmentSpace>(extent, space));
  }
  *handle = std::move(opened);
  return Status::OK();
}

Status TableHandle::OpenMoved(Placement placement, memnode::TableStore* store,
                              std::shared_ptr<TableHandle>* handle) const {
  auto meta = std::make_shared<TableMeta>(*meta_);
  meta->placement = std::move(placement);
  std::shared_ptr<TableHandle> opened(new TableHandle(std::move(meta), space_, epochs_));
  NACRE_RETURN_IF_ERROR(opened->OpenReader(comparator_, store, Read::kRangeIndex));
  opened->tier_ = tier_;
  for (size_t i = 0; i < fragments_.size(); ++i) {
    const ExtentAddr& extent = opened->meta_->placement.fragments[i];
    const bool same = extent == fragments_[i]->extent();
    opened->fragments_.push_back(same ? fragments_[i]
                                      : std::make_shared<FragmentSpace>(extent, space_));
  }
  *handle = std::move(opened);
  return Status::OK();
}

TableHandle::~TableHandle() = default;

void TableHandle::MarkReplacedBy(const TableHandle& moved) {
  for (size_t i = 0; i < fragments_.size(); ++i) {
    if (fragments_[i] != moved.fragments_[i]) fragments_[i]->MarkDropped();
  }
}

void TableHandle::PassDamageTo(const TableHandle& moved) const {
  FragmentSet shared = 0;
  for (size_t i = 0; i < fragments_.size(); ++i) {
    if (fragments_[i] == moved.fragments_[i]) shared |= FragmentSet{1} << i;
  }
  if (const FragmentSet damage = damaged() & shared; damage != 0) moved.ReportDamage(damage);
}

Status TableHandle::Load(PointTier::Kind kind) const {
  NACRE_RETURN_IF_ERROR(reader_->LoadRangeIndex());
  MutexLock lock(&tier_->loading);
  if (loaded()) return Status::OK();
  std::unique_ptr<const PointTier> tier;
  NACRE_RETURN_IF_ERROR(PointTier::Load(*reader_, kind, &tier));
  PutTier(std::move(tier));
  return Status::OK();
}

Status TableHandle::PrepareLookups() const {
  if (tier() != nullptr) return reader_->LoadRangeIndex();
  std::unique_ptr<const PointTier> shape;
  NACRE_RETURN_IF_ERROR(PointTier::Load(*reader_, PointTier::Kind::kShape, &shape));
  // Release pairs with tier(). Somebody else may have been faster, with the same or more.
  const PointTier* none = nullptr;
  if (tier_->current.compare_exchange_strong(none, shape.get(), std::memory_order_release,
                                             std::memory_order_relaxed)) {
    static_cast<void>(shape.release());
  }
  return Status::OK();
}

void TableHandle::PutTier(std::unique_ptr<const PointTier> tier) const {
  // Release pairs with tier().
  const PointTier* old = tier_->current.exchange(tier.release(), std::memory_order_acq_rel);
  tier_->loaded.store(true, std::memory_order_release);  // Pairs with loaded().
  if (old != nullptr) epochs_->Retire([old] { delete old; });
}

Status TableHandle::SetTier(PointTier::Kind kind) {
  std::unique_ptr<const PointTier> loaded;
  NACRE_RETURN_IF_ERROR(PointTier::Load(*reader_, kind, &loaded));
  PutTier(std::move(loaded));
  return Status::OK();
}

size_t TableHandle::MemoryUsage() const {
  const PointTier* current = tier();
  return sizeof(*this) + sizeof(TableMeta) + meta_->smallest.size() + meta_->largest.size() +
         reader_->MemoryUsage() + (current != nullptr ? current->MemoryUsage() : 0);
}

}  // namespace nacre
