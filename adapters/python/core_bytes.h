#pragma once

#include <pybind11/pybind11.h>

#include "nacre/slice.h"

namespace nacre::python {

/// The bytes of a Python object that has some (bytes, bytearray, memoryview), which keeps them
/// where they are while this lives. Throws TypeError for other objects, for str too. Made and
/// destroyed with the interpreter's lock; read without it, too.
class ByteView {
 public:
  explicit ByteView(const pybind11::handle& object) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_SIMPLE) != 0) {
      throw pybind11::error_already_set();
    }
  }
  ~ByteView() {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
  }
  ByteView(ByteView&& other) noexcept : buffer_(other.buffer_) { other.buffer_.obj = nullptr; }
  ByteView& operator=(ByteView&&) = delete;
  ByteView(const ByteView&) = delete;
  ByteView& operator=(const ByteView&) = delete;

  Slice slice() const {
    return {static_cast<const char*>(buffer_.buf), static_cast<size_t>(buffer_.len)};
  }

 private:
  Py_buffer buffer_{};
};

inline pybind11::bytes ToBytes(const Slice& slice) {
  return pybind11::bytes(slice.data(), slice.size());
}

}  // namespace nacre::python
