#include "rdma/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <string_view>

#include "util/coding.h"
#include "util/crypto/start_openssl.h"

namespace nacre::rdma {

namespace {

// Keep the uses of a secret apart, from one another and from whatever else it may be used for.
constexpr std::string_view kProofLabel = "nacre handshake 1";
constexpr std::string_view kKeyLabel = "nacre session key 1";
constexpr std::string_view kIdLabel = "nacre secret id 1";

/// HMAC-SHA256 by `secret` of `text`, which begins with its label.
Status Hash(const std::string& secret, std::string_view text, Proof* code) {
  static_assert(kProofBytes == 32, "SHA-256");
  StartOpenssl();
  unsigned int size = 0;
  const unsigned char* const made =
      HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(code->data()), &size);
  if (made != nullptr && size == code->size()) return Status::OK();
  return Status::IOError("HMAC-SHA256 cannot be computed");
}

/// That of `text`, which begins with its label, and of what was said.
Status Authenticate(const std::string& secret, std::string text, const Handshake& handshake,
                    Proof* code) {
  text.append(handshake.connector_nonce.data(), handshake.connector_nonce.size());
  text.append(handshake.listener_nonce.data(), handshake.listener_nonce.size());
  // Each part is preceded by its length, so that no byte can move from one part to the other.
  PutFixed32(&text, static_cast<uint32_t>(handshake.hello.size()));
  text += handshake.hello;
  text += handshake.reply;
  return Hash(secret, text, code);
}

}  // namespace

Status DrawNonce(Nonce* nonce) {
  if (::getrandom(nonce->data(), nonce->size(), 0) == static_cast<ssize_t>(nonce->size())) {
    return Status::OK();
  }
  return Status::IOError("the system gives no random numbers");
}

Status DrawConnectorNonce(SecretId id, Nonce* nonce) {
  NACRE_RETURN_IF_ERROR(DrawNonce(nonce));
  EncodeFixed32(nonce->data() + kNonceBytes - kSecretIdBytes, id);
  return Status::OK();
}

SecretId IdIn(const Nonce& connector_nonce) {
  return DecodeFixed32(connector_nonce.data() + kNonceBytes - kSecretIdBytes);
}

Status IdOfSecret(const std::string& secret, SecretId* id) {
  Proof code;
  NACRE_RETURN_IF_ERROR(Hash(secret, kIdLabel, &code));
  *id = DecodeFixed32(code.data());
  return Status::OK();
}

Status Prove(const std::string& secret, Role role, const Handshake& handshake, Proof* proof) {
  return Authenticate(secret, std::string(kProofLabel) + static_cast<char>(role), handshake, proof);
}

Status DeriveKey(const std::string& secret, const Handshake& handshake, Proof* key) {
  return Authenticate(secret, std::string(kKeyLabel), handshake, key);
}

Status CheckProof(const Proof& proof, const std::string& secret, Role role,
                  const Handshake& handshake) {
  Proof expected;
  NACRE_RETURN_IF_ERROR(Prove(secret, role, handshake, &expected));
  if (CRYPTO_memcmp(proof.data(), expected.data(), proof.size()) == 0) return Status::OK();
  return Status::Unavailable("the peer does not know the pool's secret");
}

}  // namespace nacre::rdma
