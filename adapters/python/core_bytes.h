#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>

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

/// None: nothing.
inline std::optional<std::string> CopyOf(const pybind11::object& key) {
  if (key.is_none()) return std::nullopt;
  return std::string(ByteView(key).slice().ToStringView());
}

/// Names in messages may be any bytes; those that are no text are as in Python's names of files.
inline pybind11::object ToText(const Slice& text) {
  PyObject* const decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (decoded == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(decoded);
}

inline pybind11::bytes ToBytes(const Slice& slice) {
  return pybind11::bytes(slice.data(), slice.size());
}

}  // namespace nacre::python
