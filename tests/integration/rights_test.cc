// Goal: owners, followers and operators do what their secrets allow and nothing else, a secret is
// replaced while all of them work, and a tenant at its quota stops no other.
// Method: nacre-memnode processes that share a file with secrets, which nacre-ctl changes under a
// load; databases opened with each secret.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "pool/connect/pool_secret.h"
#include "pool/wire/node_stats.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/clock.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kAdmin[] = "0123456789abcdef-of-operators";
constexpr char kOwner[] = "0123456789abcdef-of-the-owner-of-orders";
constexpr char kFollower[] = "0123456789abcdef-of-followers";

class RightsTest : public testing::TestWithParam<std::string> {
 protected:
  RightsTest() {
    WriteSecrets("");
    nodes_ = std::make_unique<MemnodeProcesses>(
        3, MemnodeProcessOptions{.scheme = GetParam(), .parameters = "?secret_file=" + path_});
  }

  void WriteSecrets(const std::string& more) {
    std::ofstream(path_ + ".tmp") << "nacre-secrets 1\nadmin " << kAdmin << " ops\nwrite:orders* "
                                  << kOwner << " owner\nread " << kFollower << " follower\n"
                                  << more;
    EXPECT_EQ(chmod((path_ + ".tmp").c_str(), 0600), 0);
    EXPECT_EQ(rename((path_ + ".tmp").c_str(), path_.c_str()), 0);
  }
  void TellNodes() {
    for (size_t i = 0; i < nodes_->size(); ++i) kill((*nodes_)[i].pid(), SIGHUP);
  }
  Status OpenPoolWith(const std::string& secret, std::shared_ptr<pool::PoolImpl>* pool) {
    pool::PoolOpenOptions options;
    options.slab_bytes = 1 << 20;
    options.pool.secret = secret;
    return pool::OpenPool(nodes_->pool_uri(), options, Clock::System(), pool);
  }
  /// Options of a client with this secret.
  Options With(const std::string& secret) {
    std::shared_ptr<pool::PoolImpl> pool;
    EXPECT_TRUE(IsOk(OpenPoolWith(secret, &pool)));
    Options options = SmallTableOptions(pool);
    options.follow_interval = milliseconds(5);
    return options;
  }
  /// Waits until all nodes serve the secret, or none does.
  void AwaitServed(const std::string& secret, bool served) {
    const Deadline deadline = Deadline::After(Clock::System(), seconds(60));
    while (true) {
      std::shared_ptr<pool::PoolImpl> pool;
      size_t serve = 0;
      if (OpenPoolWith(secret, &pool).ok()) {
        for (NodeId i = 0; i < 3; ++i) serve += pool->client()->Ping(i).ok() ? 1 : 0;
      }
      if (serve == (served ? nodes_->size() : 0)) return;
      ASSERT_FALSE(deadline.Expired()) << serve << " nodes serve it";
      Clock::System()->SleepFor(milliseconds(20));
    }
  }
  /// The secret that nacre-ctl drew for the right.
  std::string Add(const std::string& rights, const std::string& name) {
    const ProcessResult added = RunBinary("nacre-ctl", {"secrets", "add", path_, rights, name});
    EXPECT_EQ(added.exit_code, 0) << added.output;
    pool::SecretFile file;
    EXPECT_TRUE(IsOk(pool::ReadSecretFile(path_, nullptr, &file)));
    return file.lines.back().secret;
  }

  const TempFolder folder_;
  const std::string path_ = folder_.File("secrets");
  std::unique_ptr<MemnodeProcesses> nodes_;
};

INSTANTIATE_TEST_SUITE_P(All, RightsTest, testing::Values("shm", "tcp"),
                         [](const auto& each) { return each.param; });

