#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>

#include "tests/support/temp_folder.h"

namespace nacre::server {

/// An authority, and certificates that it has signed, in files of a folder of its own.
class TestCertificates {
 public:
  TestCertificates() : key_(NewKey()), certificate_(Sign("authority", key_.get(), nullptr)) {
    Write("authority.pem", [&](std::FILE* file) { PEM_write_X509(file, certificate_.get()); });
  }

  std::string authority() const { return folder_.File("authority.pem"); }
  /// Makes NAME.pem and NAME.key.
  void Issue(const std::string& name) {
    const KeyPtr key = NewKey();
    const CertificatePtr certificate = Sign(name, key.get(), certificate_.get());
    Write(name + ".pem", [&](std::FILE* file) { PEM_write_X509(file, certificate.get()); });
    Write(name + ".key", [&](std::FILE* file) {
      PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  std::string File(const std::string& name, const std::string& suffix) const {
    return folder_.File(name + suffix);
  }
  std::string CertificateOf(const std::string& name) const { return File(name, ".pem"); }
  std::string KeyOf(const std::string& name) const { return File(name, ".key"); }

 private:
  struct Freer {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using KeyPtr = std::unique_ptr<EVP_PKEY, Freer>;
  using CertificatePtr = std::unique_ptr<X509, Freer>;

  static KeyPtr NewKey() { return KeyPtr(EVP_EC_gen("P-256")); }
  /// By the authority. `issuer` is null for its own certificate.
  CertificatePtr Sign(const std::string& name, EVP_PKEY* key, const X509* issuer) {
    constexpr long kDay = 24 * 60 * 60;
    CertificatePtr made(X509_new());
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -kDay);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), kDay);
    X509_set_pubkey(made.get(), key);
    X509_NAME* const subject = X509_get_subject_name(made.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(made.get(), issuer == nullptr ? subject : X509_get_subject_name(issuer));
    if (issuer == nullptr) {
      X509_EXTENSION* const may_sign =
          X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE");
      X509_add_ext(made.get(), may_sign, -1);
      X509_EXTENSION_free(may_sign);
    }
    EXPECT_GT(X509_sign(made.get(), key_.get(), EVP_sha256()), 0);
    return made;
  }
  template <typename Print>
  void Write(const std::string& name, const Print& print) {
    std::FILE* const file = std::fopen(folder_.File(name).c_str(), "w");
    ASSERT_NE(file, nullptr) << name;
    print(file);
    std::fclose(file);
  }

  const TempFolder folder_;
  long serial_ = 0;
  const KeyPtr key_;
  const CertificatePtr certificate_;
};

}  // namespace nacre::server
