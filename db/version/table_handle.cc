#include "db/version/table_handle.h"

#include <utility>

#include "table/seal/sealed_extent.h"

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

void TableHandle::TierSlot::Count(const PointTier* less, const PointTier* more) const {
  const auto bytes = [](const PointTier* tier) {
    return tier == nullptr ? uint64_t{0} : tier->MemoryUsage();
  };
  if (memory != nullptr) memory->ReplacePointTier(bytes(less), bytes(more));
}

TableHandle::TierSlot::~TierSlot() {
  const PointTier* const last = current.load(std::memory_order_relaxed);
  Count(last, nullptr);
  delete last;
}

Status TableHandle::OpenReader(Read read) {
  const auto open = read == Read::kNothing ? TableReader::OpenUnread : TableReader::Open;
  auto stored = surroundings_.store->OpenExtent(meta_->id, meta_->placement, meta_->size);
  return open(meta_, comparator_, PlainExtent(*meta_, std::move(stored)), &reader_,
              surroundings_.memory);
}

Status TableHandle::Open(TableMeta meta, const Comparator* comparator,
                         const TableSurroundings& surroundings, PointTier::Kind tier,
                         std::shared_ptr<TableHandle>* handle) {
  std::shared_ptr<TableHandle> opened;
  NACRE_RETURN_IF_ERROR(OpenUnread(std::move(meta), comparator, surroundings, &opened));
  NACRE_RETURN_IF_ERROR(opened->Load(tier));
  *handle = std::move(opened);
  return Status::OK();
}

Status TableHandle::OpenUnread(TableMeta meta, const Comparator* comparator,
                               const TableSurroundings& surroundings,
                               std::shared_ptr<TableHandle>* handle) {
  NACRE_RETURN_IF_ERROR(OpenSeal(surroundings.keys, &meta));
  std::shared_ptr<TableHandle> opened(new TableHandle(
      std::make_shared<const TableMeta>(std::move(meta)), comparator, surroundings));
  NACRE_RETURN_IF_ERROR(opened->OpenReader(Read::kNothing));
  opened->tier_ = std::make_shared<TierSlot>(surroundings.memory);
  for (const ExtentAddr& extent : opened->meta_->placement.fragments) {
    opened->fragments_.push_back(std::make_shared<FragmentSpace>(extent, surroundings.space));
  }
  *handle = std::move(opened);
  return Status::OK();
}

Status TableHandle::OpenMoved(Placement placement, std::shared_ptr<TableHandle>* handle) const {
  auto meta = std::make_shared<TableMeta>(*meta_);
  meta->placement = std::move(placement);
  std::shared_ptr<TableHandle> opened(new TableHandle(std::move(meta), comparator_, surroundings_));
  NACRE_RETURN_IF_ERROR(opened->OpenReader(Read::kRangeIndex));
  opened->tier_ = tier_;
  for (size_t i = 0; i < fragments_.size(); ++i) {
    const ExtentAddr& extent = opened->meta_->placement.fragments[i];
    const bool same = extent == fragments_[i]->extent();
    opened->fragments_.push_back(
        same ? fragments_[i] : std::make_shared<FragmentSpace>(extent, surroundings_.space));
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
  reader_->extent()->PassDamageTo(moved.reader_->shared_extent(), shared);
}

Status TableHandle::Load(PointTier::Kind kind) const {
  NACRE_RETURN_IF_ERROR(reader_->PreloadRangeIndex());
  NACRE_RETURN_IF_ERROR(reader_->LoadRangeTombstones());
  MutexLock lock(&tier_->loading);
  if (loaded()) return Status::OK();
  std::unique_ptr<const PointTier> tier;
  NACRE_RETURN_IF_ERROR(PointTier::Load(*reader_, kind, &tier));
  PutTier(std::move(tier));
  return Status::OK();
}

Status TableHandle::PrepareLookups() const {
  NACRE_RETURN_IF_ERROR(reader_->LoadRangeTombstones());
  if (tier() != nullptr) return Status::OK();
  std::unique_ptr<const PointTier> shape;
  NACRE_RETURN_IF_ERROR(PointTier::Load(*reader_, PointTier::Kind::kShape, &shape));
  // Release pairs with tier(). Another thread may have been faster, with the same or more.
  const PointTier* none = nullptr;
  if (tier_->current.compare_exchange_strong(none, shape.get(), std::memory_order_release,
                                             std::memory_order_relaxed)) {
    static_cast<void>(shape.release());
  }
  return Status::OK();
}

void TableHandle::PutTier(std::unique_ptr<const PointTier> tier) const {
  const PointTier* const loaded = tier.release();
  // Release pairs with tier().
  const PointTier* old = tier_->current.exchange(loaded, std::memory_order_acq_rel);
  tier_->loaded.store(true, std::memory_order_release);  // Pairs with loaded().
  tier_->Count(old, loaded);
  if (old != nullptr) surroundings_.epochs->Retire([old] { delete old; });
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
