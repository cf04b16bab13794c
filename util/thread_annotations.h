#pragma once

// Clang's -Wthread-safety attributes; nothing under other compilers.
#if defined(__clang__)
#define NACRE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define NACRE_THREAD_ATTRIBUTE(x)
#endif

#define CAPABILITY(x) NACRE_THREAD_ATTRIBUTE(capability(x))
#define SCOPED_CAPABILITY NACRE_THREAD_ATTRIBUTE(scoped_lockable)
#define GUARDED_BY(x) NACRE_THREAD_ATTRIBUTE(guarded_by(x))
#define PT_GUARDED_BY(x) NACRE_THREAD_ATTRIBUTE(pt_guarded_by(x))
#define ACQUIRED_BEFORE(...) NACRE_THREAD_ATTRIBUTE(acquired_before(__VA_ARGS__))
#define ACQUIRED_AFTER(...) NACRE_THREAD_ATTRIBUTE(acquired_after(__VA_ARGS__))
#define REQUIRES(...) NACRE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) NACRE_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) NACRE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) NACRE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) NACRE_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define ASSERT_CAPABILITY(x) NACRE_THREAD_ATTRIBUTE(assert_capability(x))
#define RETURN_CAPABILITY(x) NACRE_THREAD_ATTRIBUTE(lock_returned(x))
#define NO_THREAD_SAFETY_ANALYSIS NACRE_THREAD_ATTRIBUTE(no_thread_safety_analysis)