TEST_P(RightsTest, AFollowerFollowsAndAnOwnerOwnsWhatIsItsOwn) {
  std::unique_ptr<DB> owner;
  ASSERT_TRUE(IsOk(DB::Open(With(kOwner), "orders", &owner)));
  ASSERT_TRUE(IsOk(owner->Put({}, "key", "one")));
  std::unique_ptr<DB> follower;
  ASSERT_TRUE(IsOk(DB::OpenAsSecondary(With(kFollower), "orders", &follower)));
  std::string value;
  ASSERT_TRUE(IsOk(follower->Get({}, "key", &value)));
  EXPECT_EQ(value, "one");
  for (int i = 0; i < 2'000; ++i) {
    ASSERT_TRUE(IsOk(owner->Put({}, "key" + std::to_string(i), TestValue(i, 300))));
  }
  ASSERT_TRUE(IsOk(owner->Flush({})));
  ASSERT_TRUE(IsOk(owner->CompactRange({}, nullptr, nullptr)));
  ASSERT_TRUE(IsOk(follower->TryCatchUpWithPrimary()));
  ASSERT_TRUE(IsOk(follower->Get({}, "key1999", &value)));
  EXPECT_EQ(value, TestValue(1999, 300));

  std::unique_ptr<DB> other;
  const char* const denied = "has the right";
  EXPECT_TRUE(
      IsFailure(DB::Open(With(kFollower), "mine", &other), Status::Code::kNotSupported, denied));
  EXPECT_TRUE(
      IsFailure(DB::Open(With(kOwner), "billing", &other), Status::Code::kNotSupported, denied));
  EXPECT_TRUE(IsOk(owner->Close()));
  // Now that it is closed, nothing but the right is in the way.
  EXPECT_TRUE(
      IsFailure(DB::Open(With(kFollower), "orders", &other), Status::Code::kNotSupported, denied));
  EXPECT_TRUE(IsFailure(DestroyDB("orders", With(kFollower)), Status::Code::kNotSupported, denied));
  EXPECT_EQ(other, nullptr);

  const auto ctl = [&](const std::string& secret) {
    return RunBinary("nacre-ctl", {"repair", "pause", "--pool=" + nodes_->pool_uri()}, 20,
                     {"NACRE_SECRET=" + secret});
  };
  for (const std::string secret : {kFollower, kOwner}) {
    const ProcessResult result = ctl(secret);
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_NE(result.output.find("not 'admin'"), std::string::npos) << result.output;
  }
  EXPECT_EQ(ctl(kAdmin).exit_code, 0);

  ASSERT_TRUE(IsOk(follower->Get({}, "key1999", &value))) << "all this time";
  follower.reset();
  ASSERT_TRUE(IsOk(DB::Open(With(kOwner), "orders", &owner)));
  EXPECT_TRUE(IsOk(owner->Get({}, "key1999", &value)));
  EXPECT_TRUE(IsOk(owner->Close()));
  EXPECT_TRUE(IsOk(DestroyDB("orders", With(kOwner))));
}

/// Counts how often a client has taken its secret from the file.
class TakenLog final : public Logger {
 public:
  void Log(LogLevel /*level*/, std::string_view message) override {
    if (message.find("are in force") != std::string_view::npos) taken_.fetch_add(1);
  }
  int taken() const { return taken_.load(); }
  void AwaitMore(int before) const {
    while (taken_.load() <= before) Clock::System()->SleepFor(milliseconds(1));
  }

 private:
  std::atomic<int> taken_{0};
};

/// Puts the same keys again and again, into a database that stays open.
class Load {
 public:
  static constexpr uint64_t kKeys = 4'000;

  explicit Load(const Options& options) : thread_([this, options] { Run(options); }) {}
  ~Load() { Stop(); }
  void Stop() {
    stopping_.store(true);
    if (thread_.joinable()) thread_.join();
  }
  bool failed() const { return failed_.load(); }
  uint64_t written() const { return written_.load(); }
  void AwaitMore(uint64_t count) const {
    const uint64_t until = written() + count;
    while (written() < until && !failed()) Clock::System()->SleepFor(milliseconds(1));
  }

 private:
  void Check(const Status& status) {
    EXPECT_TRUE(IsOk(status));
    if (!status.ok()) failed_.store(true);
  }
  void Run(const Options& options) {
    std::unique_ptr<DB> db;
    Check(DB::Open(options, "orders", &db));
    for (uint64_t i = 0; !stopping_.load() && !failed(); ++i) {
      Check(db->Put({}, "key" + std::to_string(i % kKeys), TestValue(i, 200)));
      written_.store(i + 1);
    }
    if (db != nullptr) Check(db->Close());
  }

  std::atomic<bool> failed_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> written_{0};
  std::thread thread_;
};

