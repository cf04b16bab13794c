#pragma once

#include <atomic>
#include <vector>

namespace nacre {

/// A place in the code that tests want to reach: between two steps of which a crash may leave the
/// first without the second. Placed by NACRE_POINT, once for each name, and there before main
/// begins: so those that are never reached are known as well. (After the failure points of
/// Seastar's alloc_failure_injector, with names, as numbers alone do not tell what was missed.)
struct NamedPoint {
  const char* name;  ///< "flush.tables-written"
  const char* file;
  int line;
};

/// Called by each thread that reaches a point, with whatever locks it holds there: it may end the
/// process, or count, or wait for another process; it must not call into the database.
using PointHandler = void(const NamedPoint& point);

/// All points that are linked into this program, by name.
std::vector<const NamedPoint*> AllPoints();

/// Sets the handler to be called at each point; null for none. It is for tests, one at a time. A
/// thread may still be calling the previous handler.
void SetPointHandler(PointHandler* handler);

/// Null but in tests; nothing else in the program depends on it.
extern constinit std::atomic<PointHandler*> point_handler;
/// Calls the handler, if there is one.
void ReachPoint(const NamedPoint& point);

}  // namespace nacre

/// Names this place. It costs a relaxed load and a branch that is always predicted; it still is not
/// for paths that each record takes, nor for templates or inline functions, which have several
/// places.
#define NACRE_POINT(point_name)                                                            \
  do {                                                                                     \
    static constexpr ::nacre::NamedPoint nacre_point{point_name, __FILE__, __LINE__};      \
    /* The linker makes an array of what lies in this section. */                          \
    [[gnu::section("nacre_points"),                                                        \
      gnu::used]] static constexpr const ::nacre::NamedPoint* nacre_listed = &nacre_point; \
    if (::nacre::point_handler.load(std::memory_order_relaxed) != nullptr) [[unlikely]] {  \
      ::nacre::ReachPoint(nacre_point);                                                    \
    }                                                                                      \
  } while (false)
