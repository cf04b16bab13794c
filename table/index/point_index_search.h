#pragma once

#include <cstdint>

#if defined(__AVX2__) && defined(__BMI2__)
#include <immintrin.h>
#endif

#include "util/coding.h"

namespace nacre {

// The comparison inside a point-index bucket: which of its 12 fingerprints are the one asked for.
// Both functions answer a mask with bit i for slot i and read only the bucket's first 32 bytes.

inline constexpr uint32_t kFingerprintMask = 0xfff;

inline uint32_t MatchFingerprintsScalar(const char* bucket, uint32_t fingerprint) {
  uint32_t matches = 0;
  for (uint32_t i = 0; i < 12; ++i) {
    const uint32_t slot = DecodeFixed16(bucket + 2 * i);
    matches |= static_cast<uint32_t>((slot & kFingerprintMask) == fingerprint) << i;
  }
  return matches;
}

#if defined(__AVX2__) && defined(__BMI2__)
inline uint32_t MatchFingerprintsSimd(const char* bucket, uint32_t fingerprint) {
  const __m256i slots = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bucket));
  const __m256i masked = _mm256_and_si256(slots, _mm256_set1_epi16(kFingerprintMask));
  const __m256i equal =
      _mm256_cmpeq_epi16(masked, _mm256_set1_epi16(static_cast<int16_t>(fingerprint)));
  // Two mask bits a slot; lanes 12 to 15 are record addresses.
  return _pext_u32(static_cast<uint32_t>(_mm256_movemask_epi8(equal)), 0x00555555);
}
#endif

inline uint32_t MatchFingerprints(const char* bucket, uint32_t fingerprint) {
#if defined(__AVX2__) && defined(__BMI2__)
  return MatchFingerprintsSimd(bucket, fingerprint);
#else
  return MatchFingerprintsScalar(bucket, fingerprint);
#endif
}

}  // namespace nacre
