#include "nacre/perf_context.h"

#include <iterator>
#include <utility>

#include "util/clock.h"
#include "util/perf_step.h"

namespace nacre {

namespace perf_internal {

constinit thread_local PerfLevel level = kDisable;
constinit thread_local PerfContext context;

uint64_t NowNanos() { return Clock::System()->NowNanos(); }

}  // namespace perf_internal

namespace {

constexpr std::pair<const char*, uint64_t PerfContext::*> kFields[] = {
    {"internal_key_skipped_count", &PerfContext::internal_key_skipped_count},
    {"internal_delete_skipped_count", &PerfContext::internal_delete_skipped_count},
    {"get_from_memtable_count", &PerfContext::get_from_memtable_count},
    {"get_from_memtable_time", &PerfContext::get_from_memtable_time},
    {"get_from_output_files_time", &PerfContext::get_from_output_files_time},
    {"get_read_bytes", &PerfContext::get_read_bytes},
    {"multiget_read_bytes", &PerfContext::multiget_read_bytes},
    {"iter_read_bytes", &PerfContext::iter_read_bytes},
    {"seek_internal_seek_time", &PerfContext::seek_internal_seek_time},
    {"find_next_user_entry_time", &PerfContext::find_next_user_entry_time},
    {"write_wal_time", &PerfContext::write_wal_time},
    {"write_memtable_time", &PerfContext::write_memtable_time},
    {"write_delay_time", &PerfContext::write_delay_time},
    {"write_thread_wait_nanos", &PerfContext::write_thread_wait_nanos},
    {"remote_read_count", &PerfContext::remote_read_count},
    {"remote_read_bytes", &PerfContext::remote_read_bytes},
    {"remote_read_wait_nanos", &PerfContext::remote_read_wait_nanos},
};
// Each field has its name.
static_assert(sizeof(PerfContext) == sizeof(uint64_t) * std::size(kFields));

}  // namespace

void SetPerfLevel(PerfLevel level) {
  if (level > kUninitialized && level < kOutOfBounds) perf_internal::level = level;
}

PerfLevel GetPerfLevel() { return perf_internal::level; }

PerfContext* get_perf_context() { return &perf_internal::context; }

void PerfContext::Reset() { *this = PerfContext(); }

std::string PerfContext::ToString(bool exclude_zero_counters) const {
  std::string text;
  for (const auto& [name, field] : kFields) {
    if (exclude_zero_counters && this->*field == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::string(name) + " = " + std::to_string(this->*field);
  }
  return text;
}

}  // namespace nacre
