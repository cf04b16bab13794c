// Range index: any section either is refused or sends every seek to an interval of the records.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "table/index/range_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nacre;  // NOLINT(google-build-using-namespace): a fuzzer has no other scope.
  if (size < 2) return 0;
  const InternalKeyComparator comparator((data[0] & 1) != 0 ? BytewiseComparator()
                                                            : ReverseBytewiseComparator());
  const uint32_t alignment_shift = data[0] >> 1 & 7;
  constexpr uint64_t kRecordsBytes = 5000;
  RangeIndex index;
  const Slice section(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!index.Parse(section, comparator, alignment_shift, kRecordsBytes)) return 0;
  for (size_t i = 0; i < section.size(); ++i) {
    const Slice key(section.data() + i, (section.size() - i) % 20);
    const RecordInterval interval = index.Seek(key, i);
    if (interval.begin >= interval.end || interval.end > kRecordsBytes) std::abort();
  }
  for (uint64_t offset = 0; offset < kRecordsBytes; offset += 7) {
    const RecordInterval interval = index.Containing(offset);
    if (interval.begin > offset || interval.end <= offset || interval.end > kRecordsBytes) {
      std::abort();
    }
  }
  return 0;
}
