// Goal: etcd as a coordinator keeps the contract of sharding/members/coordinator.h: what is read
// and committed, what leases and waits do, and which failures are answered, without a hang, when
// members of the cluster are dead, frozen, without a leader, or back again. Method: processes of
// the installed etcd, each with a folder and ports of its own.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nacre/utilities/etcd.h"
#include "rdma/unique_fd.h"
#include "sharding/members/coordinator.h"
#include "tests/support/process/etcd_process.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

using Change = Coordinator::Change;
using Entry = Coordinator::Entry;
using Lease = Coordinator::Lease;
using std::chrono::milliseconds;
using std::chrono::seconds;

Deadline After(std::chrono::nanoseconds timeout) {
  return Deadline::After(Clock::System(), timeout);
}

std::shared_ptr<Coordinator> Open(const std::string& endpoints) {
  UseEtcd();
  std::shared_ptr<Coordinator> coordinator;
  EXPECT_TRUE(IsOk(OpenCoordinator("etcd:" + endpoints, &coordinator)));
  return coordinator;
}

Status Commit(Coordinator* coordinator, const std::vector<Change>& changes, bool* done) {
  return coordinator->Commit(changes, Ample(), done);
}

/// Sets a key that is not there.
bool Create(Coordinator* coordinator, const std::string& key, const std::string& value,
            Lease lease = 0) {
  bool done = false;
  EXPECT_TRUE(IsOk(Commit(coordinator, {{.key = key, .value = value, .lease = lease}}, &done)));
  return done;
}

std::vector<Entry> ReadAll(Coordinator* coordinator, const std::string& prefix,
                           int64_t* revision = nullptr) {
  std::vector<Entry> entries;
  int64_t ignored = 0;
  EXPECT_TRUE(IsOk(
      coordinator->Read(prefix, Ample(), &entries, revision == nullptr ? &ignored : revision)));
  return entries;
}

/// "a=1 b=2"
std::string Listed(Coordinator* coordinator, const std::string& prefix) {
  std::string text;
  for (const Entry& entry : ReadAll(coordinator, prefix)) {
    text += (text.empty() ? "" : " ") + entry.key + "=" + entry.value;
  }
  return text;
}

int64_t ChangedOf(Coordinator* coordinator, const std::string& key) {
  for (const Entry& entry : ReadAll(coordinator, key)) {
    if (entry.key == key) return entry.changed;
  }
  return 0;
}

bool IsOutage(const Status& status) { return status.IsUnavailable() || status.IsTimedOut(); }

/// The first call after a restart may meet the old connection, and then is an outage.
void AwaitBack(Coordinator* coordinator) {
  std::vector<Entry> entries;
  int64_t revision = 0;
  Status s;
  for (int i = 0; i < 3; ++i) {
    s = coordinator->Read("", Ample(), &entries, &revision);
    if (!IsOutage(s)) break;
  }
  EXPECT_TRUE(IsOk(s));
}

/// An endpoint that takes connections and never says anything.
class MuteListener {
 public:
  MuteListener() : port_(FreePort()), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(0,
              ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)));
    EXPECT_EQ(0, ::listen(socket_.get(), 64));
  }
  std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  const uint16_t port_;
  rdma::UniqueFd socket_;
};

std::string DeadEndpoint() { return "127.0.0.1:" + std::to_string(FreePort()); }

class EtcdCoordinatorTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd and etcdctl are not installed";
    etcd_ = std::make_unique<EtcdProcess>();
    coordinator_ = Open(etcd_->endpoint());
    ASSERT_NE(nullptr, coordinator_);
  }

  Coordinator* coordinator() { return coordinator_.get(); }

  std::unique_ptr<EtcdProcess> etcd_;
  std::shared_ptr<Coordinator> coordinator_;
};

