#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "pool/store/fragment_writes.h"
#include "pool/store/table_store_rep.h"
#include "util/clock.h"
#include "util/codes/reed_solomon.h"

namespace nacre::pool {

namespace {

/// Writes one erasure-coded table. A chunk is sent as soon as it is full; while it is on the wire,
/// and still in the processor's cache, its checksum is taken and it is added to the parity of its
/// row, which is sent after the row's last chunk. A chunk whose fragment lies in local memory is
/// built there.
///
/// The last chunk is added in halving pieces, each of which is sent when it is ready, so that
/// little is left to do when most of the parity has left (the exponential pipeline of MicroEC,
/// section IV-D).
class StripedWriter : public ExtentWriter {
 public:
  StripedWriter(TableStore::Rep* store, std::unique_ptr<Lane> lane, uint64_t table_id,
                const Placement& placement, const WriteKeys* keys);

  size_t chunk_size() const override { return chunk_size_; }
  uint64_t capacity() const override { return capacity_; }
  Status NextChunk(char** buffer) override;
  Status Commit(size_t n) override;
  Status Finish(const Slice& head) override;

 private:
  /// Rows whose parity is in the making or on its way.
  static constexpr size_t kParityFlights = 2;
  static constexpr size_t kLeastPiece = 4096;

  size_t column() const { return chunks_ % data_; }
  uint64_t row() const { return chunks_ / data_; }
  /// The offset of the current chunk in its fragment.
  uint64_t RowOffset() const { return row() * chunk_size_; }
  size_t DataFlight() const { return chunks_ % data_flights_; }
  size_t ParityFlight(uint64_t row) const { return data_flights_ + row % kParityFlights; }
  size_t EndsFlight() const { return data_flights_ + kParityFlights; }

  Status OpenRow();
  void AddToParity(size_t begin, size_t end);
  /// Bytes [begin, end) of the row's parity chunks.
  Status SendParity(uint64_t row, size_t begin, size_t end);
  Status FinishInPieces(size_t n);
  Status SendRow(uint64_t row);
  /// The row's parity is complete, and on its way.
  void EndRow();

