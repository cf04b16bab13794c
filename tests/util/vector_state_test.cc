// Goal: checksums and coding leave no upper halves of vector registers in use, which would slow
// down all SSE code of the process. Method: the processor tells which parts of its state are in
// use.

#include "util/codes/vector_state.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "util/codes/crc32c.h"
#include "util/codes/gf_matrix.h"

#if defined(__x86_64__)

#include <cpuid.h>

namespace nacre {
namespace {

/// Upper halves of ymm0 to ymm15, and of zmm0 to zmm15.
constexpr uint32_t kUpperHalves = 1U << 2 | 1U << 6;

bool TellsWhatIsInUse() {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
  return __get_cpuid_count(0xd, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & 1U << 2) != 0;
}

/// Requires TellsWhatIsInUse.
inline uint32_t InUse() {
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return low & kUpperHalves;
}

TEST(VectorStateTest, ChecksumsAndCodingLeaveNoUpperHalvesInUse) {
  if (!TellsWhatIsInUse()) GTEST_SKIP() << "the processor does not tell";
  asm volatile("vpcmpeqd %%ymm7, %%ymm7, %%ymm7" : : : "xmm7");
  EXPECT_NE(0U, InUse()) << "or this proves nothing";
  ClearUpperVectors();
  EXPECT_EQ(0U, InUse());
  for (const size_t size : {1, 20, 64, 200, 1000, 100'000}) {
    const std::string bytes(size, 'x');
    const uint32_t crc = Crc32c(bytes.data(), bytes.size());
    EXPECT_EQ(0U, InUse()) << size << " bytes with checksum " << crc;
  }
  const GfMatrix matrix(2, 2, {1, 2, 3, 4});
  for (const size_t size : {1, 64, 1000, 100'000}) {
    const std::vector<std::string> sources(2, std::string(size, 'y'));
    std::vector<std::string> results(2, std::string(size, 'z'));
    const char* const from[] = {sources[0].data(), sources[1].data()};
    char* const to[] = {results[0].data(), results[1].data()};
    matrix.Combine(size, from, to);
    EXPECT_EQ(0U, InUse()) << size;
    matrix.Accumulate(0, /*first=*/true, size, from[0], to);
    EXPECT_EQ(0U, InUse()) << size;
    matrix.Accumulate(1, /*first=*/false, size, from[1], to);
    EXPECT_EQ(0U, InUse()) << size;
  }
}

}  // namespace
}  // namespace nacre

#endif
