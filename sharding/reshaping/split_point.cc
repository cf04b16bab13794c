#include "sharding/reshaping/split_point.h"

#include <fmt/format.h>

namespace nacre {

Status MoveToUndivided(const ShardMap& map, uint32_t shard, size_t prefix_bytes, std::string* key) {
  const size_t index = map.IndexOf(shard);
  if (prefix_bytes == 0 || key->size() < prefix_bytes || index == map.size()) return Status::OK();
  key->resize(prefix_bytes);
  std::string behind = *key;
  while (!behind.empty() && behind.back() == '\xff') behind.pop_back();
  if (!behind.empty()) {
    ++behind.back();
    behind.resize(prefix_bytes, '\0');
    if (map.Has(index, behind)) {
      *key = behind;
      return Status::OK();
    }
  }
  if (map.shards()[index].begin != *key) return Status::OK();
  return Status::NotFound(
      fmt::format("all keys of shard {} begin with the same {} bytes", shard, prefix_bytes));
}

Status CheckUndivided(size_t prefix_bytes, const std::string& key) {
  if (prefix_bytes == 0 || key.empty() || key.size() == prefix_bytes) return Status::OK();
  return Status::InvalidArgument(fmt::format(
      "a split at '{}': shards of this keyspace begin at keys of {} bytes, so that all keys that "
      "begin with the same ones are in one",
      Slice(key).ToString(/*hex=*/true), prefix_bytes));
}

}  // namespace nacre