TEST_F(EtcdCoordinatorTest, ReadsByPrefixInOrderWithRevisions) {
  int64_t before = 0;
  EXPECT_TRUE(ReadAll(coordinator(), "", &before).empty());
  EXPECT_GT(before, 0);
  const std::string binary("k\xff\0z", 4);
  for (const std::string& key : {std::string("k2"), std::string("k1"), std::string("j"),
                                 std::string("l"), binary, std::string("\xff\xff")}) {
    EXPECT_TRUE(Create(coordinator(), key, "of " + key));
  }
  int64_t revision = 0;
  const std::vector<Entry> entries = ReadAll(coordinator(), "k", &revision);
  ASSERT_EQ(3U, entries.size());
  EXPECT_EQ("k1", entries[0].key);
  EXPECT_EQ("k2", entries[1].key);
  EXPECT_EQ(binary, entries[2].key);
  EXPECT_EQ("of " + binary, entries[2].value);
  EXPECT_EQ(before + 1, entries[1].changed);
  EXPECT_EQ(before + 2, entries[0].changed);
  EXPECT_EQ(0, entries[0].lease);
  EXPECT_EQ(before + 6, revision);
  EXPECT_EQ(1U, ReadAll(coordinator(), "k\xff").size());
  EXPECT_EQ(1U, ReadAll(coordinator(), "\xff").size());
  EXPECT_EQ(6U, ReadAll(coordinator(), "").size());
  EXPECT_TRUE(ReadAll(coordinator(), "k3").empty());
}

TEST_F(EtcdCoordinatorTest, SharesItsKeysWithOtherClients) {
  EXPECT_TRUE(Create(coordinator(), "/ours", "seen"));
  EXPECT_EQ("/ours\nseen\n", etcd_->Control({"get", "/ours"}).output);
  EXPECT_EQ(0, etcd_->Control({"put", "/theirs", "too"}).exit_code);
  EXPECT_EQ("/theirs=too", Listed(coordinator(), "/t"));
}

TEST_F(EtcdCoordinatorTest, ReadsMoreThanTheUsualMessage) {
  const std::string value(1 << 20, 'v');
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(Create(coordinator(), std::to_string(i), value));
  const std::vector<Entry> entries = ReadAll(coordinator(), "");
  ASSERT_EQ(6U, entries.size());
  EXPECT_EQ(value, entries[5].value);
}

TEST_F(EtcdCoordinatorTest, CommitsOnlyWhatIsExpected) {
  EXPECT_TRUE(Create(coordinator(), "a", "1"));
  EXPECT_FALSE(Create(coordinator(), "a", "2"));
  EXPECT_EQ("a=1", Listed(coordinator(), ""));
  const int64_t first = ChangedOf(coordinator(), "a");

  bool done = false;
  EXPECT_TRUE(IsOk(Commit(coordinator(), {{.key = "a", .expected = first, .value = "3"}}, &done)));
  EXPECT_TRUE(done);
  EXPECT_TRUE(IsOk(Commit(coordinator(), {{.key = "a", .expected = first, .value = "4"}}, &done)));
  EXPECT_FALSE(done);
  EXPECT_TRUE(IsOk(Commit(coordinator(), {{.key = "b", .expected = first, .value = "5"}}, &done)));
  EXPECT_FALSE(done);
  EXPECT_EQ("a=3", Listed(coordinator(), ""));

  // Deletions.
  EXPECT_TRUE(IsOk(Commit(coordinator(), {{.key = "a", .expected = first}}, &done)));
  EXPECT_FALSE(done);
  const int64_t second = ChangedOf(coordinator(), "a");
  EXPECT_TRUE(IsOk(Commit(coordinator(), {{.key = "a", .expected = second}}, &done)));
  EXPECT_TRUE(done);
  EXPECT_EQ("", Listed(coordinator(), ""));
  EXPECT_TRUE(Create(coordinator(), "a", ""));
  EXPECT_EQ("a=", Listed(coordinator(), ""));
}

