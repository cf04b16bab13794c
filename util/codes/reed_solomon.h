#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "util/codes/gf_matrix.h"
#include "util/mutex.h"

namespace nacre {

/// A set of fragments, by number: bit i is fragment i.
using FragmentSet = uint32_t;

/// The systematic Reed-Solomon code rs(k, m): fragments 0 to k-1 hold data, fragments k to k+m-1
/// parity, and any k of them give the rest. Cauchy coefficients; with m = 1 they are all one, so
/// that coding is XOR. Matrices that decode are made once for each pattern of loss and kept.
///
/// Thread safety: all methods may be called from many threads at once.
class ReedSolomon {
 public:
  static constexpr int kMaxData = 16;
  static constexpr int kMaxParity = 4;

  /// The one of this process; lives for good. 1 <= data <= kMaxData, 0 <= parity <= kMaxParity.
  static const ReedSolomon& Get(int data, int parity);

  int data() const { return data_; }
  int parity() const { return parity_; }
  int fragments() const { return data_ + parity_; }

  /// Computes the m parity fragments from the k data fragments. Must not be called if there is no
  /// parity.
  const GfMatrix& encoder() const { return *encoder_; }

  /// Computes the fragments `wanted`, at least one, from the fragments `sources`, exactly k, each
  /// in the order of their numbers.
  const GfMatrix& Decoder(FragmentSet sources, FragmentSet wanted) const EXCLUDES(mutex_);

  ReedSolomon(int data, int parity);
  ~ReedSolomon();
  ReedSolomon(const ReedSolomon&) = delete;
  ReedSolomon& operator=(const ReedSolomon&) = delete;

 private:
  std::vector<uint8_t> Coefficients(FragmentSet sources, FragmentSet wanted) const;

  const int data_;
  const int parity_;
  std::vector<uint8_t> generator_;  ///< k+m rows of k coefficients: fragments by data fragments.
  std::unique_ptr<const GfMatrix> encoder_;
  mutable Mutex mutex_;
  mutable std::map<std::pair<FragmentSet, FragmentSet>, std::unique_ptr<const GfMatrix>> decoders_
      GUARDED_BY(mutex_);
};

}  // namespace nacre
