#include "jobs/scrub_job.h"

#include <fmt/format.h>

#include <utility>

#include "pool/store/table_store.h"
#include "table/format/fragment_checksums.h"
#include "table/format/table_meta.h"
#include "util/byte_pace.h"

namespace nacre::pool {
namespace {

bool HeadIsWhole(const char* head, uint64_t table_id) {
  Slice input(head, kFragmentHeadBytes);
  TableMeta meta;
  return DecodeTableMeta(&input, &meta).ok() && meta.id == table_id;
}

/// `memory`: of the extent.
Status Check(const ScrubFragment& fragment, const char* memory, BytePace* pace,
             FragmentDamage* damage) {
  damage->head = !HeadIsWhole(memory, fragment.table_id);
  const char* const bytes = memory + kFragmentHeadBytes;
  const Slice tail(bytes + fragment.bytes,
                   fragment.extent.length - kFragmentHeadBytes - fragment.bytes);
  FragmentChecksums sums;
  const FragmentIdentity identity{
      .table_id = fragment.table_id, .fragment = fragment.fragment, .bytes = fragment.bytes};
  if (!DecodeFragmentTail(tail, identity, &sums).ok()) {
    damage->tail = true;
    return pace->Pass(kFragmentHeadBytes);
  }
  for (size_t chunk = 0; chunk < sums.chunks.size(); ++chunk) {
    if (!sums.Matches(chunk, bytes + chunk * sums.chunk_size)) damage->chunks.push_back(chunk);
    NACRE_RETURN_IF_ERROR(pace->Pass(sums.ChunkBytes(chunk)));
  }
  return Status::OK();
}

}  // namespace

Status RunScrub(const ScrubJob& job, const TableStore& store, const std::atomic<bool>* cancelled,
                ScrubResult* result) {
  BytePace pace(store.client()->clock(), job.bytes_per_second, cancelled);
  for (size_t i = 0; i < job.fragments.size(); ++i) {
    const ScrubFragment& fragment = job.fragments[i];
    const char* const memory = store.InLocalMemory(fragment.extent);
    if (memory == nullptr || fragment.extent.length < kFragmentHeadBytes ||
        fragment.bytes > fragment.extent.length - kFragmentHeadBytes) {
      return Status::InvalidArgument(fmt::format("scrub: fragment {} of table {} is not here",
                                                 fragment.fragment, fragment.table_id));
    }
    FragmentDamage damage{.index = static_cast<uint32_t>(i), .chunks = {}};
    NACRE_RETURN_IF_ERROR(Check(fragment, memory, &pace, &damage));
    result->bytes += fragment.bytes;
    if (damage.head || damage.tail || !damage.chunks.empty()) {
      result->damaged.push_back(std::move(damage));
    }
  }
  return Status::OK();
}

}  // namespace nacre::pool