TEST_F(EtcdCoordinatorTest, CommitsAllChangesOrNone) {
  EXPECT_TRUE(Create(coordinator(), "a", "1"));
  EXPECT_TRUE(Create(coordinator(), "b", "1"));
  EXPECT_TRUE(Create(coordinator(), "c", "1"));
  const int64_t a = ChangedOf(coordinator(), "a");
  const int64_t b = ChangedOf(coordinator(), "b");
  const int64_t c = ChangedOf(coordinator(), "c");
  const auto changes = [&](int64_t checked) {
    return std::vector<Change>{{.key = "a", .expected = a, .value = "2"},
                               {.key = "b", .expected = b},
                               {.key = "c", .expected = checked, .only_check = true},
                               {.key = "d", .value = "2"}};
  };
  bool done = true;
  EXPECT_TRUE(IsOk(Commit(coordinator(), changes(c - 1), &done)));
  EXPECT_FALSE(done);
  EXPECT_TRUE(IsOk(Commit(coordinator(), changes(0), &done)));
  EXPECT_FALSE(done);
  EXPECT_EQ("a=1 b=1 c=1", Listed(coordinator(), ""));
  EXPECT_TRUE(IsOk(Commit(coordinator(), changes(c), &done)));
  EXPECT_TRUE(done);
  EXPECT_EQ("a=2 c=1 d=2", Listed(coordinator(), ""));
  EXPECT_EQ(c, ChangedOf(coordinator(), "c"));
  EXPECT_EQ(ChangedOf(coordinator(), "a"), ChangedOf(coordinator(), "d"));

  // More than etcd takes at once, which it says.
  std::vector<Change> many;
  for (int i = 0; i < 1000; ++i) many.push_back({.key = std::to_string(i), .value = ""});
  EXPECT_TRUE(IsFailure(Commit(coordinator(), many, &done), Status::Code::kIOError,
                        etcd_->endpoint() + ": etcdserver: too many operations"));
  EXPECT_FALSE(done);
  EXPECT_TRUE(IsOk(Commit(coordinator(), {}, &done)));
  EXPECT_TRUE(done);
}

