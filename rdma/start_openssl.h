#pragma once

namespace nacre::rdma {

/// To be called before the library's first use of OpenSSL, as often as one likes, by any thread.
/// Keeps `exit` from taking OpenSSL apart while threads of open databases still encrypt and prove
/// what they know. Has no effect if the application used OpenSSL before.
void StartOpenssl();

}  // namespace nacre::rdma
