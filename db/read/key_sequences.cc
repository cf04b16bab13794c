#include "db/read/key_sequences.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/family/column_family.h"
#include "db/family/hidden_family.h"
#include "db/read/db_iterator.h"
#include "db/read/view_reads.h"
#include "table/format/write_batch_format.h"
#include "table/iterator/internal_iterator.h"
#include "table/table_reader.h"
#include "util/exceptions.h"
#include "util/hash.h"

namespace nacre {
namespace {

/// Raises `*latest` to the sequence of the newest entry of `key` in the table, or of the newest
/// range tombstone there that covers it.
Status LookIntoTable(const TableHandle& table, const Slice& key, SequenceNumber* latest) {
  if (table.meta().has_range_deletions()) {
    NACRE_RETURN_IF_ERROR(table.reader().LoadRangeTombstones());
    const RangeTombstones& tombstones = *table.reader().range_tombstones();
    *latest = std::max(*latest, tombstones.Covering(key, kMaxSequenceNumber));
  }
  const std::unique_ptr<InternalIterator> entries = table.reader().NewIterator({});
  std::string target;
  AppendInternalKey(&target, key, PackTag(kMaxSequenceNumber, kValueTypeForSeek));
  entries->Seek(target);
  if (!entries->Valid()) return entries->status();
  if (entries->user_key() == key) *latest = std::max(*latest, TagSequence(entries->tag()));
  return Status::OK();
}

Status NoFamily(uint32_t family) {
  return Status::InvalidArgument("there is no column family " + std::to_string(family));
}

}  // namespace

std::unique_ptr<Iterator> KeySequences::NewMemoryIterator(const ReadOptions& options,
                                                          uint32_t family) const try {
  if (Status status = state_->context->CheckLease(); !status.ok())
    return NewErrorIterator(std::move(status));
  const std::shared_ptr<const ColumnFamilySet> families = state_->Families();
  const auto found = families->by_id.find(family);
  if (found == families->by_id.end()) return NewErrorIterator(NoFamily(family));
  SequenceNumber snapshot = 0;
  std::shared_ptr<const ReadView> view = reads_->HoldConsistent(*found->second, options, &snapshot);
  return nacre::NewMemoryIterator(std::move(view), snapshot, options);
} catch (...) {
  return NewErrorIterator(StatusOfException());
}

std::unique_ptr<ColumnFamilyHandle> KeySequences::FindHandle(uint32_t family) const {
  const std::shared_ptr<const ColumnFamilySet> families = state_->Families();
  const auto found = families->by_id.find(family);
  if (found == families->by_id.end()) return nullptr;
  return state_->NewHandle(found->second);
}

std::unique_ptr<ColumnFamilyHandle> KeySequences::FindHandle(const std::string& family) const {
  const std::shared_ptr<const ColumnFamilySet> families = state_->Families();
  const ColumnFamily* found = families->Find(family);
  return found == nullptr ? nullptr : FindHandle(found->id());
}

std::vector<uint32_t> KeySequences::Families() const {
  std::vector<uint32_t> ids;
  const std::shared_ptr<const ColumnFamilySet> families = state_->Families();
  for (const auto& [id, family] : families->by_id) {
    if (family->name() != kPreparedFamilyName) ids.push_back(id);
  }
  return ids;
}

Status KeySequences::Latest(uint32_t family, const Slice& key, SequenceNumber known,
                            SequenceNumber* sequence) const {
  NACRE_RETURN_IF_ERROR(state_->context->CheckLease());
  *sequence = 0;
  std::shared_ptr<const ColumnFamilySet> families;
  const ColumnFamily* of = state_->default_family.get();
  if (family != kDefaultFamily) {
    families = state_->Families();
    of = families->Find(family);
    if (of == nullptr) return NoFamily(family);
  }
  EpochDomain::Guard guard(&state_->context->epochs);
  const ReadView& view = *of->view();
  const uint64_t hash = Hash64(key);
  for (const auto& memtable : view.memtables) {
    if (const auto* runs = memtable->range_tombstones(); runs != nullptr) {
      *sequence = runs->Covering(key, kMaxSequenceNumber);
    }
    Slice value;
    SequenceNumber found = 0;
    if (memtable->Get(key, hash, kMaxSequenceNumber, &value, &found) !=
        MemTable::LookupResult::kAbsent) {
      *sequence = std::max(*sequence, found);
    }
    if (*sequence > 0) return Status::OK();  // What lies deeper is older.
  }
  const Version& version = *view.version;
  const TableList& level0 = version.level0();
  const auto may_tell = [known](const TableHandle& table) {
    return table.meta().largest_sequence > known;
  };
  for (size_t i = 0; i < level0.size(); ++i) {
    if (!may_tell(*level0[i]) || !version.Level0Holds(i, key)) continue;
    NACRE_RETURN_IF_ERROR(LookIntoTable(*level0[i], key, sequence));
  }
  for (int level = 1; level < version.depth() && *sequence <= known; ++level) {
    for (const auto& table : version.sorted_level(level).FindAll(key)) {
      if (may_tell(*table)) NACRE_RETURN_IF_ERROR(LookIntoTable(*table, key, sequence));
    }
  }
  return Status::OK();
}

}  // namespace nacre
