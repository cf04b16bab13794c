#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "nacre/status.h"

namespace nacre::rdma {

// Both ends of a connection prove to one another that they know the pool's secret, without telling
// it to an eavesdropper or an impostor:
//
//   connector -> listener   nonce, hello
//   listener  -> connector  nonce, reply, proof of the listener
//   connector -> listener   proof of the connector
//
// Each end draws its nonce anew, and each proof covers both nonces, so neither can be replayed; it
// covers what was said besides (hello and reply), so nothing can be put into a stranger's mouth;
// and it names its author's role, so none can be sent back to its author. Until the listener has
// seen the connector's proof it gives nothing: no region key, no receive, no access. How the three
// messages travel is the backend's. A pool without a secret does the same with an empty one.
//
// A listener may take several secrets (rdma/secret_ring.h). So the connector's nonce ends with the
// id of the secret that it will prove, which is part of a hash of it; both ends prove that one.
// An eavesdropper learns from the id which connections were made with the same secret, and can try
// words offline, as after any proof. The nonce's other bytes are drawn anew for each connection.

inline constexpr size_t kNonceBytes = 16;
inline constexpr size_t kProofBytes = 32;
using Nonce = std::array<char, kNonceBytes>;
using Proof = std::array<char, kProofBytes>;

/// Names a secret to those that know it. Two secrets have the same one by a chance of 2^-32.
using SecretId = uint32_t;
inline constexpr size_t kSecretIdBytes = sizeof(SecretId);

/// What both ends have seen. `hello` and `reply` are all that the backend's first two messages say
/// besides nonce and proof.
struct Handshake {
  Nonce connector_nonce{};
  Nonce listener_nonce{};
  std::string hello{};
  std::string reply{};
};

enum class Role : char { kConnector = 'C', kListener = 'L' };

/// `IOError` if the system gives no random numbers.
Status DrawNonce(Nonce* nonce);
/// A nonce of a connector that will prove the secret of this id.
Status DrawConnectorNonce(SecretId id, Nonce* nonce);
SecretId IdIn(const Nonce& connector_nonce);
/// The first bytes, in little-endian order, of an HMAC-SHA256 keyed by the secret. `IOError` if it
/// cannot be computed.
Status IdOfSecret(const std::string& secret, SecretId* id);

/// Computes the HMAC-SHA256, keyed by `secret`, of the prover's role and all that was said.
/// `IOError` if it cannot be computed.
Status Prove(const std::string& secret, Role role, const Handshake& handshake, Proof* proof);

/// Derives a key for later messages, which only the two ends can compute. Errors as Prove.
Status DeriveKey(const std::string& secret, const Handshake& handshake, Proof* key);

/// `Unavailable` if `proof` is not that one; found in a time that does not depend on where they
/// differ.
Status CheckProof(const Proof& proof, const std::string& secret, Role role,
                  const Handshake& handshake);

}  // namespace nacre::rdma
