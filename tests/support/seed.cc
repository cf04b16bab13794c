#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace nacre {

uint64_t TestSeed(uint64_t default_seed) {
  uint64_t seed = default_seed;
  if (const char* text = std::getenv("NACRE_TEST_SEED"); text != nullptr) {
    const std::string_view view(text);
    const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), seed);
    if (error != std::errc() || end != view.data() + view.size()) {
      ADD_FAILURE() << "NACRE_TEST_SEED is no number: " << view;
    }
  }
  std::printf("NACRE_TEST_SEED=%" PRIu64 "\n", seed);
  return seed;
}

}  // namespace nacre
