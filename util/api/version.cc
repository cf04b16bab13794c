#include "nacre/version.h"

#include "util/api/build_version.h"

#define NACRE_TEXT(number) #number
#define NACRE_TEXT_OF(macro) NACRE_TEXT(macro)

namespace nacre {

std::string GetNacreVersionAsString(bool with_commit) {
  const std::string version =
      NACRE_TEXT_OF(NACRE_MAJOR) "." NACRE_TEXT_OF(NACRE_MINOR) "." NACRE_TEXT_OF(NACRE_PATCH);
  return with_commit ? version + " (" + BuildVersion() + ")" : version;
}

}  // namespace nacre