TEST_F(EtcdCoordinatorTest, LosesNoIncrementOfManyThreads) {
  constexpr int kThreads = 6;
  constexpr int kIncrements = 20;
  EXPECT_TRUE(Create(coordinator(), "sum", "0"));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (int increments = 0; increments < kIncrements;) {
        const Entry entry = ReadAll(coordinator(), "sum").at(0);
        bool done = false;
        EXPECT_TRUE(IsOk(Commit(coordinator(),
                                {{.key = "sum",
                                  .expected = entry.changed,
                                  .value = std::to_string(std::stoi(entry.value) + 1)}},
                                &done)));
        if (done) ++increments;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ("sum=" + std::to_string(kThreads * kIncrements), Listed(coordinator(), ""));
}

TEST_F(EtcdCoordinatorTest, EndsALeaseWithItsEntries) {
  Lease lease = 0;
  EXPECT_TRUE(IsOk(coordinator()->GrantLease(milliseconds(59001), Ample(), &lease)));
  EXPECT_NE(0, lease);
  EXPECT_TRUE(Create(coordinator(), "leased", "1", lease));
  EXPECT_TRUE(Create(coordinator(), "other", "1"));
  EXPECT_EQ(lease, ReadAll(coordinator(), "leased").at(0).lease);
  const std::string id = fmt::format("{:x}", lease);
  const std::string told = etcd_->Control({"lease", "timetolive", id}).output;
  EXPECT_NE(std::string::npos, told.find("granted with TTL(60s)")) << told;
  EXPECT_TRUE(IsOk(coordinator()->KeepLease(lease, Ample())));

  EXPECT_TRUE(IsOk(coordinator()->EndLease(lease, Ample())));
  EXPECT_EQ("other=1", Listed(coordinator(), ""));
  EXPECT_TRUE(IsOk(coordinator()->EndLease(lease, Ample())));
  EXPECT_TRUE(IsFailure(coordinator()->KeepLease(lease, Ample()), Status::Code::kNotFound,
                        etcd_->endpoint()));
  bool done = true;
  EXPECT_TRUE(
      IsFailure(Commit(coordinator(), {{.key = "late", .value = "1", .lease = lease}}, &done),
                Status::Code::kNotFound, "lease"));
  EXPECT_FALSE(done);
  EXPECT_EQ("other=1", Listed(coordinator(), ""));
}

TEST_F(EtcdCoordinatorTest, ExpiresALeaseThatIsNotKept) {
  Lease lease = 0;
  EXPECT_TRUE(IsOk(coordinator()->GrantLease(milliseconds(1), Ample(), &lease)));
  EXPECT_TRUE(Create(coordinator(), "leased", "1", lease));
  int64_t revision = 0;
  while (!ReadAll(coordinator(), "leased", &revision).empty()) {
    const Status changed = coordinator()->AwaitChange("leased", revision, Ample());
    ASSERT_TRUE(IsOk(changed));
  }
  EXPECT_TRUE(coordinator()->KeepLease(lease, Ample()).IsNotFound());
}

TEST_F(EtcdCoordinatorTest, KeepsALeaseThatIsKept) {
  constexpr seconds kTtl(4);
  Lease lease = 0;
  EXPECT_TRUE(IsOk(coordinator()->GrantLease(kTtl, Ample(), &lease)));
  EXPECT_TRUE(Create(coordinator(), "leased", "1", lease));
  const Deadline end = After(2 * kTtl);
  while (!end.Expired()) {
    const Deadline in_time = After(kTtl);
    std::this_thread::sleep_for(milliseconds(100));
    const Status kept = coordinator()->KeepLease(lease, Ample());
    if (in_time.Expired()) GTEST_SKIP() << "this host stood still";
    ASSERT_TRUE(IsOk(kept));
  }
  EXPECT_EQ("leased=1", Listed(coordinator(), ""));
}

TEST_F(EtcdCoordinatorTest, WakesByAChangeUnderThePrefix) {
  EXPECT_TRUE(Create(coordinator(), "a/1", "1"));
  int64_t revision = 0;
  ReadAll(coordinator(), "a/", &revision);
  // Neither what was there before, nor others, nor nothing; and long enough to be asked for signs
  // of life.
  EXPECT_TRUE(Create(coordinator(), "b/1", "1"));
  EXPECT_TRUE(IsFailure(coordinator()->AwaitChange("a/", revision, After(seconds(5))),
                        Status::Code::kTimedOut, "etcd " + etcd_->endpoint()));

  // A value, a deletion, and one that took place before the wait; then one that comes later.
  const auto woken_by = [&](const std::vector<Change>& changes, milliseconds delay) {
    int64_t seen = 0;
    ReadAll(coordinator(), "a/", &seen);
    std::thread other([&] {
      std::this_thread::sleep_for(delay);
      bool done = false;
      EXPECT_TRUE(IsOk(Commit(coordinator(), changes, &done)));
      EXPECT_TRUE(done);
    });
    if (delay == milliseconds(0)) other.join();
    EXPECT_TRUE(IsOk(coordinator()->AwaitChange("a/", seen, Ample())));
    if (other.joinable()) other.join();
    int64_t after = 0;
    ReadAll(coordinator(), "a/", &after);
    EXPECT_GT(after, seen);
  };
  woken_by({{.key = "a/2", .value = "1"}}, milliseconds(0));
  woken_by({{.key = "a/3", .value = "1"}}, milliseconds(300));
  woken_by({{.key = "a/3", .expected = ChangedOf(coordinator(), "a/3")}}, milliseconds(300));
  woken_by({{.key = "a/2", .expected = ChangedOf(coordinator(), "a/2"), .value = "2"}},
           milliseconds(3000));
}

TEST_F(EtcdCoordinatorTest, WakesWhereChangesAreNoLongerKnown) {
  int64_t revision = 0;
  ReadAll(coordinator(), "", &revision);
  EXPECT_TRUE(Create(coordinator(), "a", "1"));
  EXPECT_TRUE(Create(coordinator(), "b", "1"));
  const int64_t compacted = ChangedOf(coordinator(), "b");
  const ProcessResult result = etcd_->Control({"compaction", std::to_string(compacted)});
  EXPECT_EQ(0, result.exit_code) << result.output;
  EXPECT_TRUE(IsOk(coordinator()->AwaitChange("z", revision, Ample())));
}

/// All calls, each with this deadline, fail as they are to when no endpoint answers.
void ExpectOutage(Coordinator* coordinator, milliseconds timeout) {
  std::vector<Entry> entries;
  int64_t revision = 1;
  bool done = true;
  Lease lease = 0;
  const Status read = coordinator->Read("", After(timeout), &entries, &revision);
  EXPECT_TRUE(IsOutage(read)) << read.ToString();
  const Status commit =
      coordinator->Commit({{.key = "during", .value = "1"}}, After(timeout), &done);
  EXPECT_TRUE(IsOutage(commit)) << commit.ToString();
  EXPECT_FALSE(done);
  const Status await = coordinator->AwaitChange("", 1, After(timeout));
  EXPECT_TRUE(IsOutage(await)) << await.ToString();
  const Status grant = coordinator->GrantLease(seconds(60), After(timeout), &lease);
  EXPECT_TRUE(IsOutage(grant)) << grant.ToString();
  const Status keep = coordinator->KeepLease(1, After(timeout));
  EXPECT_TRUE(IsOutage(keep)) << keep.ToString();
  const Status end = coordinator->EndLease(1, After(timeout));
  EXPECT_TRUE(IsOutage(end)) << end.ToString();
}

TEST_F(EtcdCoordinatorTest, AnswersWhileKilledAndWorksWhenBack) {
  EXPECT_TRUE(Create(coordinator(), "before", "1"));
  etcd_->Kill();
  // A dead endpoint refuses connections, so there is nothing to wait for.
  ExpectOutage(coordinator(), seconds(60));
  ExpectOutage(coordinator(), milliseconds(0));
  etcd_->Start();
  AwaitBack(coordinator());
  EXPECT_EQ("before=1", Listed(coordinator(), "before"));
  EXPECT_TRUE(Create(coordinator(), "after", "1"));

  etcd_->Stop();
  ExpectOutage(coordinator(), seconds(60));
  etcd_->Start();
  AwaitBack(coordinator());
  EXPECT_EQ("after=1 before=1", Listed(coordinator(), ""));

  // Back before anything is called.
  etcd_->Kill();
  etcd_->Start();
  AwaitBack(coordinator());
  EXPECT_TRUE(Create(coordinator(), "last", "1"));
  etcd_->Stop();
  etcd_->Start();
  AwaitBack(coordinator());
  EXPECT_EQ("after=1 before=1 last=1", Listed(coordinator(), ""));
}

TEST_F(EtcdCoordinatorTest, AnswersWhileFrozen) {
  EXPECT_TRUE(Create(coordinator(), "before", "1"));
  etcd_->Freeze();
  ExpectOutage(coordinator(), milliseconds(200));
  std::vector<Entry> entries;
  int64_t revision = 0;
  EXPECT_TRUE(IsFailure(coordinator()->Read("", After(milliseconds(200)), &entries, &revision),
                        Status::Code::kTimedOut, etcd_->endpoint()));
  etcd_->Continue();
  EXPECT_EQ("before=1", Listed(coordinator(), "before"));
}

// The deadline is far away: what answers is that the peer gives no sign of life.
TEST_F(EtcdCoordinatorTest, NoticesThatAPeerIsFrozen) {
  const auto far = [] { return After(std::chrono::minutes(5)); };
  EXPECT_TRUE(Create(coordinator(), "before", "1"));
  int64_t revision = 0;
  ReadAll(coordinator(), "", &revision);
  Status waited;
  std::atomic<bool> waiting{false};
  std::thread waiter([&] {
    waiting = true;
    waited = coordinator()->AwaitChange("", revision, far());
  });
  while (!waiting) std::this_thread::yield();
  std::this_thread::sleep_for(milliseconds(500));
  etcd_->Freeze();
  bool done = true;
  const Status commit = coordinator()->Commit({{.key = "during", .value = "1"}}, far(), &done);
  EXPECT_TRUE(IsFailure(commit, Status::Code::kUnavailable, etcd_->endpoint()));
  EXPECT_FALSE(done);
  waiter.join();
  EXPECT_TRUE(IsFailure(waited, Status::Code::kUnavailable, etcd_->endpoint()));
  etcd_->Continue();
}

TEST_F(EtcdCoordinatorTest, EndsWaitsWhenKilled) {
  int64_t revision = 0;
  ReadAll(coordinator(), "", &revision);
  std::vector<Status> waited(4);
  std::vector<std::thread> waiters;
  for (Status& status : waited) {
    waiters.emplace_back(
        [&] { status = coordinator()->AwaitChange("", revision, After(std::chrono::minutes(5))); });
  }
  std::this_thread::sleep_for(milliseconds(500));
  etcd_->Kill();
  for (std::thread& waiter : waiters) waiter.join();
  for (const Status& status : waited) {
    EXPECT_TRUE(IsFailure(status, Status::Code::kUnavailable, etcd_->endpoint()));
  }
}

TEST_F(EtcdCoordinatorTest, GoesOnToTheEndpointThatWorks) {
  const MuteListener mute;
  const std::string dead = DeadEndpoint();
  const std::string named = "localhost" + etcd_->endpoint().substr(etcd_->endpoint().find(':'));
  // A coordinator for each call, so that none has learnt by another where to go.
  const std::string endpoints = dead + "," + mute.endpoint() + "," + etcd_->endpoint();
  EXPECT_TRUE(Create(Open(endpoints).get(), "a", "1"));
  int64_t revision = 0;
  EXPECT_EQ(1U, ReadAll(Open(endpoints).get(), "a", &revision).size());
  EXPECT_TRUE(IsOk(Open(endpoints)->AwaitChange("a", revision - 1, Ample())));
  Lease lease = 0;
  EXPECT_TRUE(IsOk(Open(endpoints)->GrantLease(seconds(60), Ample(), &lease)));
  EXPECT_TRUE(IsOk(Open(endpoints)->KeepLease(lease, Ample())));
  EXPECT_TRUE(IsOk(Open(endpoints)->EndLease(lease, Ample())));
  // In another order. A deadline that is shorter than an endpoint's usual share is shared, too.
  EXPECT_TRUE(Create(Open(named + "," + mute.endpoint()).get(), "b", "1"));
  std::vector<Entry> entries;
  EXPECT_TRUE(IsOk(Open(mute.endpoint() + "," + named)
                       ->Read("", After(milliseconds(3500)), &entries, &revision)));
  EXPECT_EQ(2U, entries.size());
  // All are named if none works.
  const std::shared_ptr<Coordinator> none = Open(mute.endpoint() + "," + dead);
  const Status read = none->Read("", After(seconds(1)), &entries, &revision);
  EXPECT_TRUE(IsOutage(read)) << read.ToString();
  EXPECT_NE(std::string::npos, read.ToString().find(mute.endpoint())) << read.ToString();
  EXPECT_NE(std::string::npos, read.ToString().find(dead)) << read.ToString();
  ExpectOutage(none.get(), milliseconds(500));
}

// Two clusters that look like one show which of them a call reached.
TEST_F(EtcdCoordinatorTest, NeverSendsACommitTwice) {
  EtcdProcess second;
  const std::shared_ptr<Coordinator> both = Open(etcd_->endpoint() + "," + second.endpoint());
  EXPECT_TRUE(Create(both.get(), "first", "1"));
  etcd_->Freeze();
  bool done = true;
  const Status commit = Commit(both.get(), {{.key = "unknown", .value = "1"}}, &done);
  EXPECT_TRUE(IsOutage(commit)) << commit.ToString();
  EXPECT_FALSE(done);
  EXPECT_EQ("", Listed(Open(second.endpoint()).get(), ""));
  // What can be repeated is, at the other one, where the next Commit goes as well.
  EXPECT_EQ("", Listed(both.get(), ""));
  EXPECT_TRUE(Create(both.get(), "second", "1"));
  EXPECT_EQ("second=1", Listed(Open(second.endpoint()).get(), ""));
  // A Commit that was not sent moves on.
  second.Kill();
  etcd_->Continue();
  EXPECT_TRUE(Create(both.get(), "third", "1"));
  EXPECT_EQ("third=1", Listed(coordinator(), "third"));
}

TEST(EtcdClusterTest, OutlivesALostMemberAndNotALostMajority) {
  if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd and etcdctl are not installed";
  EtcdCluster cluster(3);
  const std::shared_ptr<Coordinator> all = Open(cluster.endpoints());
  EXPECT_TRUE(Create(all.get(), "a", "1"));
  cluster[0].Kill();
  // It may have been the leader, and the others choose one meanwhile.
  std::vector<Entry> entries;
  int64_t revision = 0;
  const Deadline end = Ample();
  Status read;
  do {
    read = all->Read("", After(seconds(10)), &entries, &revision);
  } while (IsOutage(read) && !end.Expired());
  EXPECT_TRUE(IsOk(read));
  ASSERT_EQ(1U, entries.size());

  // What waits at the member that is left is told when it has lost the others.
  Status waited;
  std::thread waiter(
      [&] { waited = all->AwaitChange("", revision, After(std::chrono::minutes(5))); });
  std::this_thread::sleep_for(milliseconds(500));
  cluster[1].Kill();
  waiter.join();
  EXPECT_TRUE(IsFailure(waited, Status::Code::kUnavailable));
  ExpectOutage(all.get(), seconds(5));
  const std::shared_ptr<Coordinator> left = Open(cluster[2].endpoint());
  EXPECT_TRUE(IsFailure(left->AwaitChange("", revision, After(std::chrono::minutes(5))),
                        Status::Code::kUnavailable, "no leader"));
}

TEST(EtcdAddressTest, NamesWhatIsMalformed) {
  UseEtcd();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "an endpoint is empty"},
      {"127.0.0.1:2379,", "an endpoint is empty"},
      {",127.0.0.1:2379", "an endpoint is empty"},
      {"127.0.0.1", "'127.0.0.1' is not HOST:PORT"},
      {"a:1,b", "'b' is not HOST:PORT"},
      {":2379", "'' of ':2379'"},
      {"http://a:2379", "'http://a'"},
      {"a b:2379", "'a b'"},
      {"::1:2379", "in brackets"},
      {"[::1:2379", "in brackets"},
      {"[no]:2379", "'[no]'"},
      {"a:", "port of 'a:'"},
      {"a:0", "port of 'a:0'"},
      {"a:65536", "port of 'a:65536'"},
      {"a:2379x", "port of 'a:2379x'"},
  };
  for (const auto& [address, culprit] : cases) {
    std::shared_ptr<Coordinator> coordinator;
    EXPECT_TRUE(IsFailure(OpenCoordinator("etcd:" + address, &coordinator),
                          Status::Code::kInvalidArgument, culprit));
    EXPECT_EQ(nullptr, coordinator);
  }
  for (const std::string address :
       {"a:1", "node-1.example.org:65535", "10.0.0.1:2379,[::1]:2379"}) {
    EXPECT_EQ("etcd " + address, Open(address)->name());
  }
}

TEST(EtcdAddressTest, ReachesIpv6AddressesInBrackets) {
  // Nothing listens there, which is known only to those that understand the address.
  const std::string endpoint = "[::1]:" + std::to_string(FreePort());
  std::vector<Entry> entries;
  int64_t revision = 0;
  EXPECT_TRUE(IsFailure(Open(endpoint)->Read("", Ample(), &entries, &revision),
                        Status::Code::kUnavailable, endpoint));
}

TEST(EtcdAddressTest, IsOneOfTheSchemesThatAProgramKnows) {
  UseEtcd();
  std::shared_ptr<Coordinator> coordinator;
  EXPECT_TRUE(IsFailure(OpenCoordinator("zookeeper:127.0.0.1:2181", &coordinator),
                        Status::Code::kNotSupported, "zookeeper"));
  EXPECT_TRUE(IsFailure(OpenCoordinator("etcd", &coordinator), Status::Code::kInvalidArgument,
                        "SCHEME:ADDRESS"));
}

}  // namespace
}  // namespace nacre
