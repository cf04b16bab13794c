#include "table/seal/sealed_extent.h"

#include <algorithm>
#include <string>
#include <utility>

#include "table/format/failed_read.h"
#include "table/format/table_seal.h"

namespace nacre {
namespace {

/// Whole cells in the stored bytes of a table.
struct CellRange {
  CellRange(uint64_t offset, size_t n, uint64_t stored_size)
      : first(offset / kCellBytes), begin(first * kStoredCellBytes) {
    const uint64_t end = n == 0 ? begin : ((offset + n - 1) / kCellBytes + 1) * kStoredCellBytes;
    bytes = std::max(begin, std::min(end, stored_size)) - begin;
  }

  uint64_t first;      ///< Number of the first one.
  uint64_t begin;      ///< Its offset.
  uint64_t bytes = 0;  ///< What all of them take.
};

class SealedRead final : public PendingRead {
 public:
  SealedRead(std::shared_ptr<const TableSeal> seal, const CellRange& cells, uint64_t offset,
             size_t n, std::unique_ptr<PendingRead> stored)
      : seal_(std::move(seal)),
        cells_(cells),
        skipped_(offset - cells.first * kCellBytes),
        length_(n),
        stored_(std::move(stored)) {}

  Status Await(Slice* bytes) override {
    if (stored_ != nullptr) {
      Slice stored;
      NACRE_RETURN_IF_ERROR(stored_->Await(&stored));
      plain_ = std::make_unique_for_overwrite<char[]>(PlainBytes(stored.size()));
      NACRE_RETURN_IF_ERROR(seal_->OpenCells(cells_.first, stored, plain_.get()));
      stored_.reset();
    }
    *bytes = Slice(plain_.get() + skipped_, length_);
    return Status::OK();
  }

 private:
  const std::shared_ptr<const TableSeal> seal_;
  const CellRange cells_;
  const uint64_t skipped_;
  const size_t length_;
  std::unique_ptr<PendingRead> stored_;  ///< Null once it has been opened.
  std::unique_ptr<char[]> plain_;
};

/// Bytes that were copied out of memory that can be loaded.
class CopiedBytes final : public PendingRead {
 public:
  CopiedBytes(std::unique_ptr<char[]> bytes, size_t n) : bytes_(std::move(bytes)), length_(n) {}
  Status Await(Slice* bytes) override {
    *bytes = Slice(bytes_.get(), length_);
    return Status::OK();
  }

 private:
  const std::unique_ptr<char[]> bytes_;
  const size_t length_;
};

class SealedExtent final : public Extent {
 public:
  SealedExtent(std::shared_ptr<const TableSeal> seal, std::shared_ptr<Extent> stored)
      : seal_(std::move(seal)), stored_(std::move(stored)), size_(PlainBytes(stored_->size())) {}

  uint64_t size() const override { return size_; }
  std::unique_ptr<PendingRead> StartRead(uint64_t offset, size_t n) override {
    return Read(offset, n,
                [this](uint64_t from, size_t bytes) { return stored_->StartRead(from, bytes); });
  }
  std::unique_ptr<PendingRead> StartReadAhead(uint64_t offset, size_t n) override {
    return Read(offset, n, [this](uint64_t from, size_t bytes) {
      return stored_->StartReadAhead(from, bytes);
    });
  }

  std::string FindDamage(uint64_t offset, size_t n, bool again) override {
    const CellRange cells(offset, n, stored_->size());
    return stored_->FindDamage(cells.begin, cells.bytes, again);
  }
  FragmentSet damaged() const override { return stored_->damaged(); }
  void ReportDamage(FragmentSet fragments) override { stored_->ReportDamage(fragments); }
  void ReportDamage(FragmentSet fragments, uint64_t chunk) override {
    stored_->ReportDamage(fragments, chunk);
  }
  void PassDamageTo(std::shared_ptr<Extent> moved, FragmentSet kept) override {
    stored_->PassDamageTo(static_cast<SealedExtent*>(moved.get())->stored_, kept);
  }

 private:
  template <typename Start>
  std::unique_ptr<PendingRead> Read(uint64_t offset, size_t n, const Start& start) {
    if (offset > size_ || n > size_ - offset) {
      return std::make_unique<FailedRead>(
          Status::Corruption("read of bytes " + std::to_string(offset) + " to " +
                             std::to_string(offset + n) + " of " + std::to_string(size_)));
    }
    const CellRange cells(offset, n, stored_->size());
    std::unique_ptr<PendingRead> stored = Load(cells);
    if (stored == nullptr) stored = start(cells.begin, cells.bytes);
    return std::make_unique<SealedRead>(seal_, cells, offset, n, std::move(stored));
  }

  /// Null if the bytes have to be read. They are opened as a copy: in place they might change
  /// between the two looks that opening takes.
  std::unique_ptr<PendingRead> Load(const CellRange& cells) {
    if (cells.bytes == 0) return nullptr;
    const LoadableBytes there = stored_->Loadable(cells.begin);
    if (there.data == nullptr) return nullptr;
    const Slice bytes = there.From(cells.begin, cells.bytes);
    if (bytes.size() < cells.bytes) return nullptr;
    auto copy = std::make_unique_for_overwrite<char[]>(bytes.size());
    LoadableMemory::Copy(copy.get(), bytes.data(), bytes.size());
    if (!there.memory->Valid()) return nullptr;
    return std::make_unique<CopiedBytes>(std::move(copy), bytes.size());
  }

  const std::shared_ptr<const TableSeal> seal_;
  const std::shared_ptr<Extent> stored_;
  const uint64_t size_;
};

class SealingWriter final : public ExtentWriter {
 public:
  SealingWriter(std::shared_ptr<const TableSeal> seal, std::unique_ptr<ExtentWriter> stored)
      : seal_(std::move(seal)),
        stored_(std::move(stored)),
        chunk_size_(PlainBytes(stored_->chunk_size())),
        chunk_(std::make_unique_for_overwrite<char[]>(chunk_size_)) {}

  size_t chunk_size() const override { return chunk_size_; }
  uint64_t capacity() const override { return PlainBytes(stored_->capacity()); }
  Status NextChunk(char** buffer) override {
    *buffer = chunk_.get();
    return Status::OK();
  }
  Status Commit(size_t n) override {
    char* to = nullptr;
    NACRE_RETURN_IF_ERROR(stored_->NextChunk(&to));
    NACRE_RETURN_IF_ERROR(seal_->SealCells(next_cell_, Slice(chunk_.get(), n), to));
    next_cell_ += n / kCellBytes;
    return stored_->Commit(StoredBytes(n));
  }
  Status Finish(const Slice& head) override { return stored_->Finish(head); }

 private:
  const std::shared_ptr<const TableSeal> seal_;
  const std::unique_ptr<ExtentWriter> stored_;
  const size_t chunk_size_;  ///< A multiple of the cells'.
  const std::unique_ptr<char[]> chunk_;
  uint64_t next_cell_ = 0;
};

}  // namespace

std::shared_ptr<Extent> PlainExtent(const TableMeta& meta, std::shared_ptr<Extent> stored) {
  if (meta.seal == nullptr) return stored;
  return std::make_shared<SealedExtent>(meta.seal, std::move(stored));
}

std::unique_ptr<ExtentWriter> PlainWriter(const TableMeta& identity,
                                          std::unique_ptr<ExtentWriter> stored) {
  if (identity.seal == nullptr) return stored;
  return std::make_unique<SealingWriter>(identity.seal, std::move(stored));
}

}  // namespace nacre
