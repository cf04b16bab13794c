#include "db/flush/flush_range.h"

#include <algorithm>
#include <utility>

#include "table/table_builder.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

/// What a table takes of any one record of the MemTable.
uint64_t OneRecordTableBytes(const MemTable& memtable, uint64_t largest_value,
                             uint64_t chunk_size) {
  const uint64_t key_bytes = memtable.largest_key();
  return largest_value + TableBuilder::SizeBound(1, key_bytes, key_bytes + 64, chunk_size);
}

}  // namespace

uint64_t FlushRangesMax(const MemTable& memtable, int threads) {
  // One thread takes twice as long to flush a record as one writer does to put it.
  constexpr uint64_t kMinRangeBytes = 4 << 20;
  // Where one record is much of the whole there are no ranges of about one size, and room for it
  // would be reserved in each.
  const uint64_t record = memtable.largest_key() + memtable.largest_value();
  const uint64_t most = memtable.data_bytes() / std::max<uint64_t>(kMinRangeBytes, 2 * record);
  return std::clamp<uint64_t>(most, 1, static_cast<uint64_t>(std::max(1, threads)));
}

uint64_t FlushedTableBytes(const MemTable& memtable, uint64_t ranges, uint64_t largest_value,
                           uint64_t chunk_size) {
  // Ranges of chance need some more than their part.
  const auto share = [ranges](uint64_t whole) {
    return ranges == 1 ? whole : whole / ranges + whole / ranges / 8 + 1;
  };
  const uint64_t entries = memtable.entries();
  const uint64_t data_bytes = memtable.data_bytes();
  const uint64_t key_bytes = memtable.largest_key();
  return std::max(TableBuilder::SizeBound(share(entries), share(data_bytes),
                                          2 * data_bytes / entries + 64, chunk_size, key_bytes) +
                      2 * chunk_size,
                  OneRecordTableBytes(memtable, largest_value, chunk_size));
}

uint64_t LeastFlushedTableBytes(const MemTable& memtable, uint64_t largest_value,
                                uint64_t chunk_size) {
  constexpr uint64_t kLeast = 64 << 10;  // Smaller ones are mostly heads and footers.
  return std::max(kLeast, OneRecordTableBytes(memtable, largest_value, chunk_size));
}

void TakeFlushedTables(DatabaseContext* context, const ColumnFamily& family,
                       std::vector<TableMeta> tables, const std::vector<Placement>& reserved,
                       FlushedRange* result) {
  Status& status = result->status;
  if (!status.ok()) context->space.EndAbandonedWrites();
  // Outputs come in order; what was reserved for a table that was not finished goes back.
  for (size_t i = tables.size(); i < reserved.size(); ++i) context->space.Free(reserved[i]);
  for (TableMeta& meta : tables) {
    context->space.Trim(&meta.placement, meta.size);
    std::shared_ptr<TableHandle> handle;
    if (status.ok()) {
      status = CatchAll([&] {
        NACRE_RETURN_IF_ERROR(context->OpenTable(family.user_comparator(), meta, &handle));
        result->tables.push_back(std::move(handle));
        return Status::OK();
      });
    }
    if (!status.ok()) {
      context->space.Free(meta.placement);
    }
  }
}

}  // namespace nacre
