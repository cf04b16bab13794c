#include "db/cache/record_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <new>

#include "db/cache/record_index.h"
#include "util/hash.h"
#include "util/mutex.h"

namespace nacre {

namespace {

constexpr size_t kMostShards = 64;
constexpr size_t kLeastShardBytes = 4 << 20;
/// One word of the index for so many bytes. Of smaller records fewer fit.
constexpr size_t kBytesOfIndexWord = 128;
constexpr size_t kBytesOfGhost = 256;
/// The part of the small ring, as in the paper.
constexpr size_t kSmallPart = 10;
/// A record may take this part of the small ring.
constexpr size_t kSmallOfLongest = 4;
constexpr int kUsesToStay = 2;
/// Entries of the main ring that one new entry can save from being overwritten: what bounds the
/// time that it takes.
constexpr int kMostRescues = 32;

size_t RoundDown(size_t bytes, size_t unit) { return bytes / unit * unit; }

/// How a shard's memory is divided.
struct Layout {
  explicit Layout(size_t bytes)
      : index_bytes(RoundDown(bytes / kBytesOfIndexWord * sizeof(uint64_t), 64)),
        ghost_bytes(RoundDown(bytes / kBytesOfGhost * sizeof(uint64_t), 64)),
        small_bytes(RoundDown((bytes - index_bytes - ghost_bytes) / kSmallPart, RecordRing::kUnit)),
        main_bytes(RoundDown(bytes - index_bytes - ghost_bytes - small_bytes, RecordRing::kUnit)) {}

  const size_t index_bytes;
  const size_t ghost_bytes;
  const size_t small_bytes;
  const size_t main_bytes;
};

}  // namespace

uint64_t RecordCache::HashOf(const RecordName& name) {
  return Hash64(Slice(reinterpret_cast<const char*>(&name), sizeof(name)));
}

/// A part of the records, by hash.
class RecordCache::Shard {
 public:
  Shard(char* memory, const Layout& layout)
      : index_(reinterpret_cast<RecordIndex::Word*>(memory), layout.index_bytes / sizeof(uint64_t)),
        ghosts_(reinterpret_cast<uint64_t*>(memory + layout.index_bytes),
                layout.ghost_bytes / sizeof(uint64_t)),
        small_(memory + layout.index_bytes + layout.ghost_bytes, layout.small_bytes),
        main_(memory + layout.index_bytes + layout.ghost_bytes + layout.small_bytes,
              layout.main_bytes),
        table_bytes_(layout.index_bytes + layout.ghost_bytes),
        rescued_(std::make_unique_for_overwrite<char[]>(record_bytes_max())) {}

  bool Find(uint64_t hash, const RecordName& name, std::unique_ptr<char[]>* buffer, Slice* record) {
    for (RecordIndex::Word& slot : index_.Bucket(hash)) {
      const uint64_t word = slot.load(std::memory_order_acquire);  // Pairs with Put.
      if (!RecordIndex::Matches(word, hash)) continue;
      const RecordRing& ring = RecordIndex::InMain(word) ? main_ : small_;
      if (!ring.Read(RecordIndex::PositionOf(word), name, buffer, record)) continue;
      RecordIndex::CountUse(&slot, word);
      return true;
    }
    return false;
  }

  void Admit(uint64_t hash, const RecordName& name, const Slice& record) EXCLUDES(mutex_) {
    if (record.size() > record_bytes_max() || !RecordRing::CanHold(name, record.size())) return;
    const MutexLock lock(&mutex_);
    if (Has(hash, name)) return;  // Another thread has read it, too.
    if (ghosts_.Take(hash, main_entries_)) {
      AppendToMain(hash, name, record);
      return;
    }
    while (!small_.Fits(record.size())) LeaveSmall();
    index_.Put(hash, /*in_main=*/false, small_.Append(name, record), 0);
  }

  size_t used() const { return table_bytes_ + small_.used() + main_.used(); }

 private:
  size_t record_bytes_max() const { return small_.capacity() / kSmallOfLongest; }

  bool Has(uint64_t hash, const RecordName& name) REQUIRES(mutex_) {
    for (const RecordIndex::Word& slot : index_.Bucket(hash)) {
      const uint64_t word = slot.load(std::memory_order_relaxed);
      if (!RecordIndex::Matches(word, hash)) continue;
      const RecordRing& ring = RecordIndex::InMain(word) ? main_ : small_;
      if (ring.Has(RecordIndex::PositionOf(word), name)) return true;
    }
    return false;
  }

