// Goal: members of a keyspace take requests only from processes that know a secret of their pool,
// let them do what that allows, encrypt what they say if the pool is encrypted, and follow their
// file with secrets.
// Method: nacre-memnode processes with secrets and an etcd; members in this process, each with a
// file or a secret of its own; connections to a member past the API; nacre-ctl.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "nacre/utilities/etcd.h"
#include "nacre/utilities/sharded_db.h"
#include "pool/connect/peer_connection.h"
#include "pool/connect/peer_device.h"
#include "rdma/secret_ring.h"
#include "sharding/remote/member_request.pb.h"
#include "tests/support/process/etcd_process.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/clock.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kOwner[] = "0123456789abcdef-of-the-members";
constexpr char kNext[] = "0123456789abcdef-of-the-members-later";
constexpr char kReader[] = "0123456789abcdef-of-readers";
constexpr char kOther[] = "0123456789abcdef-of-another-tenant";
constexpr int kCtlSeconds = 60;

class MemberRightsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd is not installed";
    UseEtcd();
    etcd_ = std::make_unique<EtcdProcess>();
  }

  /// Memory nodes that know all secrets.
  void StartNodes(const std::string& parameters = "") {
    const std::string path =
        Write("nodes", {"admin 0123456789abcdef-of-operators", Line("write:orders*", kOwner),
                        Line("write:orders*", kNext), Line("read", kReader),
                        Line("write:billing*", kOther)});
    nodes_ = std::make_unique<MemnodeProcesses>(
        2,
        MemnodeProcessOptions{
            .scheme = "tcp", .size = "256MiB", .parameters = "?secret_file=" + path + parameters});
  }
  static std::string Line(const std::string& rights, const std::string& secret) {
    return rights + " " + secret;
  }
  /// Writes a file with these secrets; returns its path.
  std::string Write(const std::string& name, const std::vector<std::string>& lines) {
    const std::string path = folder_.File(name);
    std::ofstream file(path + ".tmp");
    file << "nacre-secrets 1\n";
    for (const std::string& line : lines) file << line << "\n";
    file.close();
    EXPECT_EQ(chmod((path + ".tmp").c_str(), 0600), 0);
    EXPECT_EQ(rename((path + ".tmp").c_str(), path.c_str()), 0);
    return path;
  }

  std::string UriWith(const std::string& secret_file, const std::string& parameters = "") const {
    return nodes_->pool_uri() + "?secret_file=" + secret_file + parameters;
  }
  ShardedOptions OptionsOf(const std::string& pool_uri) const {
    ShardedOptions options(SmallTableOptions(nullptr));
    options.pool_uri = pool_uri;
    options.boundaries = {"m"};
    options.coordinator = "etcd:" + etcd_->endpoint();
    options.operation_timeout = seconds(10);
    return options;
  }
  Status OpenMember(const std::string& pool_uri, std::unique_ptr<ShardedDB>* db) const {
    ShardedOptions options = OptionsOf(pool_uri);
    options.member_address = "tcp:127.0.0.1:0";
    return ShardedDB::Open(options, "orders", db);
  }
  /// The address at which the only member serves.
  static std::string AddressOf(ShardedDB* db) {
    std::vector<ShardMember> members;
    EXPECT_TRUE(IsOk(db->GetMembers(&members)));
    for (const ShardMember& member : members) {
      if (!member.address.empty()) return member.address;
    }
    return "";
  }

  /// Whether a process that protects itself so is served at `address`.
  static Status Knock(const std::string& address, const pool::PeerSecurity& security) {
    std::unique_ptr<rdma::Device> device;
    NACRE_RETURN_IF_ERROR(pool::OpenPeerDevice(address, security, Clock::System(), &device));
    std::unique_ptr<pool::PeerConnection> connection;
    NACRE_RETURN_IF_ERROR(
        pool::PeerConnection::Connect(device.get(), Clock::System(), address,
                                      Deadline::After(Clock::System(), seconds(2)), &connection));
    std::string reply;
    bool sent = false;
    return connection->Call(sharding::MemberRequest().SerializeAsString(),
                            Deadline::After(Clock::System(), seconds(2)), &reply, &sent);
  }
  static Status KnockWith(const std::string& address, const std::string& secret,
                          const std::string& tls = "") {
    pool::PeerSecurity security{.tls = tls};
    if (!secret.empty()) NACRE_RETURN_IF_ERROR(rdma::SecretRing::OfOne(secret, &security.ring));
    return Knock(address, security);
  }

  const TempFolder folder_;
  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<MemnodeProcesses> nodes_;
};

