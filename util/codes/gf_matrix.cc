#include "util/codes/gf_matrix.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "util/codes/vector_state.h"

namespace nacre {

namespace {

constexpr size_t kMaxSources = 32;
/// ISA-L counts in int.
constexpr size_t kMaxBytesAtOnce = size_t{1} << 30;

using Word = uint64_t __attribute__((vector_size(32), aligned(1), may_alias));

/// to ^= from.
void Xor(size_t n, const char* from, char* to) {
  size_t i = 0;
  for (; i + 2 * sizeof(Word) <= n; i += 2 * sizeof(Word)) {
    auto* const target = reinterpret_cast<Word*>(to + i);
    const auto* const source = reinterpret_cast<const Word*>(from + i);
    target[0] ^= source[0];
    target[1] ^= source[1];
  }
  for (; i < n; ++i) to[i] = static_cast<char>(to[i] ^ from[i]);
}

/// ISA-L takes pointers to what it does not change, too.
uint8_t* Bytes(const char* bytes) {
  return const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(bytes));
}

}  // namespace

GfMatrix::GfMatrix(int sources, int results, const std::vector<uint8_t>& coefficients)
    : sources_(sources),
      results_(results),
      only_ones_(std::all_of(coefficients.begin(), coefficients.end(),
                             [](uint8_t coefficient) { return coefficient == 1; })),
      tables_(coefficients.size() * kTableBytes),
      source_tables_(coefficients.size() * kTableBytes) {
  assert(sources > 0 && static_cast<size_t>(sources) <= kMaxSources);
  assert(results > 0 && static_cast<size_t>(results) <= kMaxSources);
  assert(coefficients.size() == static_cast<size_t>(sources * results));
  std::vector<uint8_t> copy = coefficients;
  ec_init_tables(sources, results, copy.data(), tables_.data());
  const auto rows = static_cast<size_t>(results);
  const auto columns = static_cast<size_t>(sources);
  std::vector<uint8_t> column(rows);
  for (size_t source = 0; source < columns; ++source) {
    for (size_t result = 0; result < rows; ++result) {
      column[result] = coefficients[result * columns + source];
    }
    ec_init_tables(1, results, column.data(), source_tables_.data() + source * rows * kTableBytes);
  }
}

void GfMatrix::Accumulate(int source, bool first, size_t n, const char* bytes,
                          char* const* results) const {
  assert(source >= 0 && source < sources_);
  if (only_ones_) {
    for (int i = 0; i < results_; ++i) {
      first ? static_cast<void>(std::memcpy(results[i], bytes, n)) : Xor(n, bytes, results[i]);
    }
    return;
  }
  std::array<uint8_t*, kMaxSources> to;
  for (size_t done = 0; done < n; done += kMaxBytesAtOnce) {
    const int length = static_cast<int>(std::min(n - done, kMaxBytesAtOnce));
    for (int i = 0; i < results_; ++i) to[static_cast<size_t>(i)] = Bytes(results[i] + done);
    uint8_t* from = Bytes(bytes + done);
    if (first) {
      const size_t at = static_cast<size_t>(source * results_) * kTableBytes;
      ec_encode_data(length, 1, results_, const_cast<uint8_t*>(source_tables_.data()) + at, &from,
                     to.data());
    } else {
      ec_encode_data_update(length, sources_, results_, source,
                            const_cast<uint8_t*>(tables_.data()), from, to.data());
    }
  }
  ClearUpperVectors();
}

void GfMatrix::Combine(size_t n, const char* const* sources, char* const* results) const {
  const bool complete =
      std::all_of(sources, sources + sources_, [](auto* s) { return s != nullptr; });
  if (complete && !only_ones_ && n <= kMaxBytesAtOnce) {
    std::array<uint8_t*, kMaxSources> from;
    std::array<uint8_t*, kMaxSources> to;
    for (int i = 0; i < sources_; ++i) from[static_cast<size_t>(i)] = Bytes(sources[i]);
    for (int i = 0; i < results_; ++i) to[static_cast<size_t>(i)] = Bytes(results[i]);
    ec_encode_data(static_cast<int>(n), sources_, results_, const_cast<uint8_t*>(tables_.data()),
                   from.data(), to.data());
    ClearUpperVectors();
    return;
  }
  bool first = true;
  for (int i = 0; i < sources_; ++i) {
    if (sources[i] == nullptr) continue;
    Accumulate(i, first, n, sources[i], results);
    first = false;
  }
  for (int i = 0; first && i < results_; ++i) std::memset(results[i], 0, n);
}

}  // namespace nacre
