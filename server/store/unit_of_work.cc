#include "server/store/unit_of_work.h"

#include <algorithm>

#include "nacre/iterator.h"
#include "server/store/unix_time.h"

namespace nacre::server {
namespace {

/// Rows of one kind in several sections, without a look at all others.
Status ScanKind(const RowNames& names, Iterator* iterator, const RowRange& range,
                std::vector<Row>* rows) {
  iterator->Seek(range.from);
  while (iterator->Valid() && rows->size() < range.limit) {
    const std::string_view row = iterator->key().ToStringView();
    const char kind = names.KindOf(row);
    if (kind == range.kind) {
      rows->push_back({std::string(row), iterator->value().ToString()});
      iterator->Next();
    } else {
      iterator->Seek(names.Kind(names.SectionOfRow(row) + (kind > range.kind ? 1 : 0), range.kind));
    }
  }
  return iterator->status();
}

Status ScanRows(Store* store, ColumnFamilyHandle* family, const RowRange& range,
                std::vector<Row>* rows) {
  const Slice from(range.from);
  const Slice to(range.to);
  ReadOptions options;
  options.iterate_lower_bound = &from;
  options.iterate_upper_bound = &to;
  const std::unique_ptr<Iterator> iterator = store->db()->NewIterator(options, family);
  if (range.kind != 0) return ScanKind(store->names(), iterator.get(), range, rows);
  range.reverse ? iterator->SeekToLast() : iterator->Seek(from);
  for (size_t i = 0; iterator->Valid() && rows->size() < range.limit; ++i) {
    if (i >= range.skip) {
      rows->push_back({iterator->key().ToString(), iterator->value().ToString()});
    }
    range.reverse ? iterator->Prev() : iterator->Next();
  }
  return iterator->status();
}

Status Malformed(std::string_view key) {
  return Status::Corruption("the meta row of key '" + std::string(key) + "' is malformed");
}

}  // namespace

UnitOfWork::UnitOfWork(const StoreAccess* access, bool changes)
    : access_(*access), changes_(changes), now_ms_(UnixMillis()) {}

Task<void> UnitOfWork::Lock(std::vector<SlotLock> locks) {
  LockTable::Normalize(&locks);
  LockTable* const table = access_.store->locks();
  for (const SlotLock& lock : locks) table->Prefetch(lock);
  locks_.reserve(locks.size());
  for (const SlotLock& lock : locks) {
    if (!table->TryLock(lock)) co_await table->Lock(access_.loop, lock);
    locks_.push_back(lock);
  }
  now_ms_ = UnixMillis();
}

void UnitOfWork::Unlock() {
  for (const SlotLock& lock : locks_) access_.store->locks()->Unlock(lock);
  locks_.clear();
}

bool UnitOfWork::Holds(const SlotLock& lock) const {
  const auto held = std::ranges::lower_bound(locks_, lock.slot, {}, &SlotLock::slot);
  return held != locks_.end() && held->slot == lock.slot && held->mode >= lock.mode;
}

void UnitOfWork::Discard() {
  rows_.clear();
  cleared_.clear();
  touched_.clear();
  sweeps_.clear();
  expired_.clear();
  events_.clear();
  ahead_ = {};
}

// ---- Keys ---------------------------------------------------------------------------------------

Task<std::optional<Meta>> UnitOfWork::Find(int database, std::string_view key) {
  RowName name(database, names().Meta(key));
  std::optional<std::string> bytes;
  if (!FindHere(name, &bytes)) bytes = co_await Get(database, std::move(name.second));
  if (!bytes.has_value()) co_return std::nullopt;
  Meta meta;
  if (!DecodeMeta(std::move(*bytes), &meta)) {
    Fail(Malformed(key));
    co_return std::nullopt;
  }
  meta.stored_expiry_ms = meta.expires_at_ms;
  if (meta.ExpiredAt(now_ms_)) {
    if (changes_) {
      expired_.push_back({database, std::string(key)});
      Delete(database, names().Meta(key));
      if (meta.type != Type::kString) PutGarbage(database, key, meta.incarnation);
    }
    co_return std::nullopt;
  }
  co_return meta;
}

Meta UnitOfWork::NewCollection(int database, Type type) {
  access_.store->Find(database)->has_elements.store(true, std::memory_order_relaxed);
  Meta meta;
  meta.type = type;
  meta.incarnation = access_.store->NewIncarnation();
  return meta;
}

void UnitOfWork::Save(int database, std::string_view key, const Meta& meta) {
  const bool there = meta.type == Type::kString || meta.count > 0;
  touched_.push_back({database, std::string(key), there});
  if (!there) {
    Delete(database, names().Meta(key));
    return;
  }
  Put(database, names().Meta(key), EncodeMeta(meta));
  if (meta.expires_at_ms != 0 && meta.expires_at_ms != meta.stored_expiry_ms) {
    PutExpiry(database, key, meta.expires_at_ms);
  }
}

void UnitOfWork::SaveString(int database, std::string_view key, std::string_view value,
                            uint64_t expires_at_ms) {
  touched_.push_back({database, std::string(key), true});
  Put(database, names().Meta(key), EncodeString(value, expires_at_ms));
  if (expires_at_ms != 0) PutExpiry(database, key, expires_at_ms);
}

void UnitOfWork::PutExpiry(int database, std::string_view key, uint64_t expires_at_ms) {
  Put(database, names().Expiry(expires_at_ms, key), "");
  sweeps_.push_back({database, names().SectionOf(key), expires_at_ms});
}

void UnitOfWork::PutGarbage(int database, std::string_view key, uint64_t incarnation) {
  Put(database, names().Garbage(key, incarnation), "");
  sweeps_.push_back({database, names().SectionOf(key), 0});
}

void UnitOfWork::Remove(int database, std::string_view key, const Meta& meta) {
  touched_.push_back({database, std::string(key), false});
  Delete(database, names().Meta(key));
  if (meta.type != Type::kString) PutGarbage(database, key, meta.incarnation);
}

// ---- Rows ---------------------------------------------------------------------------------------

std::optional<std::string> UnitOfWork::Answered(const Status& status, const PinnableSlice& value) {
  if (status.ok()) return value.ToString();
  if (!status.IsNotFound()) Fail(status);
  return std::nullopt;
}

bool UnitOfWork::FindHere(const RowName& name, std::optional<std::string>* value) {
  if (!status_.ok()) return true;
  if (!rows_.empty()) {
    const auto changed = rows_.find(name);
    if (changed != rows_.end()) {
      *value = changed->second;
      return true;
    }
  }
  if (cleared_.contains(name.first)) return true;
  if (name.first != ahead_.database) return false;
  for (size_t i = ahead_.next; i < ahead_.rows.size(); ++i) {
    if (ahead_.rows[i] != name.second) continue;
    ahead_.next = i + 1;
    *value = Answered(ahead_.statuses[i], ahead_.values[i]);
    return true;
  }
  return false;
}

Task<std::optional<std::string>> UnitOfWork::Get(int database, std::string row) {
  if (++gets_ % Yield::kTasksMax == 0) co_await Yield(access_.loop);
  const RowName name(database, std::move(row));
  std::optional<std::string> found;
  if (FindHere(name, &found)) co_return found;
  PinnableSlice value;
  const Status got =
      co_await access_.async->GetAsync(access_.read, Family(database), name.second, &value);
  co_return Answered(got, value);
}

Task<void> UnitOfWork::ReadAhead(int database, std::vector<std::string> rows) {
  if (!status_.ok() || rows.empty()) co_return;
  ahead_.database = database;
  ahead_.rows = std::move(rows);
  ahead_.next = 0;
  ahead_.values = std::vector<PinnableSlice>(ahead_.rows.size());
  ahead_.statuses = std::vector<Status>(ahead_.rows.size());
  const std::vector<Slice> keys(ahead_.rows.begin(), ahead_.rows.end());
  const Status all = co_await access_.async->MultiGetAsync(
      access_.read, Family(database), keys.size(), keys.data(), ahead_.values.data(),
      ahead_.statuses.data());
  if (!all.ok()) Fail(all);
}

Task<std::vector<std::optional<std::string>>> UnitOfWork::MultiGet(int database,
                                                                   std::vector<std::string> rows) {
  std::vector<std::optional<std::string>> found(rows.size());
  std::vector<size_t> missing;
  std::vector<std::string> missing_rows;
  std::vector<RowName> names;
  names.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    names.emplace_back(database, std::move(rows[i]));
    if (FindHere(names[i], &found[i])) continue;
    missing.push_back(i);
    missing_rows.push_back(names[i].second);
  }
  if (missing.empty()) co_return found;
  co_await ReadAhead(database, std::move(missing_rows));
  for (const size_t i : missing) FindHere(names[i], &found[i]);
  co_return found;
}