TEST_F(MemberRightsTest, OnlyThoseWithASecretOfTheMembersAreServed) {
  StartNodes();
  const std::string uri = UriWith(Write("owner", {Line("write:orders*", kOwner)}));
  std::unique_ptr<ShardedDB> member;
  ASSERT_TRUE(IsOk(OpenMember(uri, &member)));
  // It owns no shards, and sends what it writes to the other.
  std::unique_ptr<ShardedDB> client;
  ASSERT_TRUE(IsOk(ShardedDB::Open(OptionsOf(uri), "orders", &client)));
  ASSERT_TRUE(IsOk(client->Put({}, "a", "1")));
  ASSERT_TRUE(IsOk(client->Put({}, "x", "2")));
  std::string value;
  ASSERT_TRUE(IsOk(member->Get({}, "x", &value)));
  EXPECT_EQ(value, "2");

  const std::string address = AddressOf(member.get());
  EXPECT_TRUE(IsOk(KnockWith(address, kOwner)));
  EXPECT_FALSE(KnockWith(address, "").ok());
  EXPECT_FALSE(KnockWith(address, "0123456789abcdef-of-nobody").ok());
  // A secret of the pool that is none of the members'.
  EXPECT_FALSE(KnockWith(address, kOther).ok());

  const auto ctl = [&](std::vector<std::string> words, const std::string& pool_uri) {
    words.push_back("--coordinator=etcd:" + etcd_->endpoint());
    if (!pool_uri.empty()) words.push_back("--pool=" + pool_uri);
    return RunBinary("nacre-ctl", words, kCtlSeconds);
  };
  EXPECT_NE(ctl({"shards", "orders"}, "").exit_code, 0);
  const ProcessResult shown = ctl({"shards", "orders"}, uri);
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
  const ProcessResult paused = ctl({"balance", "orders", "pause"}, uri);
  EXPECT_EQ(paused.exit_code, 0) << paused.output;
}

TEST_F(MemberRightsTest, AReaderReadsAndChangesNothing) {
  StartNodes();
  const std::string members =
      UriWith(Write("owner", {Line("write:orders*", kOwner), Line("read", kReader)}));
  std::unique_ptr<ShardedDB> member;
  ASSERT_TRUE(IsOk(OpenMember(members, &member)));
  ASSERT_TRUE(IsOk(member->Put({}, "a", "1")));
  ASSERT_TRUE(IsOk(member->Put({}, "x", "2")));

  const std::string readers = UriWith(Write("reader", {Line("read", kReader)}));
  std::unique_ptr<ShardedDB> reader;
  ASSERT_TRUE(IsOk(ShardedDB::Open(OptionsOf(readers), "orders", &reader)));
  std::string value;
  ASSERT_TRUE(IsOk(reader->Get({}, "a", &value)));
  EXPECT_EQ(value, "1");
  {
    const std::unique_ptr<Iterator> iterator(reader->NewIterator({}));
    int seen = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++seen;
    EXPECT_TRUE(IsOk(iterator->status()));
    EXPECT_EQ(seen, 2);
  }
  const char* const denied = "has the right 'read'";
  EXPECT_TRUE(IsFailure(reader->Put({}, "a", "3"), Status::Code::kNotSupported, denied));
  WriteBatch both;
  ASSERT_TRUE(IsOk(both.Put("a", "3")));
  ASSERT_TRUE(IsOk(both.Put("x", "3")));
  EXPECT_TRUE(IsFailure(reader->Write({}, &both), Status::Code::kNotSupported, denied));
  EXPECT_TRUE(
      IsFailure(reader->CompactRange({}, nullptr, nullptr), Status::Code::kNotSupported, denied));
  EXPECT_TRUE(
      IsFailure(reader->SetBalance({{"paused", "true"}}), Status::Code::kNotSupported, denied));
  std::vector<ShardMember> all;
  ASSERT_TRUE(IsOk(reader->GetMembers(&all)));
  std::string answer;
  EXPECT_TRUE(IsFailure(reader->AskMember(all.front().id, "anything", seconds(10), &answer),
                        Status::Code::kNotSupported, denied));
  ASSERT_TRUE(IsOk(member->Get({}, "x", &value)));
  EXPECT_EQ(value, "2");
}

