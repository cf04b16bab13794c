#include "sqlite/memory_bound.h"

namespace nacre::sqlite {
namespace {

/// The MemTables are looked at after this part of the bound was written.
constexpr uint64_t kLooks = 16;
/// Overhead of a MemTable entry, beside key and value.
constexpr uint64_t kEntryBytes = 48;

}  // namespace

Status MemoryBound::Wrote(DB* db, const FamilySet& families, uint64_t entries, uint64_t bytes) {
  const uint64_t all_entries = entries_.fetch_add(entries, std::memory_order_relaxed) + entries;
  const uint64_t all_bytes = bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  uint64_t looked_at = looked_at_.load(std::memory_order_relaxed);
  if (all_bytes - looked_at < bytes_max_ / kLooks) return Status::OK();
  // One of those that come at once looks.
  if (!looked_at_.compare_exchange_strong(looked_at, all_bytes, std::memory_order_relaxed)) {
    return Status::OK();
  }
  uint64_t held = 0;
  for (const auto& [space, family] : families) {
    uint64_t of_family = 0;
    db->GetIntProperty(family->handle(), "nacre.num-entries-active-mem-table", &of_family);
    held += of_family;
  }
  if (held * (kEntryBytes + all_bytes / all_entries) < bytes_max_) return Status::OK();
  FlushOptions options;
  options.wait = false;
  return db->Flush(options);
}

}  // namespace nacre::sqlite
