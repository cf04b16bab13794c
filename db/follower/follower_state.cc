#include "db/follower/follower_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "db/family/family_check.h"
#include "db/family/hidden_family.h"
#include "db/manifest/state_record.h"
#include "db/wal/log_seal.h"
#include "pool/wire/database_report.h"
#include "table/format/write_batch_format.h"
#include "util/boot_clock.h"
#include "util/clock.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

/// A manifest that was left for another does not say so. Nothing depends on how soon that is found
/// out: the log says when it has gone on elsewhere, and tables when they are gone.
constexpr uint64_t kRootPeriodNanos = 1'000'000'000;

}  // namespace

FollowerState::FollowerState(std::string name, pool::PoolClient* client,
                             const TableSurroundings& surroundings)
    : name_(name),
      client_(client),
      surroundings_(surroundings),
      manifest_(client, std::move(name)) {}

Status FollowerState::Open(const std::vector<ColumnFamilyDescriptor>& descriptors, Logger* log) {
  NACRE_RETURN_IF_ERROR(manifest_.Open());
  const ManifestState& state = manifest_.state();
  NACRE_RETURN_IF_ERROR(CheckNamedFamiliesOf(state, descriptors, /*may_miss=*/false));
  const auto open = [&](uint32_t id, const std::string& name, uint32_t num_levels) {
    const ColumnFamilyDescriptor* descriptor = FindDescriptor(descriptors, name);
    ColumnFamilyOptions options;
    if (descriptor != nullptr) {
      options = descriptor->options;
    } else if (name == kPreparedFamilyName) {
      options = HiddenFamilyOptions(families_.at(kDefaultFamily)->options(), num_levels);
    } else {
      return;
    }
    auto family = std::make_shared<ColumnFamily>(id, name, options, num_levels, log);
    const int levels = std::max(static_cast<int>(num_levels), 2);
    versions_[id] = std::make_shared<Version>(&family->comparator(), levels);
    families_[id] = std::move(family);
  };
  open(kDefaultFamily, kDefaultColumnFamilyName, state.num_levels);
  for (const auto& [id, record] : state.families) open(id, record.name, record.num_levels);
  blocks_ =
      std::make_shared<ArenaBlockPool>(families_.at(kDefaultFamily)->options().write_buffer_size);
  NewLog();
  LookForNodes();
  NACRE_RETURN_IF_ERROR(TakeManifest(/*replaced=*/true));
  return CatchUp(Goal::kAcknowledged);
}

void FollowerState::NewLog() {
  const uint64_t database_id = manifest_.database_id();
  log_.follower = std::make_unique<LogFollower>(client_, database_id);
  const TableKeys* const keys = surroundings_.keys;
  log_.decryptor =
      std::make_unique<LogDecryptor>(keys == nullptr ? nullptr : keys->ring(), database_id);
}

Status FollowerState::OpenLog(LogObserver* observer) {
  observer_ = observer;
  NACRE_RETURN_IF_ERROR(manifest_.Open());
  NewLog();
  LookForNodes();
  NACRE_RETURN_IF_ERROR(TakeManifest(/*replaced=*/true));
  return CatchUp(Goal::kAcknowledged);
}

bool FollowerState::CatchUpByMarks() {
  const uint64_t hold = std::chrono::nanoseconds(kMarksHold).count();
  const bool certain =
      !incomplete_ && whole_look_nanos_ != 0 && BootClock()->NowNanos() - whole_look_nanos_ < hold;
  if (!certain) return false;
  LogFollower::End end = LogFollower::End::kUnknown;
  const Status log = ReadLog(LogFollower::Look::kSealsInFull, &end);
  // What waits may do so for what is in tables by now.
  return log.ok() && end == LogFollower::End::kReached && waiting_.empty() &&
         BootClock()->NowNanos() - whole_look_nanos_ < hold;
}

