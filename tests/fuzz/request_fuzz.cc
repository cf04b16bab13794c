// A memory node takes requests from anybody: whatever arrives is decoded or refused.

#include <cstddef>
#include <cstdint>

#include "memnode/compaction_codec.h"
#include "memnode/protocol.h"
#include "util/coding.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nacre::memnode;
  const nacre::Slice bytes(reinterpret_cast<const char*>(data), size);
  Hello hello;
  if (Hello::Decode(bytes, &hello)) RefusalReason(hello, 1 << 20, 1);
  nacre::control::Request request;
  if (DecodeRequest(bytes, &request).ok() && request.has_compact()) {
    nacre::memnode::CompactionJob job;
    DecodeCompactionJob(request.compact(), &job).IgnoreError();
  }
  // The client's side, with the frame's own id.
  nacre::control::Reply reply;
  const uint64_t id = size >= 8 ? nacre::DecodeFixed64(bytes.end() - 8) : 0;
  if (DecodeReplyFrame(bytes, id, &reply).ok()) {
    CompactionResult result;
    DecodeCompactionResult(reply.compaction(), &result).IgnoreError();
  }
  return 0;
}
