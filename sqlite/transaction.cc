#include "sqlite/transaction.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sqlite/row/key_encoding.h"

namespace nacre::sqlite {

const Family* ReadView::FamilyOf(uint32_t space) const {
  const Family* const family = FindFamily(state->families(), space);
  return family != nullptr ? family : FindFamily(overlay->families(), space);
}

bool ReadView::GetOwn(const Slice& key, PinnableSlice* value, Status* status) const {
  const Overlay::Entry* const entry = overlay->Find(key);
  if (entry == nullptr) return false;
  *status = entry->deleted ? Status::NotFound() : Status::OK();
  if (entry->deleted) return true;
  value->PinSlice(
      entry->value, [](void*, void*) {}, nullptr, nullptr);
  return true;
}

Status ReadView::GetStored(const Slice& key, PinnableSlice* value) const {
  const Family* const family = FamilyOf(SpaceOf(key));
  if (family == nullptr) return FamilyIsGone();
  return state->Get(*family, key, value);
}

Status ReadView::Get(const Slice& key, PinnableSlice* value) const {
  Status status;
  return GetOwn(key, value, &status) ? status : GetStored(key, value);
}

void ReadView::MultiGetStored(uint32_t space, const std::vector<Slice>& keys, PinnableSlice* values,
                              Status* statuses) const {
  if (const Family* const family = FamilyOf(space); family != nullptr) {
    return state->MultiGet(*family, keys, values, statuses);
  }
  std::fill_n(statuses, keys.size(), FamilyIsGone());
}

Transaction::Transaction(std::shared_ptr<Database> database) : database_(std::move(database)) {
  view_.overlay = std::make_shared<Overlay>();
}

void Transaction::TakeState() {
  if (view_.state != nullptr) return;
  view_.state = database_->Read();
  if (view_.state->id() != known_state_) last_rows_.clear();
  known_state_ = view_.state->id();
  rows_.Use(known_state_);
}

void Transaction::Pin() {
  ++pins_;
  TakeState();
}

void Transaction::Unpin() {
  if (--pins_ == 0 && !begun_) view_.state.reset();
}

void Transaction::Begin() {
  if (begun_) return;
  begun_ = true;
  view_.state.reset();  // Statements that are still open have their own pointer.
  TakeState();
}

Status Transaction::Prepare() {
  if (written_ || view_.overlay->empty()) return Status::OK();
  std::optional<uint64_t> after;
  NACRE_RETURN_IF_ERROR(database_->Commit(*view_.state, *view_.overlay, deltas_, dropped_spaces_,
                                          commands_.bytes(), &after));
  written_ = true;
  // What is known of the tables stays true if no other has written meanwhile.
  known_state_ = after.value_or(Database::kNoState);
  if (after.has_value()) {
    TellRows();
    rows_.MoveTo(known_state_);
  } else {
    last_rows_.clear();
    rows_.Use(known_state_);
  }
  return Status::OK();
}

void Transaction::TellRows() {
  for (const auto& [key, entry] : view_.overlay->entries()) {
    entry.deleted ? rows_.Delete(key) : rows_.Write(key, entry.value);
  }
}

void Transaction::DropDeltas() {
  deltas_.clear();
  delta_steps_.clear();
}

void Transaction::DropWrites() {
  if (view_.overlay.use_count() == 1) {
    view_.overlay->Clear();
  } else {
    view_.overlay = std::make_shared<Overlay>();  // A cursor goes on in what it began with.
  }
}

void Transaction::Finish() {
  DropWrites();
  view_.state.reset();
  DropDeltas();
  commands_.Clear();
  marks_.clear();
  if (!created_spaces_.empty() || (written_ && !dropped_spaces_.empty())) {
    // What cannot be dropped now is dropped when the database is opened the next time.
    database_->DropUnusedFamilies(created_spaces_).IgnoreError();
  }
  created_spaces_.clear();
  dropped_spaces_.clear();
  written_ = false;
  begun_ = false;
  if (pins_ > 0) TakeState();
}

void Transaction::Commit() {
  if (begun_) Finish();
}

void Transaction::Rollback() {
  if (!begun_) return;
  last_rows_.clear();
  Finish();
}

void Transaction::Savepoint(int number) {
  if (!begun_ || number < 0) return;
  const size_t count = static_cast<size_t>(number) + 1;
  // One is told of by each table that takes part; a later table must not move it.
  while (marks_.size() < count)
    marks_.push_back(
        {view_.overlay->Mark(), commands_.bytes().size(), deltas_.size(), delta_steps_.size()});
}

void Transaction::Release(int number) {
  const size_t kept = static_cast<size_t>(std::max(number, 0));
  if (marks_.size() > kept) marks_.resize(kept);
}

void Transaction::RollbackTo(int number) {
  if (number < 0) {  // A save point that began the transaction.
    marks_.clear();
    DropDeltas();
    commands_.Clear();
    last_rows_.clear();
    DropWrites();
    return;
  }
  if (marks_.size() <= static_cast<size_t>(number)) return;
  marks_.resize(static_cast<size_t>(number) + 1);
  const Mark& mark = marks_.back();
  view_.overlay->UndoTo(mark.undo);
  commands_.UndoTo(mark.command_bytes);
  for (; delta_steps_.size() > mark.delta_steps; delta_steps_.pop_back()) {
    deltas_[delta_steps_.back().place].second -= delta_steps_.back().change;
  }
  deltas_.resize(mark.deltas);
  last_rows_.clear();
}

Status Transaction::Get(const ReadView& view, const Slice& key, PinnableSlice* value) {
  Status status;
  if (view.GetOwn(key, value, &status)) return status;
  // Rows that are read are most often read again by a transaction that changes them. A cursor may
  // read on in the state of one that has ended.
  if (!begun_ || view.state->id() != rows_.state()) return view.GetStored(key, value);
  Slice known;
  if (rows_.Find(key, &known)) {
    value->PinSelf(known);
    return Status::OK();
  }
  status = view.GetStored(key, value);
  if (status.ok()) rows_.Add(key, *value);
  return status;
}

Status Transaction::Exists(const Slice& key, bool* exists) {
  const Status status = Get(view_, key, &scratch_);
  *exists = status.ok();
  scratch_.Reset();
  return status.IsNotFound() ? Status::OK() : status;
}

Status Transaction::CreateSpaces(uint32_t count, std::vector<uint32_t>* spaces) {
  std::vector<Database::NewSpace> made;
  NACRE_RETURN_IF_ERROR(database_->CreateSpaces(count, &made));
  Begin();
  for (Database::NewSpace& each : made) {
    spaces->push_back(each.space);
    created_spaces_.push_back(each.space);
    view_.overlay->AddFamily(std::move(each.family));
  }
  return Status::OK();
}

void Transaction::DropSpaces(const std::vector<uint32_t>& spaces) {
  dropped_spaces_.insert(dropped_spaces_.end(), spaces.begin(), spaces.end());
}

void Transaction::CountRows(const std::shared_ptr<TableStatistics>& statistics, int64_t delta) {
  size_t place = 0;
  while (place < deltas_.size() && deltas_[place].first != statistics) ++place;
  if (place == deltas_.size()) deltas_.emplace_back(statistics, 0);
  if (delta == 0) return;
  deltas_[place].second += delta;
  if (!marks_.empty()) delta_steps_.push_back({place, delta});
}

const int64_t* Transaction::LastRow(uint32_t space) const {
  const auto found = last_rows_.find(space);
  return found == last_rows_.end() ? nullptr : &found->second;
}

}  // namespace nacre::sqlite
