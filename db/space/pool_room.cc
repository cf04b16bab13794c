#include "db/space/pool_room.h"

#include <functional>
#include <map>
#include <utility>

#include "db/space/reserved_outputs.h"

namespace nacre {

Status MeasureRoom(const pool::PoolClient& client, pool::SpaceAllocator* space, int fragments,
                   uint64_t piece, PoolRoom* room) {
  *room = PoolRoom();
  Status unknown;
  const std::vector<NodeId> domains = client.Domains();
  std::map<NodeId, uint64_t> free;  // By domain.
  for (int i = 0; i < client.node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (!client.alive(node)) continue;
    pool::SpaceAllocator::FreeSpace there;
    if (Status status = space->MeasureFree(node, piece, &there); !status.ok()) {
      if (client.alive(node)) unknown = std::move(status);
      continue;
    }
    free[node < domains.size() ? domains[node] : node] += there.bytes;
    room->total += there.total;
  }
  std::vector<uint64_t> of_domains;
  for (const auto& [domain, bytes] : free) of_domains.push_back(bytes);
  room->domains = static_cast<int>(of_domains.size());
  room->free = PlaceableBytes(std::move(of_domains), fragments);
  return unknown;
}

uint64_t PlaceableBytes(std::vector<uint64_t> free, int fragments) {
  const auto wanted = static_cast<size_t>(fragments);
  if (free.size() < wanted) return 0;
  std::sort(free.begin(), free.end(), std::greater<>());
  uint64_t rest = 0;
  for (const uint64_t bytes : free) rest += bytes;
  // Each table has a fragment in each of the largest domains, and the others in the rest of them.
  uint64_t of_each = UINT64_MAX;
  for (size_t largest = 0; largest < wanted; ++largest) {
    of_each = std::min(of_each, rest / (wanted - largest));
    rest -= free[largest];
  }
  return of_each * wanted;
}

StepRoom RoomOfStep(uint64_t largest_record, uint64_t target, uint64_t chunk_size) {
  // As a compaction reserves its outputs, which may be of few records each.
  constexpr uint64_t kRecordsInTable = 8;
  const uint64_t slack = largest_record + 2 * chunk_size + kOutputSlackBytes;
  const bool large = 4 * largest_record > target;
  const uint64_t table = large ? std::max(target, kRecordsInTable * largest_record) : target;
  return {.bytes = std::max((kSunkTables + 1) * target, 2 * table) + slack,
          .output = large ? table + slack : 2 * slack};
}

uint64_t LargestRecord(const Version& version) {
  uint64_t largest = 0;
  for (int level = 0; level < version.depth(); ++level) {
    for (const auto& chunk : version.chunks(level)) {
      largest = std::max(largest, chunk->sums().largest_record);
    }
  }
  return largest;
}

}  // namespace nacre
