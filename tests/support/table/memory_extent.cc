#include "tests/support/table/memory_extent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "table/format/placement.h"

namespace nacre {
namespace {

constexpr int kGarbage = 0xcd;

}  // namespace

Status CallCounter::Count(const char* what) {
  ++calls_;
  if (left_ == kNever) return Status::OK();
  if (left_ == 0) return Status::Unavailable(std::string("test fault in ") + what);
  --left_;
  return Status::OK();
}

// ---- Reading ----------------------------------------------------------------------------------

class MemoryExtent::Read final : public PendingRead {
 public:
  Read(MemoryExtent* extent, uint64_t offset, size_t n)
      : extent_(extent), offset_(offset), n_(n), buffer_(new char[n]) {
    std::memset(buffer_.get(), kGarbage, n);
    ++extent->reads_alive_;
    extent->reads_alive_max_ = std::max(extent->reads_alive_max_, extent->reads_alive_);
  }
  ~Read() override {
    std::memset(buffer_.get(), kGarbage, n_);
    --extent_->reads_alive_;
  }

  Status Await(Slice* bytes) override {
    if (!done_) {
      if (extent_->options_.counter != nullptr) {
        NACRE_RETURN_IF_ERROR(extent_->options_.counter->Count("read"));
      }
      std::memcpy(buffer_.get(), extent_->bytes_.data() + offset_, n_);
      done_ = true;
    }
    *bytes = Slice(buffer_.get(), n_);
    return Status::OK();
  }

 private:
  MemoryExtent* const extent_;
  const uint64_t offset_;
  const size_t n_;
  const std::unique_ptr<char[]> buffer_;
  bool done_ = false;
};

std::unique_ptr<PendingRead> MemoryExtent::StartRead(uint64_t offset, size_t n) {
  EXPECT_LE(offset + n, bytes_.size()) << "read beyond the table";
  ++reads_started_;
  bytes_started_ += n;
  return std::make_unique<Read>(this, offset, n);
}

// ---- Loading ----------------------------------------------------------------------------------

class MemoryExtent::Memory {
 public:
  explicit Memory(const std::string& bytes)
      : bytes_(bytes),
        loadable_(bytes_.data(), bytes_.size(), {&key_, 1, &closed_, &open_, &moved_}, nullptr) {}

  const LoadableMemory& loadable() const { return loadable_; }
  /// In each of the ways in which memory ends, in turns.
  void End(uint64_t number) {
    if (number % 3 == 0) key_ = 2;
    if (number % 3 == 1) closed_ = 1;
    if (number % 3 == 2) moved_ = 1;
    // Something else, nothing, or what passes for a record unless its checksum is looked at.
    if (number % 4 == 0) std::memset(bytes_.data(), kGarbage, bytes_.size());
    if (number % 4 == 1) std::memset(bytes_.data(), 0, bytes_.size());
    for (size_t i = 20; number % 4 > 1 && i < bytes_.size(); i += 50) bytes_[i] ^= 1;
  }

 private:
  std::string bytes_;
  std::atomic<uint32_t> key_{1};
  std::atomic<uint32_t> closed_{0};
  std::atomic<uint32_t> open_{0};
  std::atomic<uint64_t> moved_{0};
  const LoadableMemory loadable_;
};

MemoryExtent::MemoryExtent(std::string bytes, MemoryExtentOptions options)
    : bytes_(std::move(bytes)), options_(options) {}
MemoryExtent::~MemoryExtent() = default;

LoadableBytes MemoryExtent::Loadable(uint64_t offset) {
  EXPECT_LT(offset, bytes_.size()) << "load beyond the table";
  const bool by_chunk = options_.place == BytesPlace::kLoadableByChunk;
  if (options_.place != BytesPlace::kLoadable && !by_chunk) return {};
  if (refusals_ > 0) {
    --refusals_;
    return {};
  }
  if (memories_.empty() || !memories_.back()->loadable().Valid()) {
    memories_.push_back(std::make_unique<Memory>(bytes_));
  }
  const LoadableMemory& memory = memories_.back()->loadable();
  const uint64_t begin = by_chunk ? offset / options_.chunk_size * options_.chunk_size : 0;
  const uint64_t end =
      by_chunk ? std::min<uint64_t>(begin + options_.chunk_size, bytes_.size()) : bytes_.size();
  return {memory.data() + begin, begin, end, &memory};
}

void MemoryExtent::EndMemory(uint64_t refusals) {
  if (!memories_.empty()) memories_.back()->End(memories_.size());
  refusals_ = refusals;
}

// ---- Writing ----------------------------------------------------------------------------------

MemoryExtentWriter::MemoryExtentWriter(MemoryTable* table, size_t chunk_size, uint64_t capacity,
                                       CallCounter* counter)
    : table_(table),
      chunk_size_(chunk_size),
      capacity_(capacity),
      counter_(counter),
      buffer_(new char[chunk_size]) {
  *table = MemoryTable();
  Poison();
}

void MemoryExtentWriter::Poison() { std::memset(buffer_.get(), kGarbage, chunk_size_); }

Status MemoryExtentWriter::Count(const char* what) {
  EXPECT_FALSE(failed_) << what << " after a failure";
  EXPECT_FALSE(table_->finished) << what << " after Finish";
  Status status = counter_ != nullptr ? counter_->Count(what) : Status::OK();
  failed_ = !status.ok();
  return status;
}

Status MemoryExtentWriter::NextChunk(char** buffer) {
  EXPECT_FALSE(open_) << "NextChunk without Commit";
  EXPECT_FALSE(short_chunk_) << "a chunk that is not the last was not full";
  NACRE_RETURN_IF_ERROR(Count("NextChunk"));
  open_ = true;
  *buffer = buffer_.get();
  return Status::OK();
}

Status MemoryExtentWriter::Commit(size_t n) {
  EXPECT_TRUE(open_) << "Commit without NextChunk";
  EXPECT_GT(n, 0u);
  EXPECT_LE(n, chunk_size_);
  EXPECT_LE(table_->bytes.size() + n, capacity_) << "more than fits";
  NACRE_RETURN_IF_ERROR(Count("Commit"));
  open_ = false;
  short_chunk_ = n < chunk_size_;
  table_->bytes.append(buffer_.get(), n);
  Poison();
  return Status::OK();
}

Status MemoryExtentWriter::Finish(const Slice& head) {
  EXPECT_FALSE(open_) << "Finish without Commit";
  EXPECT_LE(head.size(), kFragmentHeadBytes);
  NACRE_RETURN_IF_ERROR(Count("Finish"));
  table_->head = head.ToString();
  table_->finished = true;
  return Status::OK();
}

}  // namespace nacre
