#pragma once

#include <cstdint>
#include <memory>

#include "db/read_view.h"
#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/internal_iterator.h"
#include "table/internal_key.h"

namespace nacre {

// How a view is read, by its owner as by those who follow it. The caller keeps the view alive.

/// Looks `key`, whose Hash64 is `hash`, up in the MemTables of `view`. True if that settles it:
/// `*status` says how.
bool GetFromMemTables(const ReadView& view, const Slice& key, uint64_t hash,
                      SequenceNumber snapshot, PinnableSlice* value, Status* status);

/// Over MemTables and tables.
std::unique_ptr<InternalIterator> NewViewIterator(const ReadView& view, const ReadOptions& options);

/// The newest version of `key` in `view` up to `snapshot`, found by an iterator: for a version
/// older than the newest one in its table.
Status SearchView(const ReadView& view, const ReadOptions& options, const Slice& key,
                  SequenceNumber snapshot, PinnableSlice* value);

/// See DB::GetApproximateSizes.
Status ApproximateSizes(const Version& version, const Range* ranges, int n, uint64_t* sizes);

}  // namespace nacre
