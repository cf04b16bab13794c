#include "util/crypto/secret_key.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "util/crypto/start_openssl.h"
#include "util/simulation.h"

namespace nacre {
namespace {

struct FreeKdf {
  void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

OSSL_PARAM Octets(const char* name, const Slice& bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(bytes.data()), bytes.size());
}

}  // namespace

SecretKey::~SecretKey() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

void WipeSecret(std::string* text) {
  OPENSSL_cleanse(text->data(), text->size());
  text->clear();
}

Status DrawRandomBytes(size_t n, char* to) {
  if (Simulation* const simulation = Simulation::Current()) {  // A seed replays these, too.
    for (size_t at = 0; at < n; at += sizeof(uint64_t)) {
      const uint64_t drawn = simulation->Random();
      std::memcpy(to + at, &drawn, std::min(n - at, sizeof(drawn)));
    }
    return Status::OK();
  }
  if (::getrandom(to, n, 0) == static_cast<ssize_t>(n)) return Status::OK();
  return Status::IOError("the system gives no random numbers");
}

Status DeriveSecretKey(const Slice& secret, const Slice& salt, const Slice& purpose,
                       SecretKey* key) {
  StartOpenssl();
  const std::unique_ptr<EVP_KDF, FreeKdf> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const std::unique_ptr<EVP_KDF_CTX, FreeKdf> context(kdf == nullptr ? nullptr
                                                                     : EVP_KDF_CTX_new(kdf.get()));
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      Octets(OSSL_KDF_PARAM_KEY, secret), Octets(OSSL_KDF_PARAM_SALT, salt),
      Octets(OSSL_KDF_PARAM_INFO, purpose), OSSL_PARAM_construct_end()};
  if (context != nullptr &&
      EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(key->data()),
                     SecretKey::kBytes, parameters) == 1) {
    return Status::OK();
  }
  return Status::IOError("OpenSSL cannot derive a key by HKDF-SHA256");
}

}  // namespace nacre
