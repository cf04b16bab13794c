#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <utility>

#include "tests/support/sim/sim_filter.h"
#include "tests/support/sim/sim_model.h"
#include "tests/support/test_db.h"

// How the keys of a group are named, and what a reader sees of them.

namespace nacre::sim {

namespace {

/// The default one and the other one.
constexpr size_t kStandingFamilies = 2;
constexpr std::chrono::milliseconds kScanPause{300};

}  // namespace

std::string Model::KeyOf(size_t group, size_t i) { return fmt::format("{}-{:04}", i, group); }

std::string Model::SingleKeyOf(size_t group, uint64_t attempt) {
  return fmt::format("s-{:04}-{}", group, attempt);
}

std::string Model::PassingKeyOf(size_t group) {
  return fmt::format("{}-{:04}", SimFilter::kPassing, group);
}

size_t Model::StandingFamilyOf(size_t group, size_t i) const {
  return one_family_ ? 0 : (group + i) % kStandingFamilies;
}

ColumnFamilyHandle* Model::FamilyOf(const OpenDatabase& opened, size_t group, size_t i) const {
  return StandingFamilyOf(group, i) == 0 ? nullptr : opened.other.get();
}

std::string Model::ValueOf(size_t group, size_t i, uint64_t attempt, size_t bytes) {
  return fmt::format("{:0{}}", attempt, SimFilter::kNumberBytes) +
         TestValue(attempt * 1000 + group * kKeysPerGroup + i, bytes);
}

// ---- Looking ------------------------------------------------------------------------------------

Model::Sight Model::Decode(size_t group, const Values& values) {
  const size_t first = values.looked[0] ? 0 : 1;
  Sight sight{.group = group, .found = values.found[first]};
  for (size_t i = 0; i < kKeysPerGroup; ++i) {
    if (!values.looked[i]) continue;
    if (values.found[i] != sight.found) Fail(group, "half of a batch is there");
    if (!sight.found || i >= kValuesPerGroup) continue;
    const std::string& value = values.values[i];
    uint64_t attempt = 0;
    std::from_chars(value.data(), value.data() + SimFilter::kNumberBytes, attempt);
    if (attempt == 0 || attempt > groups_[group].attempts.size()) {
      Fail(group, "a value that nobody wrote");
    }
    if (i == first) sight.attempt = attempt;
    if (attempt != sight.attempt) {
      Fail(group, fmt::format("attempts {} and {} at once", sight.attempt, attempt));
    }
    const Attempt& made = groups_[group].attempts[attempt - 1];
    std::string written = ValueOf(group, i, attempt, made.value_bytes);
    const bool cut = filtered_ && SimFilter::Cuts(KeyOf(group, i), written) &&
                     value.size() == SimFilter::kNumberBytes;
    if (cut) written.resize(SimFilter::kNumberBytes);
    if (made.deletes() || value != written) {
      Fail(group, fmt::format("attempt {} with other bytes", attempt));
    }
  }
  if (sight.found && values.looked[kValuesPerGroup])
    DecodeList(group, sight.attempt, values.values[kValuesPerGroup]);
  DecodeCopies(sight, values);
  if (values.all && sight.found) DecodeSingles(sight, values.single);
  if (values.all && filtered_) DecodePassing(sight, values.passing);
  return sight;
}

void Model::DecodeList(size_t group, uint64_t attempt, const std::string& list) {
  const std::vector<Attempt>& attempts = groups_[group].attempts;
  const auto expect = [&](bool holds, const char* why) {
    if (!holds) Fail(group, fmt::format("attempt {} with the list {}: {}", attempt, list, why));
  };
  std::set<uint64_t> members;
  for (const char* at = list.data(); at < list.data() + list.size(); ++at) {
    uint64_t member = 0;
    const auto [end, error] = std::from_chars(at, list.data() + list.size(), member);
    expect(error == std::errc() && member > 0 && member <= attempt, "no list");
    expect(members.empty() || member > *members.rbegin(), "in another order, or twice");
    const Kind kind = attempts[member - 1].kind;
    expect(kind == Kind::kMerge || (kind == Kind::kPut && members.empty()), "nobody merged that");
    members.insert(member);
    at = end;
  }
  expect(!members.empty() && *members.rbegin() == attempt, "without its last one");
  const uint64_t first = *members.begin();
  for (uint64_t later = first; later <= attempt; ++later) {
    expect(attempts[later - 1].acknowledged == 0 || members.contains(later), "one is missing");
  }
  // One that was merged to nothing comes after a deletion.
  if (attempts[first - 1].kind == Kind::kPut) return;
  for (uint64_t before = first - 1; before > 0 && !attempts[before - 1].deletes(); --before) {
    expect(attempts[before - 1].acknowledged == 0, "what was there before is missing");
  }
}

bool Model::CopyFits(size_t group, uint64_t attempt, uint32_t family, uint64_t copy) const {
  const std::vector<Attempt>& attempts = groups_[group].attempts;
  for (uint64_t last = attempt; last > 0; --last) {
    const Attempt& made = attempts[last - 1];
    if (std::find(made.families.begin(), made.families.end(), family) == made.families.end()) {
      continue;
    }
    if (copy == (made.deletes() ? 0 : last)) return true;
    if (last == attempt || made.acknowledged != 0) return false;
  }
  return copy == 0;
}

void Model::DecodeCopies(const Sight& sight, const Values& values) {
  for (const auto& [family, text] : values.copies) {
    if (families_.dropped(family)) continue;
    uint64_t copy = 0;
    if (!text.empty()) {
      std::from_chars(text.data(), text.data() + text.size(), copy);
      if (copy == 0 || copy > groups_[sight.group].attempts.size()) {
        Fail(sight.group, fmt::format("family {} has '{}', which nobody wrote", family, text));
      }
    }
    bool fits = sight.found && CopyFits(sight.group, sight.attempt, family, copy);
    // It is unknown which deletion is seen.
    for (uint64_t gone = 0; !sight.found && !fits;) {
      fits = CopyFits(sight.group, gone, family, copy);
      bool more = false;
      gone = DeletionFrom(sight.group, gone + 1, &more);
      if (!more) break;
    }
    if (fits) continue;
    Fail(sight.group,
         fmt::format("attempt {} with {} in family {}",
                     sight.found ? std::to_string(sight.attempt) : "of a deletion", copy, family));
  }
}

void Model::DecodeSingles(const Sight& sight, const std::set<uint64_t>& single) {
  const std::vector<Attempt>& attempts = groups_[sight.group].attempts;
  if (!single.contains(sight.attempt)) {
    Fail(sight.group, fmt::format("attempt {} without its own key", sight.attempt));
  }
  for (const uint64_t attempt : single) {
    if (attempt > sight.attempt) {
      Fail(sight.group, fmt::format("the key of attempt {} at {}", attempt, sight.attempt));
    }
    if (attempt == sight.attempt) continue;
    if (attempt + 1 == sight.attempt || attempts[attempt].acknowledged != 0) {
      Fail(sight.group, fmt::format("the key of attempt {}, which the next one has deleted, at {}",
                                    attempt, sight.attempt));
    }
  }
}

void Model::DecodePassing(const Sight& sight, const std::string& passing) {
  const std::string number = sight.found ? std::to_string(sight.attempt) : "";
  if (passing == number || (passing.empty() && SimFilter::Removes(number))) return;
  Fail(sight.group,
       fmt::format("attempt {} with '{}' in the key that may be filtered", sight.attempt, passing));
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

Extras Model::ExtrasOf(const OpenDatabase& opened) const {
  Extras extras = opened.extras;
  // On a follower it may be that these cannot be read any more.
  std::erase_if(extras, [this](const auto& family) { return families_.dropped(family.first); });
  return extras;
}

Status Model::Fetch(const OpenDatabase& opened, const ReadOptions& options, size_t group,
                    Values* values) {
  std::vector<std::string> names;
  std::vector<ColumnFamilyHandle*> families;
  std::vector<size_t> wanted;
  const bool narrow = IsNarrow();
  for (size_t i = 0; i < kKeysPerGroup; ++i) {
    values->looked[i] = !narrow || FamilyOf(opened, group, i) == FamilyOf(opened, group, 0);
    if (!values->looked[i]) continue;
    wanted.push_back(i);
    names.push_back(KeyOf(group, i));
    families.push_back(FamilyOf(opened, group, i));
  }
  const Extras extras = narrow ? Extras() : ExtrasOf(opened);
  for (const auto& [number, family] : extras) {
    names.push_back(KeyOf(group, 0));
    families.push_back(family.get());
  }
  const std::vector<Slice> keys(names.begin(), names.end());
  std::vector<std::string> found;
  const std::vector<Status> statuses = opened.db->MultiGet(options, families, keys, &found);
  for (const Status& status : statuses) {
    if (status.IsCorruption()) return status;
  }
  for (const Status& status : statuses) {
    if (!status.ok() && !status.IsNotFound()) return status;
  }
  for (size_t at = 0; at < wanted.size(); ++at) {
    values->found[wanted[at]] = statuses[at].ok();
    values->values[wanted[at]] = found[at];
  }
  for (size_t i = 0; i < extras.size(); ++i) {
    const size_t at = wanted.size() + i;
    values->copies[extras[i].first] = statuses[at].ok() ? found[at] : "";
  }
  return Status::OK();
}

Status Model::FetchAll(const OpenDatabase& opened, const ReadOptions& options, uint64_t pauses_at,
                       const std::function<void()>& at_first, std::vector<Values>* values) {
  values->assign(groups_.size(), Values());
  const bool narrow = IsNarrow();
  std::vector<ColumnFamilyHandle*> families{nullptr};
  if (!narrow) families.push_back(opened.other.get());
  const Extras extras = narrow ? Extras() : ExtrasOf(opened);
  for (const auto& [number, family] : extras) {
    families.push_back(family.get());
    for (Values& each : *values) each.copies[number] = "";
  }
  for (size_t group = 0; group < values->size(); ++group) {
    Values& each = (*values)[group];
    for (size_t i = 0; i < kKeysPerGroup && narrow; ++i) {
      each.looked[i] = FamilyOf(opened, group, i) == nullptr;
    }
    each.all = !narrow || FamilyOf(opened, group, kKeysPerGroup) == nullptr;
  }
  std::vector<std::unique_ptr<Iterator>> iterators;
  if (narrow) {
    iterators.push_back(opened.db->NewIterator(options));
  } else {
    NACRE_RETURN_IF_ERROR(opened.db->NewIterators(options, families, &iterators));
  }
  uint64_t left = pauses_at;
  for (size_t i = 0; i < iterators.size(); ++i) {
    Iterator* const iterator = iterators[i].get();
    iterator->SeekToFirst();
    if (i == 0 && at_first != nullptr) at_first();
    for (; iterator->Valid(); iterator->Next()) {
      // What it looks at is pinned meanwhile.
      if (left-- == 0) scheduler_->SleepFor(kScanPause);
      if (i < kStandingFamilies) {
        TakeKey(iterator->key().ToString(), iterator->value().ToString(), i, values);
      } else {
        const uint32_t family = extras[i - kStandingFamilies].first;
        TakeCopy(iterator->key().ToString(), iterator->value().ToString(), family, values);
      }
    }
    NACRE_RETURN_IF_ERROR(iterator->status());
  }
  return Status::OK();
}

void Model::TakeKey(const std::string& key, const std::string& value, size_t family,
                    std::vector<Values>* values) {
  // A digit or a letter, a dash, the group; for 's' another dash and the attempt.
  const auto i = static_cast<size_t>(key[0] - '0');
  size_t group = 0;
  const char* const last = key.data() + key.size();
  const auto [end, error] = std::from_chars(key.data() + 2, last, group);
  bool known = error == std::errc() && group < groups_.size();
  if (known && key[0] == 's') {
    uint64_t attempt = 0;
    std::from_chars(end + 1, last, attempt);
    known = attempt > 0 && attempt <= groups_[group].attempts.size() && value.empty() &&
            (*values)[group].single.insert(attempt).second;
  } else if (known && key[0] == SimFilter::kPassing) {
    known = !value.empty() && (*values)[group].passing.empty();
    (*values)[group].passing = value;
  } else if (known) {
    known = i < kKeysPerGroup && StandingFamilyOf(group, i) == family && !(*values)[group].found[i];
  }
  if (!known) scheduler_->Fail("an iterator shows key " + key + ", or shows it again");
  if (key[0] == 's' || key[0] == SimFilter::kPassing) return;
  (*values)[group].found[i] = true;
  (*values)[group].values[i] = value;
}

void Model::TakeCopy(const std::string& key, const std::string& value, uint32_t family,
                     std::vector<Values>* values) {
  size_t group = 0;
  std::from_chars(key.data() + 2, key.data() + key.size(), group);
  if (key[0] != '0' || group >= groups_.size() || !(*values)[group].copies[family].empty()) {
    scheduler_->Fail("an iterator of another family shows key " + key + ", or shows it again");
  }
  (*values)[group].copies[family] = value;
}

bool Model::Look(const OpenDatabase& opened, const ReadOptions& options, size_t group, Sight* sight,
                 Status* status) {
  Values values;
  *status = Fetch(opened, options, group, &values);
  if (!status->ok()) return false;
  *sight = Decode(group, values);
  ++reads_;
  return true;
}

bool Model::LookAtAll(const OpenDatabase& opened, const ReadOptions& options, uint64_t pauses_at,
                      const std::function<void()>& at_first, std::vector<Sight>* sights,
                      Status* status) {
  std::vector<Values> values;
  *status = FetchAll(opened, options, pauses_at, at_first, &values);
  if (!status->ok()) return false;
  sights->clear();
  for (size_t group = 0; group < groups_.size(); ++group) {
    sights->push_back(Decode(group, values[group]));
    ++reads_;
  }
  return true;
}

// ---- Reads of owners ----------------------------------------------------------------------------

bool Model::Load(uint32_t owner, const OpenDatabase& opened, const ReadOptions& options,
                 size_t group, Sight* sight, Status* status) {
  Values values;
  const uint64_t begun = scheduler_->TrueNanos();
  *status = Fetch(opened, options, group, &values);
  if (status->IsCorruption() && !replaced(owner) && !overtaken(owner)) {
    Fail(group, status->ToString());
  }
  if (!status->ok()) return false;
  JudgeReplaced(owner, begun);
  if (replaced(owner)) return false;
  *sight = Decode(group, values);
  return true;
}

bool Model::Read(uint32_t owner, const OpenDatabase& opened, size_t group, Status* status) {
  const uint64_t least = floor(group);
  Sight sight;
  if (!Load(owner, opened, {}, group, &sight, status)) return false;
  Check(sight, least);
  return true;
}

bool Model::ReadSnapshot(uint32_t owner, const OpenDatabase& opened, const Snapshot* snapshot,
                         size_t group, uint64_t* seen, Status* status) {
  ReadOptions options;
  options.snapshot = snapshot;
  Sight sight;
  if (!Load(owner, opened, options, group, &sight, status)) return false;
  // Number 0 is nothing; what is shown is one more.
  if (*seen != 0 && *seen != sight.attempt + 1) {
    Fail(group, fmt::format("a snapshot shows attempt {} after {}", sight.attempt, *seen - 1));
  }
  *seen = sight.attempt + 1;
  return true;
}

bool Model::Scan(uint32_t owner, const OpenDatabase& opened, uint64_t pauses_at, Status* status) {
  std::vector<uint64_t> floors;
  for (const Group& g : groups_) floors.push_back(g.floor);
  std::vector<Values> values;
  const uint64_t begun = scheduler_->TrueNanos();
  *status = FetchAll(opened, {}, pauses_at, nullptr, &values);
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
