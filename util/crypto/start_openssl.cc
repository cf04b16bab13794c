#include "util/crypto/start_openssl.h"

#include <openssl/crypto.h>

namespace nacre {

void StartOpenssl() {
  // What fails here fails again, with an answer, in the call that this one is made for.
  (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
}

}  // namespace nacre