  /// The oldest of the small ring moves on, or becomes a ghost.
  void LeaveSmall() REQUIRES(mutex_) {
    const RecordRing::Entry oldest = *small_.Oldest();
    const uint64_t hash = HashOf(oldest.name);
    const int uses = index_.Remove(hash, /*in_main=*/false, oldest.position);
    // As long as the main ring is not full there is no reason to let anything go.
    if (uses >= kUsesToStay || (uses >= 0 && main_.Fits(oldest.record.size()))) {
      AppendToMain(hash, oldest.name, oldest.record);
    } else if (uses >= 0) {
      ghosts_.Add(hash);
    }
    small_.DropOldest();
  }

  void AppendToMain(uint64_t hash, const RecordName& name, const Slice& record) REQUIRES(mutex_) {
    int rescues = kMostRescues;
    while (!main_.Fits(record.size())) LeaveMain(&rescues);
    index_.Put(hash, /*in_main=*/true, main_.Append(name, record), 0);
    ++main_entries_;
  }

  /// The oldest of the main ring goes, or to its other end if it was used.
  void LeaveMain(int* rescues) REQUIRES(mutex_) {
    const RecordRing::Entry oldest = *main_.Oldest();
    const uint64_t hash = HashOf(oldest.name);
    const int uses = index_.Remove(hash, /*in_main=*/true, oldest.position);
    --main_entries_;
    if (uses <= 0 || *rescues == 0) {
      main_.DropOldest();
      return;
    }
    --*rescues;
    // The two ends may overlap.
    const Slice rescued(rescued_.get(), oldest.record.size());
    std::copy_n(oldest.record.data(), rescued.size(), rescued_.get());
    main_.DropOldest();
    if (!main_.Fits(rescued.size())) return;  // At the end of the ring, where a gap takes room.
    index_.Put(hash, /*in_main=*/true, main_.Append(oldest.name, rescued), uses - 1);
    ++main_entries_;
  }

  Mutex mutex_;
  // Readers use these without the mutex; who holds it may change them.
  RecordIndex index_;
  GhostList ghosts_ GUARDED_BY(mutex_);
  RecordRing small_;
  RecordRing main_;
  const size_t table_bytes_;
  uint32_t main_entries_ GUARDED_BY(mutex_) = 0;
  const std::unique_ptr<char[]> rescued_;  ///< Room for a record. Used under the mutex.
};

RecordCache::RecordCache(size_t bytes, Statistics* statistics)
    : capacity_(bytes), statistics_(statistics) {
  const size_t count = std::clamp<size_t>(std::bit_floor(bytes / kLeastShardBytes), 1, kMostShards);
  // Each shard has room for the copy of a record beside its memory.
  const size_t objects = sizeof(RecordCache) + count * (sizeof(Shard) + sizeof(void*));
  const size_t shard_bytes =
      RoundDown((bytes - objects) / count * (kSmallPart * kSmallOfLongest - 1) /
                    (kSmallPart * kSmallOfLongest),
                64);
  memory_bytes_ = count * shard_bytes;
  void* const memory = ::mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<char*>(memory);
  ::madvise(memory_, memory_bytes_, MADV_HUGEPAGE);  // A hint; small pages serve as well.
  const Layout layout(shard_bytes);
  for (size_t i = 0; i < count; ++i) {
    shards_.push_back(std::make_unique<Shard>(memory_ + i * shard_bytes, layout));
  }
}

RecordCache::~RecordCache() { ::munmap(memory_, memory_bytes_); }

void RecordCache::Count(bool hit) {
  // Only this thread writes here.
  ThreadCounts& mine = counts_.Mine();
  std::atomic<uint64_t>& count = hit ? mine.hits : mine.misses;
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (statistics_ != nullptr) statistics_->recordTick(hit ? ROW_CACHE_HIT : ROW_CACHE_MISS);
}

bool RecordCache::Find(const RecordName& name, std::unique_ptr<char[]>* buffer, Slice* record) {
  const uint64_t hash = HashOf(name);
  const bool hit = ShardOf(hash).Find(hash, name, buffer, record);
  Count(hit);
  return hit;
}

void RecordCache::Admit(const RecordName& name, const Slice& record) {
  const uint64_t hash = HashOf(name);
  ShardOf(hash).Admit(hash, name, record);
}

size_t RecordCache::used() const {
  size_t bytes = 0;
  for (const auto& shard : shards_) bytes += shard->used();
  return bytes;
}

RecordCache::Counts RecordCache::counts() const {
  Counts sum;
  counts_.ForEach([&sum](const ThreadCounts& counts) {
    sum.hits += counts.hits.load(std::memory_order_relaxed);
    sum.misses += counts.misses.load(std::memory_order_relaxed);
  });
  return sum;
}

}  // namespace nacre
