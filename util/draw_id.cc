#include "util/draw_id.h"

#include <sys/random.h>

#include "util/simulation.h"

namespace nacre {

Status DrawId(uint64_t* id) {
  do {
    if (Simulation* simulation = Simulation::Current()) {
      *id = simulation->Random();
    } else if (::getrandom(id, sizeof(*id), 0) != static_cast<ssize_t>(sizeof(*id))) {
      return Status::IOError("the system gives no random numbers");
    }
  } while (*id == 0);
  return Status::OK();
}

}  // namespace nacre
