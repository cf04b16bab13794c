#include "table/format/table_seal.h"

#include <algorithm>
#include <cstring>

namespace nacre {
namespace {

/// Above the numbers of all cells.
constexpr uint64_t kFirstBoundNonce = uint64_t{1} << 63;
/// No length, version or magic number of the formats begins with it.
constexpr char kUnopened = '\xff';

Aead::Nonce NonceOfBound(TableSeal::Bound bound) {
  return Aead::NonceOf(kFirstBoundNonce + static_cast<uint64_t>(bound));
}

Status SealBound(Aead* aead, TableSeal::Bound bound, const Slice& plain, std::string* sealed) {
  sealed->resize(plain.size() + Aead::kTagBytes);
  return aead->Seal(NonceOfBound(bound), Slice(), plain, sealed->data(),
                    sealed->data() + plain.size());
}

}  // namespace

Status TableSeal::WithBounds(const Slice& smallest, const Slice& largest,
                             std::shared_ptr<const TableSeal>* seal) const {
  auto bounded = std::make_shared<TableSeal>(*this);
  const Status status = aeads_->With([&](Aead* aead) -> Status {
    NACRE_RETURN_IF_ERROR(SealBound(aead, Bound::kSmallest, smallest, &bounded->smallest_));
    return SealBound(aead, Bound::kLargest, largest, &bounded->largest_);
  });
  *seal = std::move(bounded);
  return status;
}

Status TableSeal::OpenBound(Bound bound, std::string* plain) const {
  const std::string& sealed = bound == Bound::kSmallest ? smallest_ : largest_;
  if (sealed.size() < Aead::kTagBytes) return Status::Corruption("it is shorter than a tag");
  const size_t bytes = sealed.size() - Aead::kTagBytes;
  plain->resize(bytes);
  return aeads_->With([&](Aead* aead) {
    return aead->Open(NonceOfBound(bound), Slice(), Slice(sealed.data(), bytes),
                      sealed.data() + bytes, plain->data());
  });
}

Status TableSeal::SealCells(uint64_t first, const Slice& plain, char* to) const {
  return aeads_->With([&](Aead* aead) -> Status {
    Slice rest = plain;
    for (uint64_t cell = first; !rest.empty(); ++cell) {
      const Slice bytes(rest.data(), std::min<size_t>(rest.size(), kCellBytes));
      NACRE_RETURN_IF_ERROR(aead->Seal(Aead::NonceOf(cell), Slice(), bytes, to, to + bytes.size()));
      to += bytes.size() + Aead::kTagBytes;
      rest.remove_prefix(bytes.size());
    }
    return Status::OK();
  });
}

Status TableSeal::OpenCells(uint64_t first, const Slice& stored, char* to) const {
  return aeads_->With([&](Aead* aead) -> Status {
    Slice rest = stored;
    for (uint64_t cell = first; rest.size() > Aead::kTagBytes; ++cell) {
      const size_t bytes = std::min<size_t>(rest.size(), kStoredCellBytes) - Aead::kTagBytes;
      const Status status = aead->Open(Aead::NonceOf(cell), Slice(), Slice(rest.data(), bytes),
                                       rest.data() + bytes, to);
      if (status.IsCorruption()) {
        std::memset(to, kUnopened, bytes);
      } else {
        NACRE_RETURN_IF_ERROR(status);
      }
      to += bytes;
      rest.remove_prefix(bytes + Aead::kTagBytes);
    }
    return Status::OK();
  });
}

}  // namespace nacre
