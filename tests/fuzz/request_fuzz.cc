// A memory node takes requests from any peer: whatever arrives is decoded or refused.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "jobs/job_codec.h"
#include "pool/connect/node_link.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/protocol.h"
#include "util/coding.h"

namespace {

/// What a client makes of a node that describes itself, or its slabs, at will.
void UseDescription(const nacre::control::Reply& reply) {
  using namespace nacre::pool;
  const ClientContext context;
  NodeLink link(&context, 0, "shm:@node");
  nacre::control::Description description;
  description.set_instance_id(1);
  description.set_region_bytes(5 << 20);
  description.set_slab_bytes(1 << 20);
  description.set_slab_area(1 << 20);
  description.set_piece_shift(23);
  description.add_pieces()->set_length(5 << 20);
  if (reply.has_description()) description = reply.description();
  if (!link.SetDescription(description).ok()) return;
  const nacre::control::Slabs& slabs = reply.slabs();
  link.SetWriteKeys(slabs).IgnoreError();
  link.TakeWriteKeys({slabs.offsets().begin(), slabs.offsets().end()});
  for (const uint64_t offset : {uint64_t{0}, link.region_bytes() - 1}) {
    nacre::rdma::RemoteBuffer to;
    uint64_t contiguous = 0;
    link.TranslateWrite(offset, &to, &contiguous);
    link.Translate(offset, &contiguous);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nacre::pool;
  const nacre::Slice bytes(reinterpret_cast<const char*>(data), size);
  Hello hello;
  if (Hello::Decode(bytes, &hello)) {
    RefusalReason(hello, 1 << 20, 1, 1);
    MissingFeaturesReason(hello.features, UINT64_MAX);
    // What was said in this release's form is said again.
    Hello again;
    if (RefusalReason(hello, 0, 0, 0).empty() &&
        (!Hello::Decode(hello.Encode(), &again) || again.range != hello.range ||
         again.features != hello.features || again.start_id != hello.start_id)) {
      std::abort();
    }
  }
  Welcome welcome;
  if (Welcome::Decode(bytes, &welcome)) {
    Welcome again;
    if (!Welcome::Decode(welcome.Encode(), &again) || again.version != welcome.version ||
        again.features_on != welcome.features_on) {
      std::abort();
    }
  }
  nacre::control::Request request;
  if (DecodeRequest(bytes, &request).ok()) {
    CompactionJob compaction;
    if (request.has_compact()) DecodeJob(request.compact(), &compaction).IgnoreError();
    FlushJob flush;
    if (request.has_flush()) DecodeJob(request.flush(), &flush).IgnoreError();
    RebuildJob rebuild;
    if (request.has_rebuild()) DecodeJob(request.rebuild(), &rebuild).IgnoreError();
    ScrubJob scrub;
    if (request.has_scrub()) DecodeJob(request.scrub(), &scrub).IgnoreError();
  }
  // The client's side, with the frame's own id.
  nacre::control::Reply reply;
  const uint64_t id = size >= 8 ? nacre::DecodeFixed64(bytes.end() - 8) : 0;
  if (DecodeReplyFrame(bytes, id, &reply).ok()) {
    CompactionResult result;
    DecodeResult(reply.compaction(), &result).IgnoreError();
    RebuildJob rebuild;
    rebuild.tables.resize(static_cast<size_t>(reply.rebuild().tables_size()));
    RebuildResult rebuilt;
    DecodeResult(reply.rebuild(), rebuild, &rebuilt).IgnoreError();
    ScrubJob scrub;
    scrub.fragments.resize(7);
    ScrubResult scrubbed;
    DecodeResult(reply.scrub(), scrub, &scrubbed).IgnoreError();
    UseDescription(reply);
  }
  return 0;
}
