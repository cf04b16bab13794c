#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "db/db_impl.h"
#include "table/internal_iterator.h"
#include "table/table_reader.h"
#include "util/hash.h"

namespace nacre {
namespace {

/// Raises `*latest` to the sequence of the newest entry of `key` in the table.
Status LookIntoTable(const TableHandle& table, const Slice& key, SequenceNumber* latest) {
  const std::unique_ptr<InternalIterator> entries = table.reader().NewIterator({});
  std::string target;
  AppendInternalKey(&target, key, PackTag(kMaxSequenceNumber, kValueTypeForSeek));
  entries->Seek(target);
  if (!entries->Valid()) return entries->status();
  if (entries->user_key() == key) *latest = std::max(*latest, TagSequence(entries->tag()));
  return Status::OK();
}

}  // namespace

Status DBImpl::GetLatestSequence(const Slice& key, SequenceNumber known,
                                 SequenceNumber* sequence) const {
  NACRE_RETURN_IF_ERROR(CheckLease());
  *sequence = 0;
  EpochDomain::Guard guard(&epochs_);
  const ReadView& view = *view_.load(std::memory_order_acquire);  // Pairs with InstallView.
  const uint64_t hash = Hash64(key);
  for (const auto& memtable : view.memtables) {
    Slice value;
    SequenceNumber found = 0;
    if (memtable->Get(key, hash, kMaxSequenceNumber, &value, &found) !=
        MemTable::LookupResult::kAbsent) {
      *sequence = found;  // What lies deeper is older.
      return Status::OK();
    }
  }
  const Version& version = *view.version;
  const TableList& level0 = version.tables(0);
  const auto may_tell = [known](const TableHandle& table) {
    return table.meta().largest_sequence > known;
  };
  for (size_t i = 0; i < level0.size(); ++i) {
    if (!may_tell(*level0[i]) || !version.Level0Holds(i, key)) continue;
    NACRE_RETURN_IF_ERROR(LookIntoTable(*level0[i], key, sequence));
  }
  for (int level = 1; level < version.depth() && *sequence <= known; ++level) {
    const TableHandle* table = version.sorted_level(level).Find(key);
    if (table != nullptr && may_tell(*table)) {
      NACRE_RETURN_IF_ERROR(LookIntoTable(*table, key, sequence));
    }
  }
  return Status::OK();
}

}  // namespace nacre
