#include "tests/support/sim/sim_model.h"

#include <fmt/format.h>

#include <algorithm>

namespace nacre::sim {

void Model::Fail(size_t group, const std::string& why) {
  std::string history;
  const Group& g = groups_[group];
  const size_t first = g.attempts.size() > 12 ? g.attempts.size() - 12 : 0;
  for (size_t i = first; i < g.attempts.size(); ++i) {
    history += fmt::format("  attempt {} of owner {}{}{}\n", i + 1, g.attempts[i].owner,
                           g.attempts[i].deletes() ? ", a deletion" : "",
                           g.attempts[i].forbidden ? ", which had been replaced" : "");
  }
  scheduler_->Fail(fmt::format("group {}: {}; at least attempt {} has taken place\n{}", group, why,
                               g.floor, history));
}

uint64_t Model::BeginWrite(size_t group, uint32_t owner, Kind kind, size_t value_bytes,
                           const OpenDatabase& opened, WriteBatch* batch) {
  Group& g = groups_[group];
  g.attempts.push_back({.owner = owner,
                        .kind = kind,
                        .forbidden = replaced(owner),
                        .value_bytes = static_cast<uint32_t>(value_bytes),
                        .begun = ++moment_});
  Attempt& made = g.attempts.back();
  for (const auto& [family, handle] : opened.extras) made.families.push_back(family);
  const uint64_t attempt = g.attempts.size();
  const size_t list = kValuesPerGroup;
  for (size_t i = 0; i < kKeysPerGroup && kind == Kind::kDelete; ++i) {
    batch->Delete(FamilyOf(opened, group, i), KeyOf(group, i)).IgnoreError();
  }
  for (size_t i = 0; i < kValuesPerGroup && !made.deletes(); ++i) {
    batch->Put(FamilyOf(opened, group, i), KeyOf(group, i), ValueOf(group, i, attempt, value_bytes))
        .IgnoreError();
  }
  if (kind == Kind::kMerge) {
    batch->Merge(FamilyOf(opened, group, list), KeyOf(group, list), std::to_string(attempt))
        .IgnoreError();
  } else if (kind == Kind::kPut) {
    batch->Put(FamilyOf(opened, group, list), KeyOf(group, list), std::to_string(attempt))
        .IgnoreError();
  }
  for (const auto& [family, handle] : opened.extras) {
    if (kind == Kind::kDelete) {
      batch->Delete(handle.get(), KeyOf(group, 0)).IgnoreError();
    } else if (!made.deletes()) {
      batch->Put(handle.get(), KeyOf(group, 0), std::to_string(attempt)).IgnoreError();
    }
  }
  ColumnFamilyHandle* const of_single = FamilyOf(opened, group, list + 1);
  if (attempt > 1 && !g.attempts[attempt - 2].deletes()) {
    batch->SingleDelete(of_single, SingleKeyOf(group, attempt - 1)).IgnoreError();
  }
  if (!made.deletes()) batch->Put(of_single, SingleKeyOf(group, attempt), "").IgnoreError();
  if (filtered_ && made.deletes()) {
    batch->Delete(of_single, PassingKeyOf(group)).IgnoreError();
  } else if (filtered_) {
    batch->Put(of_single, PassingKeyOf(group), std::to_string(attempt)).IgnoreError();
  }
  return attempt;
}

void Model::DeleteGroups(size_t first, size_t count, const OpenDatabase& opened,
                         WriteBatch* batch) {
  const auto in = [=](ColumnFamilyHandle* family, size_t i) {
    batch->DeleteRange(family, KeyOf(first, i), KeyOf(first + count, i)).IgnoreError();
  };
  for (size_t i = 0; i < kKeysPerGroup; ++i) {
    in(nullptr, i);
    in(opened.other.get(), i);
  }
  for (const auto& [number, family] : opened.extras) in(family.get(), 0);
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
  for (OwnerState& other : owners_) {
    // What one that was killed while it opened the database has begun, this one has ended.
    if (!scheduler_->alive(other.process)) other.opening = false;
  }
  owners_[owner].opening = false;
}

bool Model::HasSuccessor(uint32_t owner) const {
  return overtaken(owner) || std::any_of(owners_.begin(), owners_.end(),
                                         [](const OwnerState& other) { return other.opening; });
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
  while (attempt > 0 && attempt <= attempts.size() && !attempts[attempt - 1].deletes()) ++attempt;
  *found = attempt <= attempts.size();
  return attempt;
}

bool Model::forbidden(size_t group, uint64_t attempt) const {
  return attempt > 0 && groups_[group].attempts[attempt - 1].forbidden;
}

uint64_t Model::KeptOf(size_t group, uint64_t attempt) const {
  const std::vector<Attempt>& attempts = groups_[group].attempts;
  const auto stays = [&](const Attempt& seen) {
    return !HasSuccessor(seen.owner) ||
           // An owner shows nothing that is without an earlier write of its own.
           std::any_of(
               attempts.begin() + (&seen - attempts.data()), attempts.end(),
               [&](const Attempt& later) { return later.owner == seen.owner && later.proved; });
  };
  while (attempt > 0 && !stays(attempts[attempt - 1])) --attempt;
  return attempt;
}

}  // namespace nacre::sim
