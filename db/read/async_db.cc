#include "db/read/async_db.h"

#include <utility>

#include "db/context/operation_counts.h"
#include "nacre/statistics.h"
#include "pool/read/point_reader.h"
#include "util/exceptions.h"
#include "util/threads/epoch.h"

namespace nacre {
namespace {

/// So many turns of the driver a write waits for those before it, which other threads are about to
/// end.
constexpr int kTurnsToEnd = 16;

}  // namespace

struct AsyncDBImpl::Operation : DrivenOperation {
  explicit Operation(AsyncDBImpl* async) : DrivenOperation(async), owner(async) {}

  AsyncDBImpl* const owner;
  uint64_t start_nanos = 0;  ///< With statistics only.
};

struct AsyncDBImpl::Read final : Operation {
  using Operation::Operation;

  void Recycle() override {
    waiter_ = nullptr;
    abandoned_ = ended_ = false;
    owner->free_reads_.push_back(this);
  }
  void TakeResult() override { owner->EndRead(this); }

  LookupContext Context() const {
    return {owner->db_.reads->source(), *pinned->view, options, snapshot};
  }

  /// From its place in this.
  static Read* Of(pool::AsyncRead* arriving) { return static_cast<Arriving*>(arriving)->owner; }

  struct Arriving : pool::AsyncRead {
    Read* owner = nullptr;
  };
  Arriving arriving;
  KeyLookup lookup;
  ReadOptions options;
  SequenceNumber snapshot = 0;
  PinnableSlice* value = nullptr;
  PinnedView* pinned = nullptr;
  MultiRead* all = nullptr;   ///< The MultiGet that it is part of, if any.
  Status* answer = &status_;  ///< Or that of its key.
};

struct AsyncDBImpl::MultiRead final : Operation {
  using Operation::Operation;
  void Recycle() override { delete this; }
  void TakeResult() override {}

  size_t left = 0;
  std::span<const PinnableSlice> values;
  std::span<const Status> statuses;
};

struct AsyncDBImpl::Write final : Operation {
  using Operation::Operation;
  void Recycle() override { delete this; }
  void TakeResult() override { owner->EndWrite(this); }

