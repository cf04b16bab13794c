#include "util/mutex.h"

namespace nacre {

void Mutex::LockIn(Simulation* simulation) {
  simulation->Yield();
  while (!mutex_.try_lock()) simulation->Park(this, Simulation::kForever, "a mutex");
}

bool CondVar::WaitIn(Simulation* simulation, std::chrono::nanoseconds timeout) {
  // No other thread runs between these two, so no signal is missed.
  mutex_->mutex_.unlock();
  simulation->Unpark(mutex_, /*all=*/false);
  const bool signalled = simulation->Park(this, timeout, "a signal");
  mutex_->LockIn(simulation);
  return signalled;
}

}  // namespace nacre