  TableStore::Rep* const store_;
  const size_t chunk_size_;
  const size_t data_;
  const size_t parity_;
  const size_t data_flights_;
  FragmentWrites writes_;
  const GfMatrix* const encoder_;  ///< Null without parity.
  uint64_t capacity_ = UINT64_MAX;
  uint64_t chunks_ = 0;  ///< Committed.
  uint64_t written_ = 0;
  rdma::LocalBuffer current_;
  Buffer* parity_buffer_ = nullptr;  ///< Parity chunks of the current row, one after another.
  size_t row_bytes_ = 0;             ///< Size of the row's first chunk.
  bool parity_sent_ = true;          ///< Whether the parity of all rows with chunks was sent.
  std::vector<FragmentChecksums> checksums_;
};

StripedWriter::StripedWriter(TableStore::Rep* store, std::unique_ptr<Lane> lane, uint64_t table_id,
                             const Placement& placement, const WriteKeys* keys)
    : store_(store),
      chunk_size_(placement.chunk_size),
      data_(placement.redundancy.data),
      parity_(placement.redundancy.parity),
      data_flights_(static_cast<size_t>(store->buffers_in_flight)),
      writes_(store, std::move(lane), placement, data_flights_ + kParityFlights + 1, keys),
      encoder_(parity_ == 0
                   ? nullptr
                   : &ReedSolomon::Get(placement.redundancy.data, placement.redundancy.parity)
                          .encoder()) {
  for (const ExtentAddr& fragment : placement.fragments) {
    const uint64_t rows = FragmentCapacity(fragment.length, chunk_size_) / chunk_size_;
    capacity_ = std::min(capacity_, rows * data_ * chunk_size_);
    FragmentChecksums& checksums = checksums_.emplace_back();
    checksums.table_id = table_id;
    checksums.fragment = static_cast<uint32_t>(checksums_.size() - 1);
    checksums.chunk_size = chunk_size_;
  }
}

Status StripedWriter::NextChunk(char** buffer) {
  NACRE_RETURN_IF_ERROR(writes_.AwaitFlight(DataFlight()));
  if (column() == 0) NACRE_RETURN_IF_ERROR(OpenRow());
  if (char* const local = writes_.Local(column()); local != nullptr && written_ < capacity_) {
    current_ = writes_.LocalPart(local + RowOffset(), chunk_size_);
  } else {
    Buffer* place = nullptr;
    NACRE_RETURN_IF_ERROR(writes_.Buffered(DataFlight(), chunk_size_, &place));
    current_ = place->Part(0, static_cast<uint32_t>(chunk_size_));
  }
  *buffer = current_.data;
  return Status::OK();
}

Status StripedWriter::OpenRow() {
  if (parity_ == 0) return Status::OK();
  return writes_.Buffered(ParityFlight(row()), parity_ * chunk_size_, &parity_buffer_);
}

Status StripedWriter::Commit(size_t n) {
  NACRE_RETURN_IF_ERROR(writes_.failure());
  assert(current_.data != nullptr && n <= chunk_size_);
  if (n > capacity_ - written_) return writes_.Fail(Outgrown(capacity_));
  current_.size = static_cast<uint32_t>(n);
  NACRE_RETURN_IF_ERROR(
      writes_.Write(column(), static_cast<int64_t>(RowOffset()), current_, DataFlight()));
  if (column() == 0) row_bytes_ = n;
  parity_sent_ = false;
  if (n < chunk_size_) {
    NACRE_RETURN_IF_ERROR(FinishInPieces(n));
    EndRow();
  } else {
    AddToParity(0, n);
    if (column() == data_ - 1) NACRE_RETURN_IF_ERROR(SendRow(row()));
  }
  checksums_[column()].Add(current_.data, n);
  ++chunks_;
  written_ += n;
  current_ = {};
  writes_.Poll();
  return writes_.failure();
}

void StripedWriter::AddToParity(size_t begin, size_t end) {
  if (parity_ == 0) return;
  const uint64_t start = ThreadCpuNanos();
  std::array<char*, ReedSolomon::kMaxParity> to{};
  for (size_t i = 0; i < parity_; ++i) to[i] = parity_buffer_->data() + i * chunk_size_ + begin;
  encoder_->Accumulate(static_cast<int>(column()), column() == 0, end - begin,
                       current_.data + begin, to.data());
  store_->encoding_nanos.fetch_add(ThreadCpuNanos() - start, std::memory_order_relaxed);
  store_->encoded_bytes.fetch_add(end - begin, std::memory_order_relaxed);
}

Status StripedWriter::SendParity(uint64_t row, size_t begin, size_t end) {
  for (size_t i = 0; i < parity_; ++i) {
    NACRE_RETURN_IF_ERROR(writes_.Write(
        data_ + i, static_cast<int64_t>(row * chunk_size_ + begin),
        parity_buffer_->Part(i * chunk_size_ + begin, static_cast<uint32_t>(end - begin)),
        ParityFlight(row)));
  }
  return Status::OK();
}

Status StripedWriter::SendRow(uint64_t row) {
  NACRE_RETURN_IF_ERROR(SendParity(row, 0, row_bytes_));
  EndRow();
  return Status::OK();
}

void StripedWriter::EndRow() {
  for (size_t i = 0; i < parity_; ++i) {
    checksums_[data_ + i].Add(parity_buffer_->data() + i * chunk_size_, row_bytes_);
  }
  parity_sent_ = true;
}

Status StripedWriter::FinishInPieces(size_t n) {
  // Beyond the last chunk, the row is what its other chunks have made it.
  if (n < row_bytes_) NACRE_RETURN_IF_ERROR(SendParity(row(), n, row_bytes_));
  size_t begin = 0;
  while (begin < n) {
    const size_t left = n - begin;
    const size_t piece = left <= kLeastPiece ? left : left / 2;
    AddToParity(begin, begin + piece);
    NACRE_RETURN_IF_ERROR(SendParity(row(), begin, begin + piece));
    begin += piece;
  }
  return Status::OK();
}

Status StripedWriter::Finish(const Slice& head) {
  NACRE_RETURN_IF_ERROR(writes_.failure());
  // A last row of whole chunks only.
  if (!parity_sent_) {
    NACRE_RETURN_IF_ERROR(SendRow((chunks_ - 1) / data_));
  }
  return WriteEnds(head, checksums_, EndsFlight(), &writes_);
}

}  // namespace

std::unique_ptr<ExtentWriter> NewStripedWriter(TableStore::Rep* store, std::unique_ptr<Lane> lane,
                                               uint64_t table_id, const Placement& placement,
                                               const WriteKeys* keys) {
  return std::make_unique<StripedWriter>(store, std::move(lane), table_id, placement, keys);
}

}  // namespace nacre::pool
