#include "tests/support/sim_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <utility>

#include "tests/support/test_db.h"

namespace nacre::sim {

namespace {

/// Before the digits of an attempt's number, and after them.
constexpr size_t kNumberBytes = 12;
constexpr std::chrono::milliseconds kScanPause{300};

}  // namespace

std::string Model::KeyOf(size_t group, size_t i) { return fmt::format("{}-{:04}", i, group); }

std::string Model::ValueOf(size_t group, size_t i, uint64_t attempt, size_t bytes) {
  return fmt::format("{:0{}}", attempt, kNumberBytes) +
         TestValue(attempt * 1000 + group * kKeysPerGroup + i, bytes);
}

void Model::Fail(size_t group, const std::string& why) {
  std::string history;
  const Group& g = groups_[group];
  const size_t first = g.attempts.size() > 12 ? g.attempts.size() - 12 : 0;
  for (size_t i = first; i < g.attempts.size(); ++i) {
    history += fmt::format("  attempt {} of owner {}{}{}\n", i + 1, g.attempts[i].owner,
                           g.attempts[i].deletes ? ", a deletion" : "",
                           g.attempts[i].forbidden ? ", which had been replaced" : "");
  }
  scheduler_->Fail(fmt::format("group {}: {}; at least attempt {} has taken place\n{}", group, why,
                               g.floor, history));
}

uint64_t Model::BeginWrite(size_t group, uint32_t owner, bool deletes, size_t value_bytes,
                           WriteBatch* batch) {
  Group& g = groups_[group];
  g.attempts.push_back({.owner = owner,
                        .deletes = deletes,
                        .forbidden = replaced(owner),
                        .value_bytes = static_cast<uint32_t>(value_bytes),
                        .begun = ++moment_});
  const uint64_t attempt = g.attempts.size();
  for (size_t i = 0; i < kKeysPerGroup; ++i) {
    if (deletes) {
      batch->Delete(KeyOf(group, i)).IgnoreError();
    } else {
      batch->Put(KeyOf(group, i), ValueOf(group, i, attempt, value_bytes)).IgnoreError();
    }
  }
  return attempt;
}

void Model::EndWrite(size_t group, uint64_t attempt, bool acknowledged) {
  if (!acknowledged) {
    ++unresolved_;
    return;
  }
  ++acknowledged_;
  Group& g = groups_[group];
  if (g.attempts[attempt - 1].forbidden) {
    Fail(group,
         fmt::format("attempt {} was acknowledged to an owner that had been replaced", attempt));
  }
  g.attempts[attempt - 1].acknowledged = ++moment_;
  g.attempts[attempt - 1].proved = true;
  g.floor = std::max(g.floor, attempt);
}

void Model::OwnerOpened(uint32_t owner, uint64_t begun_nanos) {
  for (OwnerState& other : owners_) {
    if (other.opened_nanos == 0 || other.opened_nanos >= begun_nanos) continue;
    if (other.replaced_nanos == 0) other.replaced_nanos = scheduler_->TrueNanos();
  }
  owners_[owner].opened_nanos = scheduler_->TrueNanos();
}

void Model::JudgeReplaced(uint32_t owner, uint64_t begun_nanos) {
  const OwnerState& state = owners_[owner];
  if (!replaced(owner) || begun_nanos < state.replaced_nanos) return;
  scheduler_->Fail(fmt::format("owner {} answers a read that began {:.3f} ms after it was replaced",
                               owner,
                               static_cast<double>(begun_nanos - state.replaced_nanos) * 1e-6));
}

bool Model::overtaken(uint32_t owner) const {
  return std::any_of(owners_.begin(), owners_.end(), [&](const OwnerState& other) {
    return other.opened_nanos > owners_[owner].opened_nanos;
  });
}

bool Model::contended(uint32_t owner) const {
  const uint64_t opened = owners_[owner].opened_nanos;
  return std::any_of(owners_.begin(), owners_.end(), [&](const OwnerState& other) {
    if (!other.started || &other == &owners_[owner]) return false;
    if (other.opened_nanos != 0) return other.opened_nanos > opened;
    return other.ended_nanos == 0 || other.ended_nanos > opened;
  });
}

void Model::OwnerEnds(uint32_t owner) { owners_[owner].ended_nanos = scheduler_->TrueNanos(); }

// ---- Histories ----------------------------------------------------------------------------------

uint64_t Model::BegunAt(size_t group, uint64_t attempt) const {
  return attempt == 0 ? 0 : groups_[group].attempts[attempt - 1].begun;
}

uint64_t Model::AcknowledgedBefore(size_t group, uint64_t moment) const {
  const std::vector<Attempt>& attempts = groups_[group].attempts;
  uint64_t attempt = attempts.size();
  while (attempt > 0 &&
         (attempts[attempt - 1].acknowledged == 0 || attempts[attempt - 1].acknowledged > moment)) {
    --attempt;
  }
  return attempt;
}

uint64_t Model::DeletionFrom(size_t group, uint64_t attempt, bool* found) const {
  const std::vector<Attempt>& attempts = groups_[group].attempts;
  while (attempt > 0 && attempt <= attempts.size() && !attempts[attempt - 1].deletes) ++attempt;
  *found = attempt <= attempts.size();
  return attempt;
}

bool Model::forbidden(size_t group, uint64_t attempt) const {
  return attempt > 0 && groups_[group].attempts[attempt - 1].forbidden;
}

uint64_t Model::KeptOf(size_t group, uint64_t attempt) const {
  const std::vector<Attempt>& attempts = groups_[group].attempts;
  const auto stays = [&](const Attempt& seen) {
    return !contended(seen.owner) ||
           // An owner shows nothing that is without an earlier write of its own.
           std::any_of(
               attempts.begin() + (&seen - attempts.data()), attempts.end(),
               [&](const Attempt& later) { return later.owner == seen.owner && later.proved; });
  };
  while (attempt > 0 && !stays(attempts[attempt - 1])) --attempt;
  return attempt;
}

// ---- Looking ------------------------------------------------------------------------------------

Model::Sight Model::Decode(size_t group, const Values& values) {
  Sight sight{.group = group, .found = values.found[0]};
  for (size_t i = 0; i < kKeysPerGroup; ++i) {
    if (values.found[i] != sight.found) Fail(group, "half of a batch is there");
    if (!sight.found) continue;
    const std::string& value = values.values[i];
    uint64_t attempt = 0;
    std::from_chars(value.data(), value.data() + kNumberBytes, attempt);
    if (attempt == 0 || attempt > groups_[group].attempts.size()) {
      Fail(group, "a value that nobody wrote");
    }
    if (i == 0) sight.attempt = attempt;
    if (attempt != sight.attempt) {
      Fail(group, fmt::format("attempts {} and {} at once", sight.attempt, attempt));
    }
    const Attempt& made = groups_[group].attempts[attempt - 1];
    if (made.deletes || value != ValueOf(group, i, attempt, made.value_bytes)) {
      Fail(group, fmt::format("attempt {} with other bytes", attempt));
    }
  }
  return sight;
}

void Model::Check(const Sight& sight, uint64_t floor) {
  uint64_t seen = sight.attempt;
  if (!sight.found) {
    // The oldest deletion that it may be; attempt 0 is one.
    bool deleted = false;
    seen = DeletionFrom(sight.group, floor, &deleted);
    if (!deleted) Fail(sight.group, "is not there");
  }
  if (seen < floor) Fail(sight.group, fmt::format("shows attempt {} after {}", seen, floor));
  if (sight.found && forbidden(sight.group, seen)) {
    Fail(sight.group, fmt::format("shows attempt {}, of an owner that had been replaced", seen));
  }
  Group& g = groups_[sight.group];
  g.floor = std::max(g.floor, seen);
  bool ambiguous = false;
  if (!sight.found) DeletionFrom(sight.group, seen + 1, &ambiguous);
  if (seen > 0 && !ambiguous) g.attempts[seen - 1].proved = true;
  ++reads_;
}

Status Model::Fetch(DB* db, const ReadOptions& options, size_t group, Values* values) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < kKeysPerGroup; ++i) names.push_back(KeyOf(group, i));
  const std::vector<Slice> keys(names.begin(), names.end());
  const std::vector<Status> statuses = db->MultiGet(options, keys, &values->values);
  for (size_t i = 0; i < kKeysPerGroup; ++i) {
    values->found[i] = statuses[i].ok();
    if (statuses[i].IsCorruption()) return statuses[i];
  }
  for (const Status& status : statuses) {
    if (!status.ok() && !status.IsNotFound()) return status;
  }
  return Status::OK();
}

