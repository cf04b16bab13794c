#include "pool/read/pool_reader.h"

#include <cstring>
#include <deque>
#include <utility>

#include "pool/read/replica_read.h"

namespace nacre::pool {
namespace {

constexpr size_t kMaxIdleBytes = 32 << 20;
constexpr size_t kReadsAtOnce = 64;
constexpr size_t kBytesAtOnce = 16 << 20;

}  // namespace

PoolReader::PoolReader(Fabric* fabric)
    : fabric_(fabric), buffers_(fabric->context.device, kMaxIdleBytes) {}

Status PoolReader::Open(Fabric* fabric, std::unique_ptr<PoolReader>* reader) {
  std::unique_ptr<PoolReader> result(new PoolReader(fabric));
  NACRE_RETURN_IF_ERROR(RemoteStream::Create(fabric, &result->buffers_, &result->stream_));
  *reader = std::move(result);
  return Status::OK();
}

void PoolReader::ReadEach(std::span<const NodeRange> ranges, const Visitor& visit) {
  std::deque<std::shared_ptr<StreamRead>> reads;
  size_t in_flight = 0;
  size_t next = 0;
  for (size_t done = 0; done < ranges.size(); ++done) {
    while (next < ranges.size() && reads.size() < kReadsAtOnce &&
           (reads.empty() || in_flight + ranges[next].length <= kBytesAtOnce)) {
      const NodeRange& range = ranges[next++];
      const StreamPart part{
          .node = range.node, .offset = range.offset, .length = range.length, .at = 0};
      reads.push_back(stream_->Start({&part, 1}, range.length));
      in_flight += range.length;
    }
    const std::shared_ptr<StreamRead> read = std::move(reads.front());
    reads.pop_front();
    const size_t length = ranges[done].length;
    in_flight -= length;
    stream_->Await(*read);
    if (!read->status().ok()) {
      visit(done, read->status(), Slice());
      continue;
    }
    bytes_read_ += length;
    visit(done, Status::OK(), Slice(read->buffer().data(), length));
  }
}

Status PoolReader::Read(const NodeRange& range, char* to) {
  Status result;
  ReadEach({&range, 1}, [&](size_t, const Status& status, const Slice& bytes) {
    result = status;
    if (status.ok()) std::memcpy(to, bytes.data(), bytes.size());
  });
  return result;
}

Status PoolReader::Read(const ExtentAddr& extent, uint64_t offset, size_t n, char* to) {
  ReplicaRead read;
  NACRE_RETURN_IF_ERROR(read.Start(this, extent, offset, n, to));
  return read.AwaitFirst(n);
}

}  // namespace nacre::pool
