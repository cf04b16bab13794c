// Goal: a ring can be replaced while listeners use it: what is revoked connects no more, what is
// new does, and what stays is not disturbed. Method: both ends in this process over each backend,
// the listener's ring replaced between connections, and between the messages of a handshake.

#include "tests/rdma/contract_fixture.h"
#include "tests/support/status_assert.h"
#include "util/threads/thread.h"

namespace nacre::rdma {

namespace {

const SecretTerms kOld = {.secret = "the secret until today", .name = "old", .rights = "write"};
const SecretTerms kNew = {.secret = "the secret as of today", .name = "new", .rights = "write"};
const SecretTerms kOther = {.secret = "a reader's secret", .name = "reader", .may_write = false};

std::vector<Setup> LocalSetups() {
  std::vector<Setup> setups = AllSetups();
  std::erase_if(setups, [](const Setup& setup) {
    return setup.spec.scheme == "sim" || setup.accepting || setup.child;
  });
  return setups;
}

class RevokedSecretTest : public testing::TestWithParam<Setup> {
 protected:
  RevokedSecretTest() {
    EXPECT_TRUE(IsOk(SecretRing::Create({kOld, kOther}, &ring_)));
    DeviceSpec spec = GetParam().spec;
    spec.shared_ring = ring_;
    listener_ = std::make_unique<Endpoint>(spec);
    EXPECT_TRUE(IsOk(listener_->Listen(AnyAddress(spec.scheme))));
  }

  static std::unique_ptr<Endpoint> Knowing(const SecretTerms& terms) {
    DeviceSpec spec = GetParam().spec;
    spec.secret = terms.secret;
    return std::make_unique<Endpoint>(spec);
  }
  /// The listener accepts the connection, which it must.
  std::shared_ptr<const Credential> Connect(Endpoint* near) {
    Thread accepting("accepting", [this] { EXPECT_TRUE(IsOk(listener_->Accept(""))); });
    std::string reply;
    EXPECT_TRUE(IsOk(near->Connect(listener_->listener->address(), "", {}, &reply)));
    accepting.Join();
    return listener_->credential;
  }
  /// The listener is accepting, and takes the next one that knows a secret.
  void ExpectRefused(Endpoint* stranger, const SecretTerms& good) {
    const auto next = Knowing(good);
    Thread accepting("accepting", [this] { EXPECT_TRUE(IsOk(listener_->Accept(""))); });
    std::string reply;
    EXPECT_TRUE(IsFailure(stranger->Connect(listener_->listener->address(), "", {}, &reply),
                          Status::Code::kUnavailable));
    EXPECT_TRUE(IsOk(next->Connect(listener_->listener->address(), "", {}, &reply)));
    accepting.Join();
    EXPECT_EQ(listener_->credential->secret(), good.secret);
  }

  std::shared_ptr<SecretRing> ring_;
  std::unique_ptr<Endpoint> listener_;
};

INSTANTIATE_TEST_SUITE_P(All, RevokedSecretTest, testing::ValuesIn(LocalSetups()), NameOf);

TEST_P(RevokedSecretTest, TheListenerKnowsWhatAPeerHasProven) {
  const auto writer = Knowing(kOld);
  EXPECT_EQ(Connect(writer.get())->terms(), kOld);
  const auto reader = Knowing(kOther);
  EXPECT_EQ(Connect(reader.get())->terms(), kOther);
}

TEST_P(RevokedSecretTest, OneSecretGivesWayToTheNextAndTheThirdHearsNothingOfIt) {
  const auto reader = Knowing(kOther);
  const auto of_reader = Connect(reader.get());
  const auto before = Knowing(kOld);
  const auto of_before = Connect(before.get());
  ExpectRefused(Knowing(kNew).get(), kOld);

  ASSERT_TRUE(IsOk(ring_->Replace({kOld, kOther, kNew})));
  const auto after = Knowing(kNew);
  EXPECT_EQ(Connect(after.get())->terms(), kNew);
  EXPECT_EQ(Connect(before.get()), of_before) << "both are in force";

  SecretTerms retired = kOld;
  retired.retired = true;
  ASSERT_TRUE(IsOk(ring_->Replace({kNew, kOther, retired})));
  ExpectRefused(Knowing(kOld).get(), kNew);
  EXPECT_FALSE(of_before->revoked());

  ASSERT_TRUE(IsOk(ring_->Replace({kNew, kOther})));
  EXPECT_TRUE(of_before->revoked());
  EXPECT_FALSE(of_reader->revoked());
  ExpectRefused(Knowing(kOld).get(), kNew);
  EXPECT_EQ(Connect(reader.get()), of_reader);
}

TEST_P(RevokedSecretTest, AConnectorProvesWhatIsItsOwnAtThatMoment) {
  std::shared_ptr<SecretRing> own;
  ASSERT_TRUE(IsOk(SecretRing::Create({kNew, kOld}, &own)));
  DeviceSpec spec = GetParam().spec;
  spec.shared_ring = own;
  Endpoint near(spec);
  ExpectRefused(&near, kOld);
  ASSERT_TRUE(IsOk(own->Replace({kOld, kNew})));
  EXPECT_EQ(Connect(&near)->terms(), kOld);
}

}  // namespace

}  // namespace nacre::rdma
