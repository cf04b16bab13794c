#include "db/memtable/write_buffer_share.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "util/memory/arena_block_pool.h"

namespace nacre {
namespace {

/// Between two looks of writers that wait at whether they are to give up.
constexpr std::chrono::milliseconds kLookInterval{20};

}  // namespace

/// Lock order: `databases_mutex`, then those of a database. `room_mutex` comes last.
struct WriteBufferManager::Rep {
  explicit Rep(size_t buffer_size)
      : size(buffer_size), blocks(std::make_shared<ArenaBlockPool>(buffer_size)) {}

  std::atomic<size_t> size;
  std::atomic<bool> allow_stall{false};
  std::atomic<size_t> used{0};
  std::atomic<size_t> mutable_bytes{0};
  const std::shared_ptr<ArenaBlockSource> blocks;

  /// Held while a database is told to flush, so that none ends meanwhile.
  Mutex databases_mutex;
  std::vector<WriteBufferShare*> databases GUARDED_BY(databases_mutex);

  Mutex room_mutex;
  CondVar room_made{&room_mutex};
  std::atomic<int> waiting{0};

  void NoteRoom() {
    if (waiting.load(std::memory_order_relaxed) == 0) return;  // They look again by themselves.
    MutexLock lock(&room_mutex);
    room_made.SignalAll();
  }
};

// ---- WriteBufferManager -------------------------------------------------------------------------

WriteBufferManager::WriteBufferManager(size_t buffer_size, bool allow_stall)
    : rep_(std::make_unique<Rep>(buffer_size)) {
  rep_->allow_stall = allow_stall;
}
WriteBufferManager::~WriteBufferManager() = default;

size_t WriteBufferManager::buffer_size() const {
  return rep_->size.load(std::memory_order_relaxed);
}
size_t WriteBufferManager::memory_usage() const {
  return rep_->used.load(std::memory_order_relaxed);
}
size_t WriteBufferManager::mutable_memtable_memory_usage() const {
  return rep_->mutable_bytes.load(std::memory_order_relaxed);
}

bool WriteBufferManager::ShouldFlush() const {
  const size_t size = buffer_size();
  if (size == 0) return false;
  const size_t takes_writes = mutable_memtable_memory_usage();
  return takes_writes > size - size / 8 || (memory_usage() >= size && takes_writes >= size / 2);
}

bool WriteBufferManager::ShouldStall() const {
  const size_t size = buffer_size();
  return size > 0 && rep_->allow_stall.load(std::memory_order_relaxed) && memory_usage() >= size;
}

void WriteBufferManager::SetBufferSize(size_t new_size) {
  rep_->size.store(new_size, std::memory_order_relaxed);
  rep_->NoteRoom();
}

void WriteBufferManager::SetAllowStall(bool allow_stall) {
  rep_->allow_stall.store(allow_stall, std::memory_order_relaxed);
  rep_->NoteRoom();
}

// ---- WriteBufferShare ---------------------------------------------------------------------------

WriteBufferShare::WriteBufferShare(std::shared_ptr<WriteBufferManager> manager,
                                   std::function<bool()> end_generation)
    : manager_(std::move(manager)), end_generation_(std::move(end_generation)) {}

void WriteBufferShare::Join() {
  WriteBufferManager::Rep* const rep = manager_->rep_.get();
  MutexLock lock(&rep->databases_mutex);
  rep->databases.push_back(this);
}

void WriteBufferShare::Leave() {
  WriteBufferManager::Rep* const rep = manager_->rep_.get();
  MutexLock lock(&rep->databases_mutex);
  std::erase(rep->databases, this);
}

size_t WriteBufferShare::IndexBytes() const {
  constexpr size_t kLeast = 4 << 10;
  constexpr size_t kPart = 1024;
  return std::max(kLeast, manager_->buffer_size() / kPart);
}

const std::shared_ptr<ArenaBlockSource>& WriteBufferShare::blocks() const {
  return manager_->rep_->blocks;
}

void WriteBufferShare::Relieve() {
  WriteBufferManager::Rep* const rep = manager_->rep_.get();
  if (!rep->databases_mutex.TryLock()) return;
  MutexLock lock(&rep->databases_mutex, std::adopt_lock);
  std::vector<std::pair<size_t, WriteBufferShare*>> by_bytes;
  for (WriteBufferShare* database : rep->databases) {
    by_bytes.emplace_back(database->mutable_bytes(), database);
  }
  std::sort(by_bytes.rbegin(), by_bytes.rend());
  for (const auto& [bytes, database] : by_bytes) {
    // Others may have flushed meanwhile.
    if (!ShouldFlush() || bytes == 0 || database->end_generation_()) return;
  }
}

void WriteBufferShare::AwaitRoom(const std::function<bool()>& give_up) {
  WriteBufferManager::Rep* const rep = manager_->rep_.get();
  rep->waiting.fetch_add(1);
  MutexLock lock(&rep->room_mutex);
  while (ShouldStall() && !give_up()) {
    {
      // What was flushed may not be enough, and who would flush more waits here.
      MutexUnlock unlock(&rep->room_mutex);
      if (ShouldFlush()) Relieve();
    }
    if (ShouldStall()) rep->room_made.WaitFor(kLookInterval);
  }
  rep->waiting.fetch_sub(1);
}

void WriteBufferShare::Take(size_t bytes, bool takes_writes) {
  manager_->rep_->used.fetch_add(bytes, std::memory_order_relaxed);
  if (!takes_writes) return;
  manager_->rep_->mutable_bytes.fetch_add(bytes, std::memory_order_relaxed);
  mutable_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void WriteBufferShare::Seal(size_t bytes) {
  manager_->rep_->mutable_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  mutable_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

void WriteBufferShare::Free(size_t bytes, bool takes_writes) {
  if (takes_writes) Seal(bytes);
  manager_->rep_->used.fetch_sub(bytes, std::memory_order_relaxed);
  manager_->rep_->NoteRoom();
}

// ---- MemTableCharge -----------------------------------------------------------------------------

MemTableCharge::~MemTableCharge() {
  MutexLock lock(&mutex_);
  share_->Free(bytes_, !sealed_);
}

void MemTableCharge::GrowTo(size_t bytes) {
  MutexLock lock(&mutex_);
  if (bytes <= bytes_) return;
  share_->Take(bytes - bytes_, !sealed_);
  bytes_ = bytes;
}

void MemTableCharge::Seal() {
  MutexLock lock(&mutex_);
  if (!sealed_) share_->Seal(bytes_);
  sealed_ = true;
}

}  // namespace nacre
