#pragma once

namespace nacre {

/// Must be called before the library's first use of OpenSSL; any thread may call it, any number of
/// times. It keeps `exit` from taking OpenSSL apart while threads of open databases still use it.
/// Has no effect if the application used OpenSSL before.
void StartOpenssl();

}  // namespace nacre
