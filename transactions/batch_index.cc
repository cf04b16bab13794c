#include "transactions/batch_index.h"

#include <algorithm>
#include <iterator>

#include "transactions/below.h"

namespace nacre {

bool BatchIndex::Less::operator()(const Entry& a, const Entry& b) const {
  if (a.family != b.family) return a.family < b.family;
  const int order = index_->Compare(a.family, index_->KeyOf(a), index_->KeyOf(b));
  return order != 0 ? order < 0 : a.at < b.at;
}

bool BatchIndex::Less::operator()(const Entry& a, const Place& b) const {
  if (a.family != b.family) return a.family < b.family;
  if (b.key == nullptr) return b.behind;
  const int order = index_->Compare(a.family, index_->KeyOf(a), *b.key);
  return order < 0 || (order == 0 && b.behind);
}

BatchIndex::BatchIndex(const WriteBatch* batch, const Comparator* comparator, bool overwrite)
    : batch_(batch), comparator_(comparator), overwrite_(overwrite), entries_(Less(this)) {}

void BatchIndex::NoteFamily(ColumnFamilyHandle* family) {
  const uint32_t id = IdOf(family);
  if (family == nullptr || comparators_.find(id) != comparators_.end()) return;
  const Cursor first = At({id, nullptr, /*behind=*/false});
  const bool begun = first != end() && first->family == id;  // This handles calls without a handle.
  const Comparator* comparator = begun ? nullptr : nacre::ComparatorOf(family);
  comparators_.emplace(id, comparator != nullptr ? comparator : comparator_);
}

const Comparator* BatchIndex::ComparatorOf(uint32_t family) const {
  if (comparators_.empty()) return comparator_;
  const auto found = comparators_.find(family);
  return found == comparators_.end() ? comparator_ : found->second;
}

BatchItem BatchIndex::ItemOf(const Entry& entry) const {
  Slice input(batch_->Data());
  input.remove_prefix(entry.at);
  BatchItem item;
  // It was parsed when it was added.
  ParseBatchItem(&input, &item).IgnoreError();
  return item;
}

void BatchIndex::AddTo(Entries* entries, size_t at) const {
  Slice input(batch_->Data());
  input.remove_prefix(at);
  BatchItem item;
  if (!ParseBatchItem(&input, &item).ok() || item.log_data) return;
  const auto key_at = static_cast<size_t>(item.key.data() - batch_->Data().data());
  const Cursor behind = entries->lower_bound(Place{item.family, &item.key, /*behind=*/true});
  if (overwrite_ && item.type != ValueType::kMerge && behind != entries->begin()) {
    const Entry& latest = *std::prev(behind);
    if (latest.family == item.family && Compare(item.family, KeyOf(latest), item.key) == 0) {
      latest.at = at;
      return;
    }
  }
  entries->insert(behind, {item.family, key_at, item.key.size(), at});
}

Status BatchIndex::Rebuild() {
  Entries rebuilt{Less(this)};
  Slice input(batch_->Data());
  input.remove_prefix(std::min(input.size(), kWriteBatchHeader));
  while (!input.empty()) {
    const auto at = static_cast<size_t>(input.data() - batch_->Data().data());
    BatchItem item;
    NACRE_RETURN_IF_ERROR(ParseBatchItem(&input, &item));
    AddTo(&rebuilt, at);
  }
  entries_.swap(rebuilt);
  return Status::OK();
}

}  // namespace nacre
