#include "adapters/c/c_error.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "adapters/common/c_memory.h"
#include "nacre/c.h"
#include "nacre/version.h"
#include "util/never_destroyed.h"

namespace nacre {

bool Succeeded(const Status& status, char** errptr) {
  if (status.ok()) return true;
  SetError(status.ToString(), errptr);
  return false;
}

}  // namespace nacre

int nacre_error_code(const char* error) {
  if (error == nullptr) return nacre_code_ok;
  const std::string_view text(error);
  for (int code = nacre_code_ok + 1; code <= nacre_code_fenced; ++code) {
    // A status without a message shows its code's name.
    const std::string name = nacre::Status::FromCode(code, {}).ToString();
    if (text == name || text.starts_with(name + ": ")) return code;
  }
  return -1;
}

void nacre_free(void* memory) { std::free(memory); }

const char* nacre_version(void) {
  static const nacre::NeverDestroyed<std::string> version(nacre::GetNacreVersionAsString(false));
  return version->c_str();
}

const char* nacre_version_with_commit(void) {
  static const nacre::NeverDestroyed<std::string> version(nacre::GetNacreVersionAsString(true));
  return version->c_str();
}
