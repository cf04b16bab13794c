#include "db/context/operation_counts.h"

#include <utility>

namespace nacre {
namespace {

uint64_t MicrosSince(Clock* clock, uint64_t start_nanos) {
  constexpr uint64_t kNanosPerMicro = 1000;
  return (clock->NowNanos() - start_nanos) / kNanosPerMicro;
}

class CountedIterator final : public Iterator {
 public:
  CountedIterator(std::unique_ptr<Iterator> iterator, std::shared_ptr<Statistics> statistics,
                  Clock* clock)
      : iterator_(std::move(iterator)), statistics_(std::move(statistics)), clock_(clock) {
    statistics_->recordTick(NO_ITERATOR_CREATED);
  }
  ~CountedIterator() override {
    statistics_->recordTick(NUMBER_DB_SEEK, seeks_.times);
    statistics_->recordTick(NUMBER_DB_SEEK_FOUND, seeks_.found);
    statistics_->recordTick(NUMBER_DB_NEXT, nexts_.times);
    statistics_->recordTick(NUMBER_DB_NEXT_FOUND, nexts_.found);
    statistics_->recordTick(NUMBER_DB_PREV, prevs_.times);
    statistics_->recordTick(NUMBER_DB_PREV_FOUND, prevs_.found);
    statistics_->recordTick(ITER_BYTES_READ, bytes_);
    statistics_->recordTick(NO_ITERATOR_DELETED);
  }

  bool Valid() const override { return iterator_->Valid(); }
  void SeekToFirst() override {
    Seek([this] { iterator_->SeekToFirst(); });
  }
  void SeekToLast() override {
    Seek([this] { iterator_->SeekToLast(); });
  }
  void Seek(const Slice& target) override {
    Seek([&] { iterator_->Seek(target); });
  }
  void SeekForPrev(const Slice& target) override {
    Seek([&] { iterator_->SeekForPrev(target); });
  }
  void Next() override {
    iterator_->Next();
    Count(&nexts_);
  }
  void Prev() override {
    iterator_->Prev();
    Count(&prevs_);
  }
  Slice key() const override { return iterator_->key(); }
  Slice value() const override { return iterator_->value(); }
  Status status() const override { return iterator_->status(); }

 private:
  struct Moves {
    uint64_t times = 0;
    uint64_t found = 0;
  };

  template <typename Move>
  void Seek(const Move& move) {
    const uint64_t start = clock_->NowNanos();
    move();
    statistics_->reportTimeToHistogram(DB_SEEK, MicrosSince(clock_, start));
    Count(&seeks_);
  }
  void Count(Moves* moves) {
    ++moves->times;
    if (!iterator_->Valid()) return;
    ++moves->found;
    bytes_ += iterator_->key().size() + iterator_->value().size();
  }

  const std::unique_ptr<Iterator> iterator_;
  const std::shared_ptr<Statistics> statistics_;
  Clock* const clock_;
  Moves seeks_;
  Moves nexts_;
  Moves prevs_;
  uint64_t bytes_ = 0;
};

}  // namespace

void CountGet(Statistics* statistics, Clock* clock, uint64_t start_nanos, const Status& status,
              const PinnableSlice& value) {
  statistics->recordTick(NUMBER_KEYS_READ);
  statistics->reportTimeToHistogram(DB_GET, MicrosSince(clock, start_nanos));
  if (!status.ok()) return;
  statistics->recordTick(BYTES_READ, value.size());
  statistics->recordInHistogram(BYTES_PER_READ, value.size());
}

void CountMultiGet(Statistics* statistics, Clock* clock, uint64_t start_nanos,
                   std::span<const Status> statuses, std::span<const PinnableSlice> values) {
  uint64_t found = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (!statuses[i].ok()) continue;
    ++found;
    bytes += values[i].size();
  }
  statistics->recordTick(NUMBER_MULTIGET_CALLS);
  statistics->recordTick(NUMBER_MULTIGET_KEYS_READ, statuses.size());
  statistics->recordTick(NUMBER_MULTIGET_KEYS_FOUND, found);
  statistics->recordTick(NUMBER_MULTIGET_BYTES_READ, bytes);
  statistics->recordInHistogram(BYTES_PER_MULTIGET, bytes);
  statistics->reportTimeToHistogram(DB_MULTIGET, MicrosSince(clock, start_nanos));
}

void CountWrite(Statistics* statistics, Clock* clock, uint64_t start_nanos, const Status& status,
                uint64_t updates, uint64_t bytes, bool logged) {
  statistics->reportTimeToHistogram(DB_WRITE, MicrosSince(clock, start_nanos));
  if (!status.ok()) return;
  statistics->recordTick(NUMBER_KEYS_WRITTEN, updates);
  statistics->recordTick(BYTES_WRITTEN, bytes);
  statistics->recordInHistogram(BYTES_PER_WRITE, bytes);
  if (!logged) return;
  statistics->recordTick(WRITE_WITH_WAL);
  statistics->recordTick(WAL_FILE_BYTES, bytes);
}

std::unique_ptr<Iterator> NewCountedIterator(std::unique_ptr<Iterator> iterator,
                                             std::shared_ptr<Statistics> statistics, Clock* clock) {
  return std::make_unique<CountedIterator>(std::move(iterator), std::move(statistics), clock);
}

}  // namespace nacre
