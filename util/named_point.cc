#include "util/named_point.h"

#include <algorithm>
#include <string_view>

namespace nacre {

// The linker's: where the section begins and ends. Weak, since there is none without points.
extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] extern const NamedPoint* const __start_nacre_points[];
[[gnu::weak, gnu::visibility("hidden")]] extern const NamedPoint* const __stop_nacre_points[];
}

constinit std::atomic<PointHandler*> point_handler{nullptr};

std::vector<const NamedPoint*> AllPoints() {
  std::vector<const NamedPoint*> points(__start_nacre_points, __stop_nacre_points);
  std::sort(points.begin(), points.end(), [](const NamedPoint* a, const NamedPoint* b) {
    return std::string_view(a->name) < std::string_view(b->name);
  });
  return points;
}

void SetPointHandler(PointHandler* handler) {
  point_handler.store(handler, std::memory_order_release);
}

void ReachPoint(const NamedPoint& point) {
  // Pairs with SetPointHandler.
  PointHandler* const handler = point_handler.load(std::memory_order_acquire);
  if (handler != nullptr) handler(point);
}

}  // namespace nacre