Status FollowerState::CatchUp(Goal goal) {
  const SequenceNumber in_tables = manifest_.state().last_sequence;
  NACRE_RETURN_IF_ERROR(CatchUpTo(goal));
  // The log has been read to its end since: what it has not got up to there it will never have.
  return observer_ == nullptr || incomplete_ ? Status::OK() : CompleteThrough(in_tables);
}

Status FollowerState::CatchUpTo(Goal goal) {
  if (goal == Goal::kAcknowledged && CatchUpByMarks()) return Status::OK();
  bool changed = false;
  Status manifest;
  const bool due = client_->clock()->NowNanos() - root_looked_at_nanos_ > kRootPeriodNanos;
  const bool all = goal != Goal::kRecent || due;
  if (!all) manifest = ReadManifest(ManifestFollower::Look::kEdits, &changed);
  // What is read anew must not end before where it ended last.
  auto look = all || changed || incomplete_ ? LogFollower::Look::kHeads : LogFollower::Look::kSeals;
  const Deadline deadline = Deadline::After(client_->clock(), client_->options().operation_timeout);
  for (;;) {
    LogFollower::End end = LogFollower::End::kUnknown;
    const uint64_t begun = BootClock()->NowNanos();
    const Status log = ReadLog(look, &end);
    if (end == LogFollower::End::kForeign) {
      ForgetLog();
      NACRE_RETURN_IF_ERROR(TablesThrough(manifest_.state().last_sequence));
      look = LogFollower::Look::kHeads;
      NACRE_RETURN_IF_ERROR(CheckPatience(deadline));
      continue;
    }
    if (log.ok() && end == LogFollower::End::kReached) return manifest;
    // If the manifest is still the database's and has no segment that was not looked at, what was
    // read of the log was all. Else its segments may have been freed, and look like a shorter log.
    changed = false;
    NACRE_RETURN_IF_ERROR(ReadManifest(ManifestFollower::Look::kRoot, &changed));
    if (!changed) {
      if (log.ok() && look == LogFollower::Look::kHeads) {
        incomplete_ = false;
        whole_look_nanos_ = log_.follower->next_is_announced() ? 0 : begun;
      }
      return log;
    }
    look = LogFollower::Look::kHeads;
    // A failure of the log says nothing: segments that are no more may be behind it.
    NACRE_RETURN_IF_ERROR(CheckPatience(deadline));
  }
}

Status FollowerState::CheckPatience(const Deadline& deadline) const {
  if (!deadline.Expired()) return Status::OK();
  return Status::TimedOut(
      fmt::format("database '{}': it changes faster than it can be followed", name_));
}

Status FollowerState::ReadManifest(ManifestFollower::Look look, bool* changed) {
  ManifestFollower::News news = ManifestFollower::News::kNone;
  Status status = manifest_.CatchUp(look, &news);
  if (status.IsUnavailable()) {
    // The manifest may be on nodes that have joined since.
    client_->JoinAddedNodes();
    ManifestFollower::News more = ManifestFollower::News::kNone;
    status = manifest_.CatchUp(look, &more);
    news = std::max(news, more);
  }
  if (look == ManifestFollower::Look::kRoot && status.ok()) {
    root_looked_at_nanos_ = client_->clock()->NowNanos();
    LookForNodes();
  }
  if (news != ManifestFollower::News::kNone || NumberNodes() != numbers_) {
    *changed = true;
    NACRE_RETURN_IF_ERROR(TakeManifest(news == ManifestFollower::News::kReplaced));
  }
  return status;
}

Status FollowerState::ReadLog(LogFollower::Look look, LogFollower::End* end) {
  return log_.follower
      ->Advance(
          look,
          [this](SequenceNumber first, uint32_t count, const Slice& payload) -> Status {
            if (LogDecryptor::IsEncrypted(payload)) log_.decrypted.resize(payload.size());
            Slice updates;
            NACRE_RETURN_IF_ERROR(
                log_.decryptor->Decrypt(first, count, payload, log_.decrypted.data(), &updates));
            return TakeRecord(first, count, updates);
          },
          [this](SequenceNumber last) { return CompleteThrough(last); }, end)
      .WithContext("database " + name_);
}

