// Goal: a proof convinces exactly the one it was made for. Method: prove, then change each thing
// that the proof is to cover, one at a time.

#include "rdma/handshake.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/status_assert.h"

namespace nacre::rdma {

namespace {

Handshake Fresh() {
  Handshake handshake;
  EXPECT_TRUE(DrawNonce(&handshake.connector_nonce).ok());
  EXPECT_TRUE(DrawNonce(&handshake.listener_nonce).ok());
  handshake.hello = "hello";
  handshake.reply = "reply";
  return handshake;
}

TEST(HandshakeTest, ProofsConvinceWithTheSameSecret) {
  for (const std::string& secret : {std::string(), std::string("s"), std::string(200, 'x')}) {
    const Handshake handshake = Fresh();
    for (const Role role : {Role::kConnector, Role::kListener}) {
      Proof proof;
      ASSERT_TRUE(Prove(secret, role, handshake, &proof).ok());
      EXPECT_TRUE(CheckProof(proof, secret, role, handshake).ok());
      EXPECT_TRUE(CheckProof(proof, secret + "x", role, handshake).IsUnavailable());
    }
  }
}

TEST(HandshakeTest, EverythingThatWasSaidCounts) {
  const Handshake handshake = Fresh();
  Proof proof;
  ASSERT_TRUE(Prove("secret", Role::kConnector, handshake, &proof).ok());
  const std::vector<std::function<void(Handshake*)>> changes = {
      [](Handshake* h) { h->connector_nonce[0] ^= 1; },
      [](Handshake* h) { h->listener_nonce[kNonceBytes - 1] ^= 1; },
      [](Handshake* h) { std::swap(h->connector_nonce, h->listener_nonce); },
      [](Handshake* h) { h->hello += "r"; },
      [](Handshake* h) { h->reply.pop_back(); },
      [](Handshake* h) {
        h->hello = "hellor";
        h->reply = "eply";
      },
  };
  for (const auto& change : changes) {
    Handshake other = handshake;
    change(&other);
    EXPECT_TRUE(CheckProof(proof, "secret", Role::kConnector, other).IsUnavailable());
  }
  EXPECT_TRUE(CheckProof(proof, "secret", Role::kListener, handshake).IsUnavailable())
      << "a proof sent back to its author";
  for (size_t i = 0; i < proof.size(); ++i) {
    Proof bent = proof;
    bent[i] ^= 4;
    EXPECT_FALSE(CheckProof(bent, "secret", Role::kConnector, handshake).ok());
  }
}

TEST(HandshakeTest, AKeyIsOfOneHandshakeAndOneSecret) {
  const Handshake handshake = Fresh();
  Proof key;
  Proof again;
  ASSERT_TRUE(IsOk(DeriveKey("secret", handshake, &key)));
  ASSERT_TRUE(IsOk(DeriveKey("secret", handshake, &again)));
  EXPECT_EQ(key, again);
  ASSERT_TRUE(IsOk(DeriveKey("secreT", handshake, &again)));
  EXPECT_NE(key, again);
  ASSERT_TRUE(IsOk(DeriveKey("secret", Fresh(), &again)));
  EXPECT_NE(key, again);
  // What was sent as a proof is no key.
  for (const Role role : {Role::kConnector, Role::kListener}) {
    ASSERT_TRUE(IsOk(Prove("secret", role, handshake, &again)));
    EXPECT_NE(key, again);
  }
}

TEST(HandshakeTest, NoncesDiffer) {
  Nonce a;
  Nonce b;
  ASSERT_TRUE(DrawNonce(&a).ok());
  ASSERT_TRUE(DrawNonce(&b).ok());
  EXPECT_NE(a, b);
}

}  // namespace

}  // namespace nacre::rdma
