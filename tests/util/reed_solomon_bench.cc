// What encoding costs: ISA-L's kernel alone over data out of memory, and our way to it.

#include <benchmark/benchmark.h>
#include <isa-l/erasure_code.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "util/codes/reed_solomon.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr size_t kChunkBytes = 256 << 10;
constexpr size_t kRows = 64;  ///< Far more than caches hold.
constexpr int kData = 4;
constexpr int kParity = 2;

const std::vector<char>& DataBytes() {
  static const std::vector<char> bytes = [] {
    std::vector<char> made(kRows * kData * kChunkBytes);
    Random random(1);
    for (char& byte : made) byte = static_cast<char>(random.Next());
    return made;
  }();
  return bytes;
}

/// A chunk after the other is added to the parity of its row, as a flush has it.
template <typename Add>
void EncodeRows(benchmark::State& state, const Add& add) {
  const std::vector<char>& bytes = DataBytes();
  std::vector<char> parity(kParity * kChunkBytes);
  const std::array<char*, kParity> to{parity.data(), parity.data() + kChunkBytes};
  size_t chunk = 0;
  for (auto _ : state) {
    const auto column = static_cast<int>(chunk % kData);
    add(column, bytes.data() + chunk % (kRows * kData) * kChunkBytes, to.data());
    benchmark::ClobberMemory();
    ++chunk;
  }
  state.SetBytesProcessed(static_cast<int64_t>(chunk * kChunkBytes));
}

void BM_IsalEncodeUpdate(benchmark::State& state) {
  std::array<uint8_t, (kData + kParity) * kData> matrix{};
  std::array<uint8_t, 32 * kData * kParity> tables{};
  gf_gen_cauchy1_matrix(matrix.data(), kData + kParity, kData);
  ec_init_tables(kData, kParity, matrix.data() + kData * kData, tables.data());
  EncodeRows(state, [&](int column, const char* chunk, char* const* parity) {
    // The interface of ISA-L knows bytes as unsigned, and no constness.
    auto* const from = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(chunk));
    std::array<unsigned char*, kParity> to{reinterpret_cast<unsigned char*>(parity[0]),
                                           reinterpret_cast<unsigned char*>(parity[1])};
    if (column == 0) {
      for (unsigned char* row : to) std::fill_n(row, kChunkBytes, 0);
    }
    ec_encode_data_update(static_cast<int>(kChunkBytes), kData, kParity, column, tables.data(),
                          from, to.data());
  });
}
BENCHMARK(BM_IsalEncodeUpdate);

/// From memory to memory, far more than the caches hold.
void BM_MemoryCopy(benchmark::State& state) {
  constexpr size_t kBytes = 256 << 20;
  const std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes, 2);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), kBytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kBytes));
}
BENCHMARK(BM_MemoryCopy);

void BM_Accumulate(benchmark::State& state) {
  const GfMatrix& encoder = ReedSolomon::Get(kData, kParity).encoder();
  EncodeRows(state, [&](int column, const char* chunk, char* const* parity) {
    encoder.Accumulate(column, column == 0, kChunkBytes, chunk, parity);
  });
}
BENCHMARK(BM_Accumulate);

}  // namespace
}  // namespace nacre
