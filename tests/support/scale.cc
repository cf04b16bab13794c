#include "tests/support/scale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace nacre {

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr double kBuildScale = 0.1;
#elif defined(__SANITIZE_ADDRESS__)
constexpr double kBuildScale = 0.25;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr double kBuildScale = 0.1;
#elif __has_feature(address_sanitizer)
constexpr double kBuildScale = 0.25;
#else
constexpr double kBuildScale = 1;
#endif
#else
constexpr double kBuildScale = 1;
#endif

double EnvironmentScale() {
  const char* text = std::getenv("NACRE_TEST_SCALE");
  if (text == nullptr) return 1;
  char* end = nullptr;
  const double scale = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(scale > 0)) {
    ADD_FAILURE() << "NACRE_TEST_SCALE is no positive number: " << text;
    return 1;
  }
  return scale;
}

}  // namespace

size_t Scaled(size_t rounds) {
  static const double scale = kBuildScale * EnvironmentScale();
  return std::max<size_t>(1, static_cast<size_t>(static_cast<double>(rounds) * scale));
}

}  // namespace nacre
