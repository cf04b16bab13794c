#include "util/exceptions.h"

#include <exception>
#include <new>
#include <string>

namespace nacre {

namespace {

Status Describe() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Status::Aborted("out of memory");
  } catch (const std::exception& exception) {
    return Status::Aborted(std::string("an exception was thrown: ") + exception.what());
  } catch (...) {
    return Status::Aborted("an exception was thrown that is no std::exception");
  }
}

}  // namespace

Status StatusOfException() noexcept {
  try {
    return Describe();
  } catch (...) {
    return Status::Aborted({});  // There is no memory for words either.
  }
}

}  // namespace nacre