// ---- The manifest's part ----------------------------------------------------------------------

std::map<NodeId, NodeId> FollowerState::NumberNodes() const {
  std::map<NodeId, NodeId> numbers;
  for (const auto& [node, instance] : manifest_.state().nodes) {
    for (int i = 0; i < client_->node_count(); ++i) {
      const auto here = static_cast<NodeId>(i);
      if (client_->instance_id(here) != instance) continue;
      // One that was away may have another number now.
      const auto known = numbers.find(node);
      if (known == numbers.end() || client_->alive(here)) numbers[node] = here;
    }
  }
  return numbers;
}

void FollowerState::LookForNodes() {
  if (NumberNodes().size() < manifest_.state().nodes.size()) client_->JoinAddedNodes();
}

ExtentAddr FollowerState::Here(ExtentAddr extent) const {
  const auto it = numbers_.find(static_cast<NodeId>(extent.start.node));
  extent.start.node = it != numbers_.end() ? it->second : kLostNode;
  return extent;
}

void FollowerState::ForgetLog() {
  incomplete_ = changed_ = true;
  if (observer_ != nullptr) observer_->Forget();
  memtables_.clear();
  waiting_.clear();
  applied_ = covered_ = 0;
  log_.follower->Reset();
}

Status FollowerState::TakeManifest(bool replaced) {
  const ManifestState& state = manifest_.state();
  numbers_ = NumberNodes();
  const uint64_t epoch = manifest_.root().identity.epoch;
  const bool another = epoch != owner_epoch_;
  // The new manifest may lack a flush's edit that its predecessor had. Otherwise what the same
  // owner has in its log stays right, also what it is still to write once more.
  if (replaced && (another || state.last_sequence < covered_)) ForgetLog();
  std::map<uint64_t, LogSegment> segments;
  has_log_ = false;
  for (const auto& [number, segment] : state.segments) {
    if (number == kStateRecordNumber || segment.copies.empty()) continue;
    has_log_ = true;
    if (segment.kept && observer_ == nullptr) continue;
    LogSegment& here = segments[number];
    here.number = number;
    for (const ExtentAddr& copy : segment.copies) here.copies.push_back(Here(copy));
  }
  if (another) log_.follower->OwnerLeaves();
  log_.follower->SetSegments(std::move(segments));
  if (another) log_.follower->OwnerChanged();
  owner_epoch_ = epoch;
  TakeFamilies();
  TakeLevels();
  NACRE_RETURN_IF_ERROR(TakeTables());
  changed_ = true;
  return TablesThrough(state.last_sequence);
}

void FollowerState::TakeLevels() {
  // An owner that opened the database with more of them.
  for (auto& [id, version] : versions_) {
    const auto levels = static_cast<int>(manifest_.state().LevelsOf(id));
    if (levels <= version->num_levels()) continue;
    VersionEdit all;
    for (int level = 0; level < version->num_levels(); ++level) {
      for (const auto& table : version->tables(level)) all.added.push_back({level, table});
    }
    version = Version::Apply(Version(&families_.at(id)->comparator(), levels), all);
  }
}

void FollowerState::TakeFamilies() {
  for (const auto& [id, family] : families_) {
    if (manifest_.state().LevelsOf(id) > 0 || dropped_.contains(id)) continue;
    dropped_[id] = view_ != nullptr ? view_->Of(id) : nullptr;
    ++generation_;
  }
}

