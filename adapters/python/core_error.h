#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <string>
#include <utility>

#include "nacre/status.h"

// Failures on their way to Python. pybind11 carries them as exceptions, so these sources throw
// where the rest of the tree returns a Status; nothing is thrown through Nacre.

namespace nacre::python {

/// A failure that `nacre.errors.make(code, message)` makes an exception of.
class StatusFailure : public std::exception {
 public:
  explicit StatusFailure(const Status& status)
      : code_(static_cast<int>(status.code())), message_(status.message()) {}
  StatusFailure(int code, std::string message) : code_(code), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  int code() const { return code_; }

 private:
  int code_;
  std::string message_;
};

/// Codes of what Nacre has no status for; as in nacre/errors.py.
inline constexpr int kClosed = -1;

/// Throws if `status` is a failure. Needs no interpreter lock.
inline void Check(const Status& status) {
  if (!status.ok()) throw StatusFailure(status);
}

/// Has pybind11 turn StatusFailure into the exceptions of nacre.errors.
void RegisterErrors();

}  // namespace nacre::python