Status Model::FetchAll(DB* db, const ReadOptions& options, uint64_t pauses_at,
                       const std::function<void()>& at_first, std::vector<Values>* values) {
  values->assign(groups_.size(), Values());
  const std::unique_ptr<Iterator> iterator(db->NewIterator(options));
  iterator->SeekToFirst();
  if (at_first != nullptr) at_first();
  uint64_t left = pauses_at;
  for (; iterator->Valid(); iterator->Next()) {
    // What it looks at is pinned meanwhile.
    if (left-- == 0) scheduler_->SleepFor(kScanPause);
    const std::string key = iterator->key().ToString();
    const auto i = static_cast<size_t>(key[0] - '0');
    size_t group = 0;
    std::from_chars(key.data() + 2, key.data() + key.size(), group);
    if (i >= kKeysPerGroup || group >= groups_.size() || (*values)[group].found[i]) {
      scheduler_->Fail("an iterator shows key " + key + ", or shows it again");
    }
    (*values)[group].found[i] = true;
    (*values)[group].values[i] = iterator->value().ToString();
  }
  return iterator->status();
}

bool Model::Look(DB* db, const ReadOptions& options, size_t group, Sight* sight, Status* status) {
  Values values;
  *status = Fetch(db, options, group, &values);
  if (!status->ok()) return false;
  *sight = Decode(group, values);
  ++reads_;
  return true;
}

