#include "db/write/memtable_generations.h"

#include <algorithm>
#include <utility>

#include "util/perf_step.h"

namespace nacre {
namespace {

std::shared_ptr<WriteBufferShare> ShareOf(const DBOptions& options,
                                          std::function<bool()> end_generation) {
  std::shared_ptr<WriteBufferManager> manager = options.write_buffer_manager;
  if (manager == nullptr && options.db_write_buffer_size > 0) {
    manager = std::make_shared<WriteBufferManager>(options.db_write_buffer_size);
  }
  if (manager == nullptr) return nullptr;
  return std::make_shared<WriteBufferShare>(std::move(manager), std::move(end_generation));
}

}  // namespace

MemTableGenerations::MemTableGenerations(DatabaseState* state, WriteController* controller,
                                         std::shared_ptr<MemTableBlocks> blocks,
                                         SequenceNumber last_published)
    : state_(state),
      controller_(controller),
      blocks_(std::move(blocks)),
      share_(ShareOf(state->context->options, [this] { return EndForShare(); })),
      sequencer_(last_published) {}

MemTableGenerations::~MemTableGenerations() {
  if (share_ != nullptr) share_->Leave();
}

MemTable* MemTableGenerations::MakeMemTable(ColumnFamily* family, uint16_t generation) {
  MutexLock lock(&state_->mutex);
  return MemTableFor(family, generation);
}

MemTable* MemTableGenerations::MemTableFor(ColumnFamily* family, uint16_t generation) {
  if (MemTable* made = family->FindMemTable(generation); made != nullptr) return made;
  size_t index_bytes = MemTable::IndexBytes(family->options().write_buffer_size);
  std::shared_ptr<ArenaBlockSource> blocks = blocks_;
  if (share_ != nullptr) {
    index_bytes = std::min(index_bytes, share_->IndexBytes());
    blocks = share_->blocks();
  }
  auto fresh = std::make_shared<MemTable>(family->user_comparator(), generation, index_bytes,
                                          std::move(blocks));
  if (family->iterated()) fresh->ExpectIterators();
  if (share_ != nullptr) fresh->ChargeTo(share_);
  MemTable* memtable = fresh.get();
  if (family->dropped()) dropped_entries_ = true;  // Set by a writer that came just before.
  // Readers can see it before it is written to.
  state_->InstallView(family, family->MemTablesWith(std::move(fresh)),
                      family->current_view()->version);
  family->SetMemTable(memtable);
  return memtable;
}

WrittenMemory MemTableGenerations::MemoryOf(const ColumnFamily& family, const MemTable& memtable) {
  const size_t bytes = memtable.MemoryUsage();
  MemTableCharge* const charge = memtable.charge();
  if (charge != nullptr) charge->GrowTo(bytes);
  if (bytes >= family.options().write_buffer_size) return WrittenMemory::kMemTableFull;
  const bool spent =
      charge != nullptr && (charge->share()->ShouldFlush() || charge->share()->ShouldStall());
  return spent ? WrittenMemory::kShareSpent : WrittenMemory::kEnough;
}

void MemTableGenerations::MakeRoom(WrittenMemory memory, uint16_t generation, bool waits) {
  if (memory == WrittenMemory::kMemTableFull) HandleFull(generation);
  if (share_ == nullptr) return;
  if (share_->ShouldFlush()) share_->Relieve();
  if (!waits || !share_->ShouldStall()) return;
  const PerfTimer timer(&PerfContext::write_delay_time);
  share_->AwaitRoom([this] {
    return state_->closing.load(std::memory_order_relaxed) || !controller_->fault().ok();
  });
}

bool MemTableGenerations::EndForShare() {
  MutexLock lock(&state_->mutex);
  if (state_->closing.load(std::memory_order_relaxed) || !HasEntries(nullptr)) return false;
  if (state_->work.ended_generations.size() + 1 >= state_->MemTablesMax()) return false;
  Switch();
  return true;
}

void MemTableGenerations::HandleFull(uint16_t generation) {
  MutexLock lock(&state_->mutex);
  if (sequencer_.generation() != generation) return;  // Another thread did.
  if (state_->work.ended_generations.size() + 1 >= state_->MemTablesMax()) {
    state_->work.memtable_full = true;
    controller_->Update();
    return;
  }
  Switch();
}

void MemTableGenerations::Switch() {
  state_->mutex.AssertHeld();
  const uint16_t full = sequencer_.generation();
  const auto generation = static_cast<uint16_t>(full + 1);
  const SequenceNumber earliest = state_->work.ended_generations.empty()
                                      ? state_->flushed + 1
                                      : state_->work.ended_generations.back().boundary;
  for (const auto& [id, family] : state_->families->by_id) {
    // What was written now will be written next; writers need not wait for one another then.
    const MemTable* memtable = family->FindMemTable(full);
    if (memtable == nullptr || memtable->entries() == 0) continue;
    if (memtable->charge() != nullptr) memtable->charge()->Seal();
    family->NoteIterated(memtable->iterated());
    MemTableFor(family.get(), generation);
    state_->context->events.MemTableSealed(*family, *memtable, earliest);
  }
  state_->work.ended_generations.push_back(
      {full, 0});  // First, as it may throw: a generation that ends is flushed.
  state_->work.ended_generations.back().boundary = sequencer_.NextGeneration();
  state_->work.memtable_full = false;
  dropped_entries_ = false;
  controller_->Update();
  state_->MaybeSchedule();
}

bool MemTableGenerations::HasEntries(const ColumnFamily* only) const {
  state_->mutex.AssertHeld();
  if (only == nullptr && dropped_entries_) return true;
  const uint16_t generation = sequencer_.generation();
  for (const auto& [id, family] : state_->families->by_id) {
    if (only != nullptr && family.get() != only) continue;
    const MemTable* memtable = family->FindMemTable(generation);
    if (memtable != nullptr && memtable->entries() > 0) return true;
  }
  return false;
}

void MemTableGenerations::SwitchIfThereIsRoom() {
  state_->mutex.AssertHeld();
  const bool room = state_->work.ended_generations.size() + 1 < state_->MemTablesMax();
  if (state_->work.memtable_full && room) Switch();
}

void MemTableGenerations::NoteDropped(const ColumnFamily& family) {
  state_->mutex.AssertHeld();
  dropped_entries_ = dropped_entries_ || family.FindMemTable(sequencer_.generation()) != nullptr;
}

}  // namespace nacre
