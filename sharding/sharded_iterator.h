#pragma once

#include <functional>
#include <memory>

#include "nacre/iterator.h"
#include "nacre/options.h"
#include "nacre/slice_transform.h"
#include "sharding/shard_map.h"
#include "sharding/snapshots/sharded_snapshot.h"

namespace nacre {

/// Makes an iterator of shard `index`.
using NewShardIterator =
    std::function<std::unique_ptr<Iterator>(const ReadOptions& options, size_t index)>;

/// One over all shards of a keyspace. It has an iterator of one shard at a time, and goes on in the
/// next one where that ends. `snapshot` is that of `options`, or else the iterator's own.
/// `extractor` may be null.
std::unique_ptr<Iterator> NewShardedIterator(const ReadOptions& options,
                                             std::shared_ptr<const ShardedSnapshot> snapshot,
                                             std::shared_ptr<const SliceTransform> extractor,
                                             NewShardIterator make);

}  // namespace nacre