TEST_F(MemberRightsTest, WhereThePoolIsEncryptedMembersAre) {
  StartNodes("&tls=all");
  const std::string uri = UriWith(Write("owner", {Line("write:orders*", kOwner)}), "&tls=all");
  std::unique_ptr<ShardedDB> member;
  ASSERT_TRUE(IsOk(OpenMember(uri, &member)));
  std::unique_ptr<ShardedDB> client;
  ASSERT_TRUE(IsOk(ShardedDB::Open(OptionsOf(uri), "orders", &client)));
  ASSERT_TRUE(IsOk(client->Put({}, "a", "1")));
  const std::string address = AddressOf(member.get());
  EXPECT_TRUE(IsOk(KnockWith(address, kOwner, "all")));
  // It would be understood by all who listen.
  EXPECT_FALSE(KnockWith(address, kOwner).ok());

  ShardedOptions options = OptionsOf(uri);
  options.member_address = "verbs:127.0.0.1:0";
  std::unique_ptr<ShardedDB> other;
  EXPECT_TRUE(IsFailure(ShardedDB::Open(options, "orders", &other), Status::Code::kInvalidArgument,
                        "tls=all"));
}

TEST_F(MemberRightsTest, OneSecretGivesWayToTheNextWithoutAnError) {
  StartNodes();
  std::vector<std::unique_ptr<ShardedDB>> members(2);
  std::vector<std::string> files;
  for (size_t i = 0; i < members.size(); ++i) {
    files.push_back(Write("member" + std::to_string(i), {Line("write:orders*", kOwner)}));
    ASSERT_TRUE(IsOk(OpenMember(UriWith(files[i]), &members[i])));
  }
  const auto replace = [&](size_t member, const std::vector<std::string>& secrets) {
    std::vector<std::string> lines;
    for (const std::string& secret : secrets) lines.push_back(Line("write:orders*", secret));
    Write("member" + std::to_string(member), lines);
  };
  const std::string address = AddressOf(members[0].get());
  int written = 0;
  const auto both_write = [&] {
    for (const auto& member : members) {
      for (const std::string key : {"a", "x"}) {
        EXPECT_TRUE(IsOk(member->Put({}, key, std::to_string(++written))));
      }
    }
  };
  const auto await = [&](const std::string& secret, bool served) {
    const Deadline deadline = Deadline::After(Clock::System(), seconds(60));
    while (KnockWith(address, secret).ok() != served) {
      ASSERT_FALSE(deadline.Expired()) << secret;
      both_write();
      Clock::System()->SleepFor(milliseconds(20));
    }
  };
  // Both take both; then both prove the next one; then the first is worth nothing any more.
  for (size_t i = 0; i < members.size(); ++i) replace(i, {kOwner, kNext});
  await(kNext, true);
  for (size_t i = 0; i < members.size(); ++i) replace(i, {kNext, kOwner});
  for (int i = 0; i < 100; ++i) {
    both_write();
    Clock::System()->SleepFor(milliseconds(20));
  }
  for (size_t i = 0; i < members.size(); ++i) replace(i, {kNext});
  await(kOwner, false);
  EXPECT_FALSE(KnockWith(address, kOwner).ok());
  both_write();
}

}  // namespace
}  // namespace nacre