Status FollowerState::TakeTables() {
  std::map<uint32_t, VersionEdit> edits;
  const ManifestState& state = manifest_.state();
  const auto& tables = state.tables;
  auto next = tables_;
  for (auto it = next.begin(); it != next.end();) {
    const auto& table = it->second.second;
    const uint32_t family = table->meta().family;
    if (tables.contains(it->first)) {
      ++it;
      continue;
    }
    edits[family].removed.push_back(table);
    it = next.erase(it);
  }
  SequenceNumber through = state.last_sequence;
  for (const auto& [id, recorded] : tables) {
    const auto& [level, meta] = recorded;
    through = std::max(through, meta.largest_sequence);
    const auto family = families_.find(meta.family);
    if (family == families_.end()) continue;
    VersionEdit& edit = edits[meta.family];
    Placement placement = meta.placement;
    for (ExtentAddr& fragment : placement.fragments) fragment = Here(fragment);
    const auto known = next.find(id);
    if (known != next.end()) {
      const auto& [old_level, old] = known->second;
      const bool moved = !(old->meta().placement.fragments == placement.fragments);
      if (!moved && old_level == level) continue;
      edit.removed.push_back(old);
      if (!moved) {
        edit.added.push_back({static_cast<int>(level), old});
        known->second.first = level;
        continue;
      }
    }
    TableMeta here = meta;
    here.placement = std::move(placement);
    std::shared_ptr<TableHandle> handle;
    NACRE_RETURN_IF_ERROR(TableHandle::OpenUnread(
        std::move(here), family->second->user_comparator(), surroundings_, &handle));
    edit.added.push_back({static_cast<int>(level), handle});
    next[id] = {level, std::move(handle)};
  }
  tables_through_ = through;
  bool changed = false;
  for (const auto& [family, edit] : edits) {
    if (edit.added.empty() && edit.removed.empty()) continue;
    versions_[family] = Version::Apply(*versions_[family], edit);
    changed = true;
  }
  if (!changed) return Status::OK();
  tables_ = std::move(next);
  ++generation_;
  return Status::OK();
}

Status FollowerState::TablesThrough(SequenceNumber sequence) {
  // The log may still have what is in tables.
  if (observer_ != nullptr) return Status::OK();
  covered_ = std::max(covered_, sequence);
  // What they have is in the tables, and all of it, so none is looked at before a later version.
  while (!memtables_.empty() && memtables_.back().last <= sequence) memtables_.pop_back();
  if (memtables_.empty()) memtables_.emplace_back();
  if (sequence != left_out_ && !NACRE_PLANTED_BUG("follower.operands-of-log-and-tables-applied")) {
    LeaveOut(sequence);
  }
  if (sequence <= applied_) return Status::OK();
  applied_ = sequence;
  while (!waiting_.empty() &&
         waiting_.begin()->first + waiting_.begin()->second.count - 1 <= sequence) {
    waiting_.erase(waiting_.begin());
  }
  return InsertWaiting();
}

void FollowerState::LeaveOut(SequenceNumber sequence) {
  left_out_ = sequence;
  for (Filled& filled : memtables_) {
    for (auto& [id, memtable] : filled.memtables) {
      if (memtable->operands() == 0) continue;
      // Views still have the one that there was.
      std::shared_ptr<MemTable> later = NewMemTable(*families_.at(id));
      later->AddLaterOf(*memtable, sequence);
      memtable = std::move(later);
    }
  }
}

Status FollowerState::PinTables(PinnedTables* pinned) const {
  const ManifestState& state = manifest_.state();
  *pinned = PinnedTables();
  pinned->families = state.families;
  pinned->next_family = state.next_family;
  pinned->num_levels = state.num_levels;
  pinned->sequence = std::max(state.last_sequence, tables_through_);
  pinned->manifest_version = state.version;
  pinned->next_table_id = state.next_table_id;
  VersionList versions = {versions_.at(kDefaultFamily)};
  for (const auto& [id, record] : state.families) {
    const auto version = versions_.find(id);
    if (version == versions_.end()) {
      return Status::InvalidArgument(
          fmt::format("column family {} of database '{}' is not open", record.name, name_));
    }
    versions.push_back(version->second);
  }
  ForEachTable(versions, [&](const auto& table, int level) {
    pinned->tables.push_back({level, table});
  });
  return Status::OK();
}

// ---- The log's part ---------------------------------------------------------------------------

std::shared_ptr<MemTable> FollowerState::NewMemTable(const ColumnFamily& family) {
  return std::make_shared<MemTable>(family.user_comparator(), ++memtable_generation_,
                                    MemTable::IndexBytes(family.options().write_buffer_size),
                                    blocks_);
}

