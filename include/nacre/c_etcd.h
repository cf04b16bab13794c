#pragma once

// For C programs whose keyspaces have etcd as their coordinator. They link libnacre_c_etcd, which
// has all of libnacre_c, and this; it needs gRPC.

#ifdef __cplusplus
extern "C" {
#endif

/// From here on coordinators may be "etcd:HOST:PORT,...". May be called again.
void nacre_use_etcd(void);

#ifdef __cplusplus
}
#endif