  WriteOptions options;
  WriteBatch* batch = nullptr;
  StartedWrite started;
  int turns = 0;       ///< In which it could not end.
  bool whole = false;  ///< The thread does all of it, and counts it.
  uint64_t updates = 0;
  uint64_t bytes = 0;
  bool logged = false;
};

Status AsyncDBImpl::Create(const Owners& owners, AsyncExecutor* executor,
                           std::unique_ptr<AsyncDB>* async) {
  if (executor == nullptr) return Status::InvalidArgument("NewAsyncDB: the executor is null");
  std::unique_ptr<pool::AsyncReader> reader;
  NACRE_RETURN_IF_ERROR(pool::AsyncReader::Create(owners.context->client->fabric(), &reader));
  async->reset(new AsyncDBImpl(owners, executor, std::move(reader)));
  return Status::OK();
}

AsyncDBImpl::AsyncDBImpl(const Owners& owners, AsyncExecutor* executor,
                         std::unique_ptr<pool::AsyncReader> reader)
    : AsyncDriver(executor), db_(owners), reader_(std::move(reader)) {}

AsyncDBImpl::~AsyncDBImpl() {
  read_thread_.reset();
  write_thread_.reset();
  UnpinLatest();
}

AsyncStatus AsyncDBImpl::Refuse(Status status) {
  auto* const refused = new MultiRead(this);
  refused->status_ = std::move(status);
  refused->ended_ = true;
  return AsyncStatus(refused);
}

uint64_t AsyncDBImpl::StartOfCount() const {
  return db_.context->options.statistics == nullptr ? 0 : db_.context->clock->NowNanos();
}

// ---- Calls --------------------------------------------------------------------------------------

AsyncDBImpl::PinnedView* AsyncDBImpl::Pin(const ColumnFamily& family, const ReadOptions& options,
                                          SequenceNumber* snapshot) {
  const ReadView* view = db_.reads->PinConsistent(family, options, snapshot);
  if (family.id() >= latest_.size()) [[unlikely]]
    latest_.resize(family.id() + 1);
  PinnedView*& latest = latest_[family.id()];
  // A view that is kept is no other one at the same address.
  if (latest == nullptr || latest->view.get() != view) [[unlikely]] {
    if (latest != nullptr) Unpin(latest);
    latest = new PinnedView{.view = view->shared_from_this(), .users = 1};
  }
  ++latest->users;
  return latest;
}

void AsyncDBImpl::UnpinLatest() {
  for (PinnedView*& latest : latest_) {
    if (latest != nullptr) Unpin(std::exchange(latest, nullptr));
  }
}

void AsyncDBImpl::Unpin(PinnedView* pinned) {
  if (--pinned->users == 0) delete pinned;
}

AsyncDBImpl::Read* AsyncDBImpl::NewRead() {
  if (free_reads_.empty()) {
    reads_.push_back(std::make_unique<Read>(this));
    reads_.back()->arriving.owner = reads_.back().get();
    free_reads_.push_back(reads_.back().get());
  }
  Read* const read = free_reads_.back();
  free_reads_.pop_back();
  return read;
}

AsyncDBImpl::Read* AsyncDBImpl::Begin(const ReadOptions& options, const Slice& key,
                                      PinnableSlice* value, PinnedView* pinned,
                                      SequenceNumber snapshot, MultiRead* all, Status* answer) {
  Read* const read = NewRead();
  value->Reset();
  read->options = options;
  read->value = value;
  read->start_nanos = StartOfCount();
  read->pinned = pinned;
  read->snapshot = snapshot;
  read->all = all;
  read->answer = all == nullptr ? &read->status_ : answer;
  const LookupContext context = read->Context();
  read->lookup.Begin(context, key, value, read->answer);
  read->lookup.BeginTables(context);
  AsyncDriver::Begin();
  fresh_.push_back(read);
  return read;
}

AsyncStatus AsyncDBImpl::GetAsync(const ReadOptions& options, ColumnFamilyHandle* handle,
                                  const Slice& key, PinnableSlice* value) {
  ColumnFamily* family = nullptr;
  if (Status status = db_.state->FindFamily(handle, &family); !status.ok()) [[unlikely]]
    return Refuse(std::move(status));
  EpochDomain::Guard guard(&db_.context->epochs);
  SequenceNumber snapshot = 0;
  PinnedView* const pinned = Pin(*family, options, &snapshot);
  Read* const read = Begin(options, key, value, pinned, snapshot, /*all=*/nullptr, nullptr);
  Wake();
  return AsyncStatus(read);
}

AsyncStatus AsyncDBImpl::MultiGetAsync(const ReadOptions& options, ColumnFamilyHandle* handle,
                                       size_t num_keys, const Slice* keys, PinnableSlice* values,
                                       Status* statuses) {
  ColumnFamily* family = nullptr;
  if (Status status = db_.state->FindFamily(handle, &family); !status.ok()) [[unlikely]] {
    for (size_t i = 0; i < num_keys; ++i) statuses[i] = status;
    return Refuse(std::move(status));
  }
  auto* const all = new MultiRead(this);
  all->left = num_keys;
  all->start_nanos = StartOfCount();
  all->values = {values, num_keys};
  all->statuses = {statuses, num_keys};
  if (num_keys == 0) {
    all->ended_ = true;
    return AsyncStatus(all);
  }
  AsyncDriver::Begin();
  EpochDomain::Guard guard(&db_.context->epochs);
  SequenceNumber snapshot = 0;
  PinnedView* const pinned = Pin(*family, options, &snapshot);
  for (size_t i = 0; i < num_keys; ++i) {
    if (i > 0) ++pinned->users;
    Begin(options, keys[i], &values[i], pinned, snapshot, all, &statuses[i]);
  }
  Wake();
  return AsyncStatus(all);
}

// ---- The driver ---------------------------------------------------------------------------------

void AsyncDBImpl::Turn() {
  if (!begun_writes_.empty()) EndBegunWrites();
  if (!fresh_writes_.empty()) BeginWrites();
  EpochDomain::Guard guard(&db_.context->epochs);
  TakeArrived();
  TakeFinished();
  if (!waiting_.empty()) [[unlikely]] {
    turn_.swap(waiting_);
    for (Read* read : turn_) {
      if (!reader_->Add(&read->arriving)) waiting_.push_back(read);
    }
    turn_.clear();
  }
  turn_.swap(fresh_);
  for (Read* read : turn_) LookUp(read);
  turn_.clear();
  while (!loads_.empty()) EndFirstLoad();
  reader_->Post();
}

void AsyncDBImpl::LookUp(Read* read) {
  // Too long ago to answer from memory alone what a successor may have changed.
  if (db_.context->lease != nullptr && !db_.context->lease->Lasts()) [[unlikely]] {
    LeaveToThread(read);
    return;
  }
  KeyLookup::State state = KeyLookup::State::kEnded;
  try {
    state = read->lookup.LookInMemory(read->Context());
  } catch (...) {
    *read->answer = StatusOfException();
  }
  GoOn(read, state);
}

void AsyncDBImpl::GoOn(Read* read, KeyLookup::State state) {
  pool::PointRead& next = read->arriving.read;
  if (state == KeyLookup::State::kReads) {
    try {
      state = read->lookup.Next(read->Context(), &next);
    } catch (...) {
      state = KeyLookup::State::kEnded;
      *read->answer = StatusOfException();
    }
  }
  if (state == KeyLookup::State::kLoads) {
    // One that goes on to other bytes takes its place again.
    while (loads_.full()) EndFirstLoad();
    loads_.Push(read);
  } else if (state == KeyLookup::State::kEnded) {
    EndRead(read);
  } else if (state != KeyLookup::State::kReads || !next.from.valid() ||
             next.length > pool::AsyncReader::kMaxReadBytes) {
    LeaveToThread(read);
  } else if (!waiting_.empty() || !reader_->Add(&read->arriving)) {
    waiting_.push_back(read);  // Reads that wait already were there first.
  }
}

void AsyncDBImpl::EndFirstLoad() {
  Read* const read = loads_.Pop();
  KeyLookup::State state = KeyLookup::State::kEnded;
  try {
    state = read->lookup.Load(read->Context());
  } catch (...) {
    *read->answer = StatusOfException();
  }
  GoOn(read, state);
}

void AsyncDBImpl::TakeArrived() {
  while (pool::AsyncRead* arrived = reader_->Take()) {
    Read* const read = Read::Of(arrived);
    const KeyLookup::State state = read->lookup.Consume(read->Context(), arrived->read);
    reader_->Release(arrived);
    GoOn(read, state);
  }
}

void AsyncDBImpl::EndRead(Read* read) {
  Unpin(std::exchange(read->pinned, nullptr));
  MultiRead* const all = read->all;
  Statistics* const statistics = db_.context->options.statistics.get();
  if (all == nullptr) [[likely]] {
    if (statistics != nullptr) [[unlikely]]
      CountGet(statistics, db_.context->clock, read->start_nanos, read->status_, *read->value);
    End(read, std::move(read->status_));
    return;
  }
  EndPart();
  read->Recycle();
  if (--all->left > 0) return;
  if (statistics != nullptr) {
    CountMultiGet(statistics, db_.context->clock, all->start_nanos, all->statuses, all->values);
  }
  End(all, Status::OK());
}

// ---- What waits ---------------------------------------------------------------------------------

void AsyncDBImpl::LeaveToThread(Read* read) {
  if (read_thread_ == nullptr)
    read_thread_ = db_.context->client->threads()->NewExecutor(1, "nacre-async");
  read_thread_->Schedule([this, read] {
    *read->answer = db_.reads->GetFrom(*read->pinned->view, read->options, read->lookup.key(),
                                       read->snapshot, read->value);
    Finished(read);
  });
}

AsyncStatus AsyncDBImpl::WriteAsync(const WriteOptions& options, WriteBatch* updates) {
  if (write_thread_ == nullptr)
    write_thread_ = db_.context->client->threads()->NewExecutor(1, "nacre-async-w");
  auto* const write = new Write(this);
  write->options = options;
  write->batch = updates;
  write->start_nanos = StartOfCount();
  AsyncDriver::Begin();
  // Not begun here: until it is finished other writes wait for it, perhaps those of this coroutine
  // that do not go through this object.
  fresh_writes_.push_back(write);
  Wake();
  return AsyncStatus(write);
}

void AsyncDBImpl::BeginWrites() {
  bool unsent = false;
  size_t next = 0;
  // While anything waits to be begun all others wait behind it: a write that has begun must end
  // soon, and would not behind one that waits for a stall to pass.
  for (; next < fresh_writes_.size() && whole_writes_ == 0; ++next) {
    Write* const write = fresh_writes_[next];
    if (!db_.writes->Start(write->options, write->batch, &write->started)) break;
    // A batch that was refused or is empty is not counted, as by Write.
    write->updates = write->started.ticket.count;
    write->bytes = write->updates > 0 ? write->batch->GetDataSize() : 0;
    write->logged = db_.writes->IsLogged(write->options);
    unsent |= write->started.unsent;
    begun_writes_.push_back(write);
  }
  if (unsent) db_.writes->SendStarted();
  EndBegunWrites();
  for (; next < fresh_writes_.size(); ++next) {
    Write* const write = fresh_writes_[next];
    write->whole = true;
    ++whole_writes_;
    write_thread_->Schedule([this, write] {
      write->status_ = db_.writes->Write(write->options, write->batch);
      Finished(write);
    });
  }
  fresh_writes_.clear();
}

void AsyncDBImpl::EndBegunWrites() {
  std::vector<Write*> late;
  std::erase_if(begun_writes_, [&](Write* write) {
    if (db_.writes->TryFinish(write->options, &write->started, &write->status_)) {
      EndWrite(write);
    } else if (++write->turns == kTurnsToEnd || !write->started.finished) {
      late.push_back(write);
    } else {
      return false;
    }
    return true;
  });
  if (late.empty()) return;
  write_thread_->Schedule([this, late = std::move(late)] {
    for (Write* write : late) {
      write->status_ = db_.writes->Finish(write->options, write->started);
      Finished(write);
    }
  });
}

void AsyncDBImpl::EndWrite(Write* write) {
  if (write->whole) --whole_writes_;
  if (Statistics* statistics = db_.context->options.statistics.get();
      statistics != nullptr && write->updates > 0) {
    CountWrite(statistics, db_.context->clock, write->start_nanos, write->status_, write->updates,
               write->bytes, write->logged);
  }
  End(write, std::move(write->status_));
}

}  // namespace nacre