bool UnitOfWork::HasChangesIn(int database, const RowRange& range) const {
  const auto first = FirstChange(database, range.from);
  return first != rows_.end() && first->first.first == database && first->first.second < range.to;
}

void UnitOfWork::ApplyChanges(int database, const RowRange& range, std::vector<Row>* rows) const {
  std::map<std::string, std::string> merged;
  for (Row& row : *rows) merged.emplace(std::move(row.key), std::move(row.value));
  for (auto i = FirstChange(database, range.from);
       i != rows_.end() && i->first.first == database && i->first.second < range.to; ++i) {
    if (range.kind != 0 && names().KindOf(i->first.second) != range.kind) continue;
    if (i->second.has_value()) {
      merged[i->first.second] = *i->second;
    } else {
      merged.erase(i->first.second);
    }
  }
  rows->clear();
  for (const auto& [key, value] : merged) rows->push_back({key, value});
  if (range.reverse) std::reverse(rows->begin(), rows->end());
  const size_t skip = std::min(range.skip, rows->size());
  rows->erase(rows->begin(), rows->begin() + static_cast<ptrdiff_t>(skip));
  if (rows->size() > range.limit) rows->resize(range.limit);
}

Task<std::vector<Row>> UnitOfWork::Scan(int database, RowRange range) {
  std::vector<Row> rows;
  if (!status_.ok() || range.limit == 0 || range.from >= range.to) co_return rows;
  if (cleared_.contains(database)) {
    ApplyChanges(database, range, &rows);
    co_return rows;
  }
  const bool changed = HasChangesIn(database, range);
  RowRange stored = range;
  if (changed) {
    stored.skip = 0;
    stored.limit = SIZE_MAX;
    stored.reverse = false;
  }
  Status status;
  Offload offload(access_.loop, access_.workers,
                  [&] { status = ScanRows(access_.store, Family(database), stored, &rows); });
  co_await offload;
  if (!status.ok()) {
    Fail(std::move(status));
    rows.clear();
  } else if (changed) {
    ApplyChanges(database, range, &rows);
  }
  co_return rows;
}