bool Model::LookAtAll(DB* db, const ReadOptions& options, uint64_t pauses_at,
                      const std::function<void()>& at_first, std::vector<Sight>* sights,
                      Status* status) {
  std::vector<Values> values;
  *status = FetchAll(db, options, pauses_at, at_first, &values);
  if (!status->ok()) return false;
  sights->clear();
  for (size_t group = 0; group < groups_.size(); ++group) {
    sights->push_back(Decode(group, values[group]));
    ++reads_;
  }
  return true;
}

// ---- Reads of owners ----------------------------------------------------------------------------

bool Model::Load(uint32_t owner, DB* db, const ReadOptions& options, size_t group, Sight* sight,
                 Status* status) {
  Values values;
  const uint64_t begun = scheduler_->TrueNanos();
  *status = Fetch(db, options, group, &values);
  if (status->IsCorruption() && !replaced(owner) && !overtaken(owner)) {
    Fail(group, status->ToString());
  }
  if (!status->ok()) return false;
  JudgeReplaced(owner, begun);
  if (replaced(owner)) return false;
  *sight = Decode(group, values);
  return true;
}

bool Model::Read(uint32_t owner, DB* db, size_t group, Status* status) {
  const uint64_t least = floor(group);
  Sight sight;
  if (!Load(owner, db, {}, group, &sight, status)) return false;
  Check(sight, least);
  return true;
}

bool Model::ReadSnapshot(uint32_t owner, DB* db, const Snapshot* snapshot, size_t group,
                         uint64_t* seen, Status* status) {
  ReadOptions options;
  options.snapshot = snapshot;
  Sight sight;
  if (!Load(owner, db, options, group, &sight, status)) return false;
  // Number 0 is nothing; what is shown is one more.
  if (*seen != 0 && *seen != sight.attempt + 1) {
    Fail(group, fmt::format("a snapshot shows attempt {} after {}", sight.attempt, *seen - 1));
  }
  *seen = sight.attempt + 1;
  return true;
}

bool Model::Scan(uint32_t owner, DB* db, uint64_t pauses_at, Status* status) {
  std::vector<uint64_t> floors;
  for (const Group& g : groups_) floors.push_back(g.floor);
  std::vector<Values> values;
  const uint64_t begun = scheduler_->TrueNanos();
  *status = FetchAll(db, {}, pauses_at, nullptr, &values);
  if (status->ok()) JudgeReplaced(owner, begun);
  if (replaced(owner)) return false;
  if (status->IsCorruption() && !overtaken(owner)) {
    scheduler_->Fail("an iterator: " + status->ToString());
  }
  if (!status->ok()) return false;
  for (size_t group = 0; group < groups_.size(); ++group) {
    Check(Decode(group, values[group]), floors[group]);
  }
  return true;
}

}  // namespace nacre::sim
