// The code against arithmetic written out here, byte by byte, and every loss against the data.

#include "util/codes/reed_solomon.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/seed.h"
#include "tests/support/table/guarded_bytes.h"
#include "util/random.h"

namespace nacre {

namespace {

/// Product in GF(2^8) by the polynomial x^8 + x^4 + x^3 + x^2 + 1.
uint8_t Multiply(uint8_t a, uint8_t b) {
  uint8_t product = 0;
  for (; b != 0; b >>= 1) {
    if ((b & 1) != 0) product ^= a;
    a = static_cast<uint8_t>(a << 1 ^ ((a & 0x80) != 0 ? 0x1d : 0));
  }
  return product;
}

std::string RandomBytes(Random* random, size_t n) {
  std::string bytes(n, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random->Next());
  return bytes;
}

/// Data and parity fragments of `n` bytes.
std::vector<std::string> Encode(const ReedSolomon& code, Random* random, size_t n) {
  std::vector<std::string> fragments;
  for (int i = 0; i < code.data(); ++i) fragments.push_back(RandomBytes(random, n));
  for (int i = 0; i < code.parity(); ++i) fragments.push_back(RandomBytes(random, n));
  std::vector<const char*> from;
  std::vector<char*> to;
  for (int i = 0; i < code.fragments(); ++i) {
    std::string& fragment = fragments[static_cast<size_t>(i)];
    i < code.data() ? from.push_back(fragment.data()) : to.push_back(fragment.data());
  }
  if (code.parity() > 0) code.encoder().Combine(n, from.data(), to.data());
  return fragments;
}

std::vector<std::string> Decode(const ReedSolomon& code, const std::vector<std::string>& fragments,
                                FragmentSet sources, FragmentSet wanted) {
  const size_t n = fragments[0].size();
  std::vector<const char*> from;
  std::vector<std::string> results(static_cast<size_t>(std::popcount(wanted)), std::string(n, '#'));
  std::vector<char*> to;
  for (size_t i = 0; i < fragments.size(); ++i) {
    if ((sources >> i & 1) != 0) from.push_back(fragments[i].data());
  }
  for (std::string& result : results) to.push_back(result.data());
  code.Decoder(sources, wanted).Combine(n, from.data(), to.data());
  return results;
}

using Parameters = std::tuple<int, int>;

class ReedSolomonTest : public testing::TestWithParam<Parameters> {
 protected:
  const ReedSolomon& code_ = ReedSolomon::Get(std::get<0>(GetParam()), std::get<1>(GetParam()));
  Random random_{TestSeed(301)};
};

TEST_P(ReedSolomonTest, AnyKFragmentsGiveEachOther) {
  for (const size_t n : {1, 17, 64, 300}) {
    const std::vector<std::string> fragments = Encode(code_, &random_, n);
    for (FragmentSet sources = 0; sources < FragmentSet{1} << code_.fragments(); ++sources) {
      if (std::popcount(sources) != code_.data()) continue;
      const FragmentSet lost = ~sources & ((FragmentSet{1} << code_.fragments()) - 1);
      if (lost == 0) continue;
      const std::vector<std::string> decoded = Decode(code_, fragments, sources, lost);
      size_t next = 0;
      for (size_t i = 0; i < fragments.size(); ++i) {
        if ((lost >> i & 1) != 0) {
          ASSERT_EQ(decoded[next++], fragments[i]) << "fragment " << i << " of " << n << " bytes";
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codes, ReedSolomonTest,
                         testing::Values(Parameters{1, 1}, Parameters{2, 1}, Parameters{4, 2},
                                         Parameters{6, 3}, Parameters{3, 4}, Parameters{16, 1},
                                         Parameters{12, 4}),
                         [](const auto& code) {
                           return "rs_" + std::to_string(std::get<0>(code.param)) + "_" +
                                  std::to_string(std::get<1>(code.param));
                         });

TEST(GfMatrixTest, KernelsAgreeWithArithmeticAtAllSizesAndPlaces) {
  Random random(TestSeed(301));
  for (int round = 0; round < 400; ++round) {
    const int sources = 1 + static_cast<int>(random.Uniform(16));
    const int results = 1 + static_cast<int>(random.Uniform(4));
    const size_t n = round < 200 ? static_cast<size_t>(round) : 200 + random.Uniform(5000);
    const size_t shift = random.Uniform(64);
    std::vector<uint8_t> coefficients;
    const bool ones = random.Uniform(4) == 0;
    for (int i = 0; i < sources * results; ++i) {
      coefficients.push_back(ones ? 1 : static_cast<uint8_t>(random.Next()));
    }
    std::vector<std::string> data;
    std::vector<const char*> from;
    for (int i = 0; i < sources; ++i) data.push_back(RandomBytes(&random, shift + n));
    const int absent = random.Uniform(2) == 0 ? -1 : static_cast<int>(random.Uniform(16));
    for (int i = 0; i < sources; ++i) {
      from.push_back(i == absent ? nullptr : data[static_cast<size_t>(i)].data() + shift);
    }
    // A byte on each side must stay.
    std::vector<std::string> got(static_cast<size_t>(results), std::string(shift + n + 2, '#'));
    std::vector<char*> to;
    for (std::string& result : got) to.push_back(result.data() + shift + 1);
    GfMatrix(sources, results, coefficients).Combine(n, from.data(), to.data());

    for (int r = 0; r < results; ++r) {
      std::string expected(shift + n + 2, '#');
      for (size_t at = 0; at < n; ++at) {
        uint8_t sum = 0;
        for (int s = 0; s < sources; ++s) {
          const char* source = from[static_cast<size_t>(s)];
          if (source == nullptr) continue;
          sum ^= Multiply(coefficients[static_cast<size_t>(r * sources + s)],
                          static_cast<uint8_t>(source[at]));
        }
        expected[shift + 1 + at] = static_cast<char>(sum);
      }
      ASSERT_EQ(got[static_cast<size_t>(r)], expected)
          << sources << " sources, result " << r << " of " << n << " bytes at " << shift;
    }
  }
}

TEST(GfMatrixTest, StaysWithinItsPages) {
  // Sources and results end where the mapped memory ends.
  Random random(TestSeed(301));
  const ReedSolomon& code = ReedSolomon::Get(4, 2);
  for (const size_t n : {1, 5, 31, 32, 33, 63, 65, 127, 200, 1023, 4096}) {
    std::vector<GuardedBytes> memory(6);
    std::vector<const char*> from;
    std::vector<char*> to;
    for (size_t i = 0; i < 6; ++i) {
      char* const bytes = memory[i].EndingAtGuard(n);
      const std::string content = RandomBytes(&random, n);
      std::memcpy(bytes, content.data(), n);
      i < 4 ? from.push_back(bytes) : to.push_back(bytes);
    }
    code.encoder().Combine(n, from.data(), to.data());
    std::vector<std::string> fragments;
    for (size_t i = 0; i < 4; ++i) fragments.emplace_back(from[i], n);
    for (char* parity : to) fragments.emplace_back(parity, n);
    for (int i = 0; i < 4; ++i)
      code.encoder().Accumulate(i, i == 0, n, from[static_cast<size_t>(i)], to.data());
    EXPECT_EQ(std::string(to[0], n), fragments[4]);
    EXPECT_EQ(std::string(to[1], n), fragments[5]);
  }
}

}  // namespace

}  // namespace nacre