MemTable* FollowerState::MemTableOf(const ColumnFamily& family) {
  std::shared_ptr<MemTable>& memtable = memtables_.front().memtables[family.id()];
  if (memtable == nullptr) memtable = NewMemTable(family);
  return memtable.get();
}

Status FollowerState::TakeRecord(SequenceNumber first, uint32_t count, const Slice& updates) {
  const SequenceNumber last = first + count - 1;
  if (last <= applied_) return Status::OK();
  if (first > applied_ + 1) {
    waiting_.try_emplace(first, Waiting{.count = count, .updates = updates.ToString()});
    return Status::OK();
  }
  NACRE_RETURN_IF_ERROR(Insert(first, count, updates));
  return InsertWaiting();
}

Status FollowerState::Insert(SequenceNumber first, uint32_t count, const Slice& updates) {
  if (first <= applied_) {
    return Status::Corruption(
        fmt::format("the log has sequences {} to {} in one record, and some of them were there "
                    "before",
                    first, first + count - 1));
  }
  if (observer_ != nullptr) {
    observer_->Record(first, count, updates);
    applied_ = first + count - 1;
    changed_ = true;
    return Status::OK();
  }
  SequenceNumber sequence = first;
  bool full = false;
  NACRE_RETURN_IF_ERROR(ForEachEncodedUpdate(
      updates, count, [&](ValueType type, uint32_t id, const Slice& key, const Slice& value) {
        const SequenceNumber of_update = sequence++;
        const auto family = families_.find(id);
        if (family == families_.end()) return;  // It is not open, or was dropped.
        MemTable* memtable = MemTableOf(*family->second);
        bool new_chunk = false;
        memtable->Add(of_update, type, key, value, &new_chunk);
        full = full || (new_chunk &&
                        memtable->MemoryUsage() >= family->second->options().write_buffer_size);
      }));
  applied_ = memtables_.front().last = first + count - 1;
  changed_ = true;
  if (full) memtables_.emplace(memtables_.begin());
  return Status::OK();
}

Status FollowerState::InsertWaiting() {
  while (!waiting_.empty() && waiting_.begin()->first <= applied_ + 1) {
    const auto it = waiting_.begin();
    const SequenceNumber last = it->first + it->second.count - 1;
    if (last > applied_) {
      NACRE_RETURN_IF_ERROR(Insert(it->first, it->second.count, it->second.updates));
    }
    waiting_.erase(it);
  }
  return Status::OK();
}

Status FollowerState::CompleteThrough(SequenceNumber sequence) {
  while (!waiting_.empty() && waiting_.begin()->first <= sequence) {
    // What is missing before it is in no log.
    applied_ = std::max(applied_, waiting_.begin()->first - 1);
    NACRE_RETURN_IF_ERROR(InsertWaiting());
  }
  if (sequence > applied_) {
    applied_ = sequence;
    changed_ = true;
  }
  return InsertWaiting();
}

std::shared_ptr<const FollowerView> FollowerState::View() {
  if (!changed_ || incomplete_) return view_;
  auto view = std::make_shared<FollowerView>();
  for (const auto& [id, family] : families_) {
    if (const auto dropped = dropped_.find(id); dropped != dropped_.end()) {
      view->dropped.insert(id);
      if (dropped->second != nullptr) {
        view->families.emplace_back(id, dropped->second);
        continue;
      }
    }
    std::shared_ptr<ReadView> of_family = family->NewView();
    for (const Filled& filled : memtables_) {
      const auto memtable = filled.memtables.find(id);
      if (memtable == filled.memtables.end()) continue;
      of_family->memtables.push_back(memtable->second);
    }
    of_family->version = versions_.at(id);
    view->families.emplace_back(id, std::move(of_family));
  }
  view->sequence = applied_;
  view->tables_through = tables_through_;
  view->manifest_version = manifest_.state().version;
  view->generation = generation_;
  changed_ = false;
  view_ = std::move(view);
  return view_;
}

}  // namespace nacre
