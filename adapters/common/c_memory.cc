#include "adapters/common/c_memory.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace nacre {
namespace {

char* Allocate(size_t size) {
  auto* memory = static_cast<char*>(std::malloc(size));
  // As everywhere else where memory ends.
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

char* CopyToMalloc(std::string_view bytes) {
  char* copy = Allocate(bytes.empty() ? 1 : bytes.size());
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  return copy;
}

char* CopyToCString(std::string_view text) {
  char* copy = Allocate(text.size() + 1);
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

void SetError(std::string_view message, char** errptr) {
  std::free(*errptr);
  *errptr = CopyToCString(message);
}

}  // namespace nacre
