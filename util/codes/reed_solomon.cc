#include "util/codes/reed_solomon.h"

#include <isa-l/erasure_code.h>

#include <array>
#include <bit>
#include <cassert>

namespace nacre {

const ReedSolomon& ReedSolomon::Get(int data, int parity) {
  assert(data >= 1 && data <= kMaxData && parity >= 0 && parity <= kMaxParity);
  struct Codes {
    Mutex mutex;
    std::map<std::pair<int, int>, std::unique_ptr<const ReedSolomon>> codes GUARDED_BY(mutex);
  };
  static Codes* const process = new Codes;  // Threads may code until the very end.
  MutexLock lock(&process->mutex);
  std::unique_ptr<const ReedSolomon>& code = process->codes[{data, parity}];
  if (code == nullptr) code = std::make_unique<const ReedSolomon>(data, parity);
  return *code;
}

ReedSolomon::ReedSolomon(int data, int parity)
    : data_(data), parity_(parity), generator_(static_cast<size_t>((data + parity) * data)) {
  gf_gen_cauchy1_matrix(generator_.data(), data + parity, data);
  const auto first_parity = generator_.begin() + static_cast<ptrdiff_t>(data) * data;
  if (parity == 1) std::fill(first_parity, generator_.end(), uint8_t{1});
  if (parity > 0) {
    encoder_ = std::make_unique<const GfMatrix>(
        data, parity, std::vector<uint8_t>(first_parity, generator_.end()));
  }
}

ReedSolomon::~ReedSolomon() = default;

const GfMatrix& ReedSolomon::Decoder(FragmentSet sources, FragmentSet wanted) const {
  assert(std::popcount(sources) == data_ && wanted != 0);
  assert((sources | wanted) >> fragments() == 0);
  MutexLock lock(&mutex_);
  std::unique_ptr<const GfMatrix>& decoder = decoders_[{sources, wanted}];
  if (decoder == nullptr) {
    decoder = std::make_unique<const GfMatrix>(data_, std::popcount(wanted),
                                               Coefficients(sources, wanted));
  }
  return *decoder;
}

std::vector<uint8_t> ReedSolomon::Coefficients(FragmentSet sources, FragmentSet wanted) const {
  const auto k = static_cast<size_t>(data_);
  // Sources = rows * data, so data = rows^-1 * sources.
  std::vector<uint8_t> rows;
  for (size_t i = 0; i < static_cast<size_t>(fragments()); ++i) {
    if ((sources >> i & 1) == 0) continue;
    const auto row = generator_.begin() + static_cast<ptrdiff_t>(i * k);
    rows.insert(rows.end(), row, row + static_cast<ptrdiff_t>(k));
  }
  std::vector<uint8_t> inverse(k * k);
  [[maybe_unused]] const int singular =
      gf_invert_matrix(rows.data(), inverse.data(), static_cast<int>(k));
  assert(singular == 0);  // Any k rows of such a generator are independent.

  std::vector<uint8_t> coefficients;
  for (size_t i = 0; i < static_cast<size_t>(fragments()); ++i) {
    if ((wanted >> i & 1) == 0) continue;
    for (size_t column = 0; column < k; ++column) {
      uint8_t sum = 0;
      for (size_t j = 0; j < k; ++j) {
        sum ^= gf_mul(generator_[i * k + j], inverse[j * k + column]);
      }
      coefficients.push_back(sum);
    }
  }
  return coefficients;
}

}  // namespace nacre
