#include "util/crypto/aead.h"

#include <openssl/evp.h>

#include <algorithm>

#include "util/coding.h"
#include "util/crypto/start_openssl.h"

namespace nacre {
namespace {

/// OpenSSL takes lengths as int.
constexpr size_t kAeadStep = size_t{1} << 30;

const unsigned char* Unsigned(const char* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* Unsigned(char* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

/// `to` is null for associated data.
bool UpdateAll(EVP_CIPHER_CTX* context, const Slice& from, char* to) {
  for (size_t at = 0; at < from.size();) {
    const size_t n = std::min(kAeadStep, from.size() - at);
    int done = 0;
    if (EVP_CipherUpdate(context, to == nullptr ? nullptr : Unsigned(to + at), &done,
                         Unsigned(from.data() + at), static_cast<int>(n)) != 1) {
      return false;
    }
    at += n;
  }
  return true;
}

Status OpensslFails() { return Status::IOError("OpenSSL cannot compute AES-256-GCM"); }

}  // namespace

Aead::Nonce Aead::NonceOf(uint64_t number) {
  Nonce nonce{};
  EncodeFixed64(nonce.data() + nonce.size() - sizeof(number), number);
  return nonce;
}

Aead::Aead(const SecretKey& key) : key_(key) {}
Aead::~Aead() = default;

void Aead::FreeContext::operator()(evp_cipher_ctx_st* context) const {
  EVP_CIPHER_CTX_free(context);  // It overwrites what it had of the key.
}

evp_cipher_ctx_st* Aead::Begin(Context* context, bool seal, const Nonce& nonce) {
  if (*context == nullptr) {
    StartOpenssl();
    context->reset(EVP_CIPHER_CTX_new());
    if (*context == nullptr) return nullptr;
    if (EVP_CipherInit_ex(context->get(), EVP_aes_256_gcm(), nullptr, Unsigned(key_.data()),
                          nullptr, seal ? 1 : 0) != 1) {
      context->reset();
      return nullptr;
    }
  }
  const bool begun = EVP_CipherInit_ex(context->get(), nullptr, nullptr, nullptr,
                                       Unsigned(nonce.data()), seal ? 1 : 0) == 1;
  return begun ? context->get() : nullptr;
}

Status Aead::Seal(const Nonce& nonce, const Slice& associated, const Slice& plain, char* to,
                  char* tag) {
  EVP_CIPHER_CTX* const context = Begin(&sealing_, /*seal=*/true, nonce);
  int rest = 0;
  if (context == nullptr || !UpdateAll(context, associated, nullptr) ||
      !UpdateAll(context, plain, to) || EVP_CipherFinal_ex(context, Unsigned(tag), &rest) != 1 ||
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag) != 1) {
    return OpensslFails();
  }
  return Status::OK();
}

Status Aead::Open(const Nonce& nonce, const Slice& associated, const Slice& sealed, const char* tag,
                  char* to) {
  EVP_CIPHER_CTX* const context = Begin(&opening_, /*seal=*/false, nonce);
  if (context == nullptr || !UpdateAll(context, associated, nullptr) ||
      !UpdateAll(context, sealed, to) ||
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTagBytes, const_cast<char*>(tag)) != 1) {
    return OpensslFails();
  }
  char none[EVP_MAX_BLOCK_LENGTH];
  int rest = 0;
  if (EVP_CipherFinal_ex(context, Unsigned(none), &rest) == 1) return Status::OK();
  return Status::Corruption("it does not match its tag");
}

}  // namespace nacre
