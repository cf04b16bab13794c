#pragma once

/// 1 where ThreadSanitizer is compiled in, else 0.
#if defined(__SANITIZE_THREAD__)
#define NACRE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NACRE_TSAN 1
#endif
#endif
#if !defined(NACRE_TSAN)
#define NACRE_TSAN 0
#endif

namespace nacre {

inline constexpr bool kThreadSanitizer = NACRE_TSAN != 0;

}  // namespace nacre