Task<std::vector<Row>> UnitOfWork::ScanKeys(int database, std::string from, size_t limit) {
  const SlotRange& sections = access_.store->sections();
  if (from.empty()) from = names().Kind(sections.first, kMetaRow);
  RowRange range(std::move(from), names().Kind(sections.behind - 1, kMetaRow + 1), limit);
  if (names().by_slot()) range.kind = kMetaRow;
  co_return co_await Scan(database, std::move(range));
}

void UnitOfWork::Put(int database, std::string row, std::string value) {
  rows_.insert_or_assign(RowName(database, std::move(row)), std::move(value));
}

void UnitOfWork::Delete(int database, std::string row) {
  rows_.insert_or_assign(RowName(database, std::move(row)), std::nullopt);
}

void UnitOfWork::Clear(int database) {
  std::erase_if(rows_, [&](const auto& row) { return row.first.first == database; });
  cleared_.insert(database);
}

// ---- The end ------------------------------------------------------------------------------------

AsyncStatus UnitOfWork::Submit() {
  batch_.Clear();
  const auto note = [this](Status added) {
    if (!added.ok()) Fail(std::move(added));
  };
  for (const int database : cleared_) {
    // Rows begin with a letter.
    note(batch_.DeleteRange(Family(database), Slice(), Slice("\xff")));
  }
  cleared_.clear();
  for (const auto& [name, value] : rows_) {
    ColumnFamilyHandle* const family = Family(name.first);
    note(value.has_value() ? batch_.Put(family, name.second, *value)
                           : batch_.Delete(family, name.second));
  }
  rows_.clear();
  if (!status_.ok()) batch_.Clear();
  return access_.async->WriteAsync({}, &batch_);
}

void UnitOfWork::Written(Status status) {
  // After a failure, too: the write may have taken place.
  for (const SweepTime& sweep : std::exchange(sweeps_, {})) {
    access_.store->SweepBy(sweep.database, sweep.section, sweep.unix_ms);
  }
  if (!status.ok()) Fail(std::move(status));
}

}  // namespace nacre::server
