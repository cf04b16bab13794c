// Goal: a ring knows each of its secrets by its id, and takes others in their place without
// touching what has not changed. Method: rings of a few secrets, replaced by others in every way
// there is.

#include "rdma/secret_ring.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/status_assert.h"

namespace nacre::rdma {

namespace {

const std::vector<SecretTerms> kThree = {
    {.secret = "the first of three", .name = "one"},
    {.secret = "the second of three", .name = "two", .rights = "write:a*"},
    {.secret = "the third of three", .name = "three", .rights = "read", .may_write = false},
};

SecretId IdOf(const std::string& secret) {
  SecretId id = 0;
  EXPECT_TRUE(IsOk(IdOfSecret(secret, &id)));
  return id;
}

TEST(SecretRingTest, AnIdIsThatOfOneSecretAndTellsNoProof) {
  EXPECT_EQ(IdOf("a secret"), IdOf("a secret"));
  EXPECT_NE(IdOf("a secret"), IdOf("a secreT"));
  EXPECT_NE(IdOf(""), IdOf("a secret"));
  // Frozen: a node of another build has to know it.
  EXPECT_EQ(IdOf("the pool's secret"), 0x764b0e0au);
}

TEST(SecretRingTest, ANonceCarriesTheIdAndIsFreshBesides) {
  Nonce first;
  Nonce second;
  ASSERT_TRUE(IsOk(DrawConnectorNonce(0x12345678, &first)));
  ASSERT_TRUE(IsOk(DrawConnectorNonce(0x12345678, &second)));
  EXPECT_EQ(IdIn(first), 0x12345678u);
  EXPECT_EQ(IdIn(second), 0x12345678u);
  EXPECT_NE(first, second);
}

TEST(SecretRingTest, EachSecretIsFoundByItsIdAndTheFirstIsTheOwn) {
  std::shared_ptr<SecretRing> ring;
  ASSERT_TRUE(IsOk(SecretRing::Create(kThree, &ring)));
  EXPECT_EQ(ring->size(), 3u);
  EXPECT_EQ(ring->own()->secret(), kThree[0].secret);
  for (const SecretTerms& terms : kThree) {
    const auto found = ring->Find(IdOf(terms.secret));
    EXPECT_EQ(found->terms(), terms);
    EXPECT_FALSE(found->revoked());
  }
}

TEST(SecretRingTest, AnUnknownIdGetsASecretThatNoPeerKnows) {
  std::shared_ptr<SecretRing> ring;
  std::shared_ptr<SecretRing> other;
  ASSERT_TRUE(IsOk(SecretRing::Create(kThree, &ring)));
  ASSERT_TRUE(IsOk(SecretRing::Create(kThree, &other)));
  const auto unknown = ring->Find(IdOf("a secret of another pool"));
  ASSERT_NE(unknown, nullptr);
  EXPECT_GE(unknown->secret().size(), 32u);
  EXPECT_FALSE(unknown->may_write());
  EXPECT_EQ(unknown, ring->Find(IdOf("")));
  EXPECT_NE(unknown->secret(), other->Find(IdOf(""))->secret());
}

TEST(SecretRingTest, ReplacingRevokesWhatIsGoneOrChangedAndNothingElse) {
  std::shared_ptr<SecretRing> ring;
  ASSERT_TRUE(IsOk(SecretRing::Create(kThree, &ring)));
  std::vector<std::shared_ptr<const Credential>> before;
  for (const SecretTerms& terms : kThree) before.push_back(ring->Find(IdOf(terms.secret)));

  // The second one comes first, the first one is gone, the third one may write now.
  std::vector<SecretTerms> next = {kThree[1], kThree[2], {.secret = "a fourth one"}};
  next[1].may_write = true;
  next[1].rights = "write";
  ASSERT_TRUE(IsOk(ring->Replace(next)));
  EXPECT_TRUE(before[0]->revoked());
  EXPECT_FALSE(before[1]->revoked());
  EXPECT_TRUE(before[2]->revoked());
  EXPECT_EQ(ring->own(), before[1]);
  EXPECT_EQ(ring->Find(IdOf(kThree[1].secret)), before[1]);
  const auto changed = ring->Find(IdOf(kThree[2].secret));
  EXPECT_NE(changed, before[2]);
  EXPECT_TRUE(changed->may_write());
  EXPECT_FALSE(changed->revoked());
  EXPECT_NE(ring->Find(IdOf(kThree[0].secret))->secret(), kThree[0].secret);
  EXPECT_EQ(ring->Find(IdOf("a fourth one"))->secret(), "a fourth one");

  // One that comes back is another credential: what was ended stays ended.
  ASSERT_TRUE(IsOk(ring->Replace(kThree)));
  EXPECT_NE(ring->own(), before[0]);
  EXPECT_FALSE(ring->own()->revoked());
  EXPECT_TRUE(before[0]->revoked());
}

TEST(SecretRingTest, ARetiredSecretIsFoundNoMoreAndItsCredentialStays) {
  std::shared_ptr<SecretRing> ring;
  ASSERT_TRUE(IsOk(SecretRing::Create(kThree, &ring)));
  const auto before = ring->Find(IdOf(kThree[1].secret));
  std::vector<SecretTerms> terms = kThree;
  terms[1].retired = true;
  ASSERT_TRUE(IsOk(ring->Replace(terms)));
  EXPECT_EQ(ring->Find(IdOf(kThree[1].secret)), ring->Find(IdOf("an unknown one")));
  EXPECT_FALSE(before->revoked());
  // It may come back, and may go.
  ASSERT_TRUE(IsOk(ring->Replace(kThree)));
  EXPECT_EQ(ring->Find(IdOf(kThree[1].secret)), before);
  ASSERT_TRUE(IsOk(ring->Replace(terms)));
  ASSERT_TRUE(IsOk(ring->Replace({kThree[0]})));
  EXPECT_TRUE(before->revoked());

  terms[0].retired = true;
  EXPECT_TRUE(IsFailure(ring->Replace(terms), Status::Code::kInvalidArgument, "retired"));
}

TEST(SecretRingTest, WhatIsNoRingIsRefusedAndChangesNothing) {
  std::shared_ptr<SecretRing> ring;
  EXPECT_TRUE(IsFailure(SecretRing::Create({}, &ring), Status::Code::kInvalidArgument));
  EXPECT_EQ(ring, nullptr);
  ASSERT_TRUE(IsOk(SecretRing::Create(kThree, &ring)));
  const auto own = ring->own();
  std::vector<SecretTerms> twice = {{.secret = "another"}, kThree[0], kThree[0]};
  twice[2].name = "again";
  const Status same = ring->Replace(twice);
  EXPECT_TRUE(IsFailure(same, Status::Code::kInvalidArgument));
  EXPECT_NE(same.message().find("'one' and secret 'again'"), std::string_view::npos);
  EXPECT_EQ(same.message().find(kThree[0].secret), std::string_view::npos) << "tells a secret";
  std::vector<SecretTerms> many;
  for (size_t i = 0; i <= SecretRing::kMaxSecrets; ++i) {
    many.push_back({.secret = "number " + std::to_string(i)});
  }
  EXPECT_TRUE(IsFailure(ring->Replace(many), Status::Code::kInvalidArgument));
  EXPECT_FALSE(own->revoked());
  EXPECT_EQ(ring->own(), own);
  EXPECT_EQ(ring->size(), 3u);
  many.pop_back();
  EXPECT_TRUE(IsOk(ring->Replace(many)));
}

}  // namespace

}  // namespace nacre::rdma
