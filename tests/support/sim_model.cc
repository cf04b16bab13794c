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
                        .value_bytes = static_cast<uint32_t>(value_bytes)});
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

uint64_t Model::Decode(size_t group, const std::vector<bool>& found,
                       const std::vector<std::string>& values) {
  uint64_t first = 0;
  for (size_t i = 0; i < kKeysPerGroup; ++i) {
    if (found[i] != found[0]) Fail(group, "half of a batch is there");
    if (!found[i]) continue;
    uint64_t attempt = 0;
    std::from_chars(values[i].data(), values[i].data() + kNumberBytes, attempt);
    if (attempt == 0 || attempt > groups_[group].attempts.size()) {
      Fail(group, "a value that nobody wrote");
    }
    if (i == 0) first = attempt;
    if (attempt != first) Fail(group, fmt::format("attempts {} and {} at once", first, attempt));
    const Attempt& made = groups_[group].attempts[attempt - 1];
    if (made.deletes || values[i] != ValueOf(group, i, attempt, made.value_bytes)) {
      Fail(group, fmt::format("attempt {} with other bytes", attempt));
    }
  }
  return first;
}

void Model::Check(size_t group, uint64_t seen, bool found, uint64_t floor) {
  Group& g = groups_[group];
  if (!found) {
    // The oldest deletion that it may be; attempt 0 is one.
    seen = floor;
    while (seen > 0 && seen <= g.attempts.size() && !g.attempts[seen - 1].deletes) ++seen;
    if (seen > g.attempts.size()) Fail(group, "is not there");
  }
  if (seen < floor) Fail(group, fmt::format("shows attempt {} after {}", seen, floor));
  if (seen > 0 && found && g.attempts[seen - 1].forbidden) {
    Fail(group, fmt::format("shows attempt {}, of an owner that had been replaced", seen));
  }
  g.floor = std::max(g.floor, seen);
  ++reads_;
}

bool Model::Load(uint32_t owner, DB* db, const ReadOptions& options, size_t group, uint64_t* seen,
                 bool* found, Status* status) {
  std::vector<std::string> names;
  for (size_t i = 0; i < kKeysPerGroup; ++i) names.push_back(KeyOf(group, i));
  const std::vector<Slice> keys(names.begin(), names.end());
  std::vector<std::string> values;
  const uint64_t begun = scheduler_->TrueNanos();
  const std::vector<Status> statuses = db->MultiGet(options, keys, &values);
  std::vector<bool> there;
  for (const Status& s : statuses) {
    if (s.IsCorruption() && !replaced(owner) && !overtaken(owner)) Fail(group, s.ToString());
    if (!s.ok() && !s.IsNotFound()) {
      *status = s;
      return false;
    }
    there.push_back(s.ok());
  }
  *status = Status::OK();
  JudgeReplaced(owner, begun);
  if (replaced(owner)) return false;
  *seen = Decode(group, there, values);
  *found = there[0];
  return true;
}

bool Model::Read(uint32_t owner, DB* db, size_t group, Status* status) {
  const uint64_t floor = groups_[group].floor;
  uint64_t seen = 0;
  bool found = false;
  if (!Load(owner, db, {}, group, &seen, &found, status)) return false;
  Check(group, seen, found, floor);
  return true;
}

bool Model::ReadSnapshot(uint32_t owner, DB* db, const Snapshot* snapshot, size_t group,
                         uint64_t* seen, Status* status) {
  ReadOptions options;
  options.snapshot = snapshot;
  uint64_t now = 0;
  bool found = false;
  if (!Load(owner, db, options, group, &now, &found, status)) return false;
  // Number 0 is nothing; what is shown is one more.
  if (*seen != 0 && *seen != now + 1) {
    Fail(group, fmt::format("a snapshot shows attempt {} after {}", now, *seen - 1));
  }
  *seen = now + 1;
  return true;
}

bool Model::Scan(uint32_t owner, DB* db, uint64_t pauses_at, Status* status) {
  std::vector<uint64_t> floors;
  for (const Group& g : groups_) floors.push_back(g.floor);
  std::vector<std::vector<bool>> found(groups_.size(), std::vector<bool>(kKeysPerGroup));
  std::vector<std::vector<std::string>> values(groups_.size(),
                                               std::vector<std::string>(kKeysPerGroup));
  const uint64_t begun = scheduler_->TrueNanos();
  const std::unique_ptr<Iterator> iterator(db->NewIterator({}));
  uint64_t left = pauses_at;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    // What it looks at is pinned meanwhile.
    if (left-- == 0) scheduler_->SleepFor(kScanPause);
    const std::string key = iterator->key().ToString();
    const auto i = static_cast<size_t>(key[0] - '0');
    size_t group = 0;
    std::from_chars(key.data() + 2, key.data() + key.size(), group);
    if (i >= kKeysPerGroup || group >= groups_.size() || found[group][i]) {
      scheduler_->Fail("an iterator shows key " + key + ", or shows it again");
    }
    found[group][i] = true;
    values[group][i] = iterator->value().ToString();
  }
  *status = iterator->status();
  if (status->ok()) JudgeReplaced(owner, begun);
  if (replaced(owner)) return false;
  if (status->IsCorruption() && !overtaken(owner)) {
    scheduler_->Fail("an iterator: " + status->ToString());
  }
  if (!status->ok()) return false;
  for (size_t group = 0; group < groups_.size(); ++group) {
    const uint64_t seen = Decode(group, found[group], values[group]);
    Check(group, seen, found[group][0], floors[group]);
  }
  return true;
}

}  // namespace nacre::sim