TEST_P(RightsTest, SecretsAreReplacedUnderALoadWithoutAnError) {
  // The owner has its secret from a file, and its database stays open all the time.
  const std::string owners_file = folder_.File("owner");
  const auto give_owner = [&](const std::string& secret) {
    std::ofstream(owners_file + ".tmp") << secret << "\n";
    EXPECT_EQ(chmod((owners_file + ".tmp").c_str(), 0600), 0);
    EXPECT_EQ(rename((owners_file + ".tmp").c_str(), owners_file.c_str()), 0);
  };
  give_owner(kOwner);
  const auto log = std::make_shared<TakenLog>();
  pool::PoolOpenOptions open;
  open.slab_bytes = 1 << 20;
  open.pool.info_log = log;
  std::shared_ptr<pool::PoolImpl> owners_pool;
  ASSERT_TRUE(IsOk(pool::OpenPool(nodes_->pool_uri() + "?secret_file=" + owners_file, open,
                                  Clock::System(), &owners_pool)));
  Load load(SmallTableOptions(owners_pool));
  load.AwaitMore(2 * Load::kKeys);
  std::unique_ptr<DB> follower;
  ASSERT_TRUE(IsOk(DB::OpenAsSecondary(With(kFollower), "orders", &follower)));

  // The nodes find out by themselves, one after the other.
  const std::string next_owner = Add("write:orders*", "owner-2");
  const std::string next_admin = Add("admin", "ops-2");
  AwaitServed(next_owner, true);
  AwaitServed(next_admin, true);
  log->AwaitMore(0);
  const int taken = log->taken();
  give_owner(next_owner);
  log->AwaitMore(taken);
  load.AwaitMore(2'000);
  // First what the nodes prove to one another; then what no process is to prove any more.
  EXPECT_EQ(RunBinary("nacre-ctl", {"secrets", "prefer", path_, "ops-2"}).exit_code, 0);
  TellNodes();
  load.AwaitMore(2'000);
  for (const std::string name : {"owner", "ops"}) {
    EXPECT_EQ(RunBinary("nacre-ctl", {"secrets", "retire", path_, name}).exit_code, 0);
  }
  TellNodes();
  AwaitServed(kOwner, false);
  AwaitServed(kAdmin, false);
  load.AwaitMore(10'000);
  load.Stop();
  EXPECT_FALSE(load.failed());
  for (const std::string name : {"owner", "ops"}) {
    EXPECT_EQ(RunBinary("nacre-ctl", {"secrets", "revoke", path_, name}).exit_code, 0);
  }
  TellNodes();

  ASSERT_TRUE(IsOk(follower->TryCatchUpWithPrimary()));
  std::string value;
  for (uint64_t i = load.written() - Load::kKeys; i < load.written(); ++i) {
    ASSERT_TRUE(IsOk(follower->Get({}, "key" + std::to_string(i % Load::kKeys), &value)));
    ASSERT_EQ(value, TestValue(i, 200));
  }
  std::shared_ptr<pool::PoolImpl> pool;
  ASSERT_TRUE(IsOk(OpenPoolWith(next_admin, &pool)));
  EXPECT_GT(SumOverNodes(pool.get(), &pool::NodeStats::compactions), 0u);
}

TEST_P(RightsTest, ARunningClientTakesItsNewSecret) {
  const std::string file = folder_.File("client");
  std::ofstream(file) << kOwner;
  pool::PoolOpenOptions options;
  options.slab_bytes = 1 << 20;
  std::shared_ptr<pool::PoolImpl> pool;
  ASSERT_TRUE(IsOk(pool::OpenPool(nodes_->pool_uri() + "?secret_file=" + file, options,
                                  Clock::System(), &pool)));
  const std::string next = Add("write:orders*", "owner-2");
  TellNodes();
  AwaitServed(next, true);
  std::ofstream(file) << next;
  EXPECT_EQ(RunBinary("nacre-ctl", {"secrets", "revoke", path_, "owner"}).exit_code, 0);
  TellNodes();
  // Its connections end, and it comes back by itself, with the new secret.
  AwaitServed(kOwner, false);
  const Deadline deadline = Deadline::After(Clock::System(), seconds(60));
  while (!pool->client()->Ping(0).ok() && !deadline.Expired()) {
    Clock::System()->SleepFor(milliseconds(10));
  }
  EXPECT_TRUE(IsOk(pool->client()->Ping(0)));
}

TEST_P(RightsTest, ATenantAtItsQuotaStopsNoOther) {
  WriteSecrets("quota orders* 6MiB\n");
  TellNodes();
  std::unique_ptr<DB> full;
  std::unique_ptr<DB> other;
  ASSERT_TRUE(IsOk(DB::Open(With(kOwner), "orders", &full)));
  ASSERT_TRUE(IsOk(DB::Open(With(kAdmin), "billing", &other)));
  Status status;
  for (uint64_t i = 0; i < 200'000 && status.ok(); ++i) {
    status = full->Put({}, "key" + std::to_string(i), TestValue(i, 1000));
  }
  EXPECT_TRUE(IsFailure(status, Status::Code::kNoSpace));
  for (uint64_t i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(IsOk(other->Put({}, "key" + std::to_string(i), TestValue(i, 1000))));
  }
  // Reads go on, and so do writes once there is room.
  std::string value;
  EXPECT_TRUE(IsOk(full->Get({}, "key0", &value)));
  WriteSecrets("quota orders* 40MiB\n");
  TellNodes();
  const Deadline deadline = Deadline::After(Clock::System(), seconds(60));
  while (!full->Put({}, "key", "value").ok() && !deadline.Expired()) {
    Clock::System()->SleepFor(milliseconds(10));
  }
  EXPECT_TRUE(IsOk(full->Put({}, "key", "value")));
}

}  // namespace
}  // namespace nacre
