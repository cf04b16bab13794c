#pragma once

namespace nacre {

/// Lets `ShardedOptions::coordinator` be "etcd:HOST:PORT,HOST:PORT,...": the client endpoints of
/// one etcd cluster of version 3.4 or newer. A HOST is a name, an IPv4 address, or an IPv6 address
/// in brackets; the connections are plain ones, without TLS and without a user.
///
/// An application that calls it links nacre::etcd, and with it gRPC. It may be called more than
/// once, and from any thread.
void UseEtcd();

}  // namespace nacre
