// Goal: a client may do what the rules of its user allow and nothing else, in each way that there
// is to give a command; users outlive a server by their file.
// Method: a server in this process over an embedded pool, and clients with sockets. Redis's own
// tests of ACL run too (redis_suite.py).

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "nacre/pool.h"
#include "server/server.h"
#include "tests/server/redis_client.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"

namespace nacre::server {
namespace {

constexpr const char* kNoKey =
    "-NOPERM this user has no permissions to access one of the keys used as arguments";

std::string NoCommand(const std::string& name) {
  return "-NOPERM this user has no permissions to run the '" + name + "' command";
}

class AclCommandsTest : public testing::Test {
 protected:
  void SetUp() override { Start(""); }

  void Start(const std::string& acl_file) {
    std::shared_ptr<Pool> pool;
    ASSERT_TRUE(IsOk(Pool::Open("embedded:?nodes=1&size=256MiB&slab_size=8MiB", &pool)));
    options_ = {};
    options_.database.pool = pool;
    options_.database.create_if_missing = true;
    options_.database.slab_size = 8 << 20;
    options_.database.write_buffer_size = 1 << 20;
    options_.listen = "127.0.0.1:0";
    options_.acl_file = acl_file;
    server_.reset();
    ASSERT_TRUE(IsOk(Server::Start(options_, &server_)));
    admin_ = Connect();
  }
  std::unique_ptr<RedisClient> Connect() const {
    return std::make_unique<RedisClient>(server_->address());
  }
  /// A client of a user with these rules.
  std::unique_ptr<RedisClient> As(const std::string& name, const std::string& rules) {
    EXPECT_EQ((*admin_)("ACL SETUSER " + name + " reset on nopass " + rules), "+OK");
    std::unique_ptr<RedisClient> client = Connect();
    EXPECT_EQ((*client)("AUTH " + name + " any"), "+OK");
    return client;
  }

  ServerOptions options_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<RedisClient> admin_;
};

TEST_F(AclCommandsTest, KeysAreReadAndWrittenByTheirPatterns) {
  const auto client = As("app", "+@all ~own:* %R~shared:* %W~inbox:*");
  RedisClient& app = *client;
  EXPECT_EQ((*admin_)("SET shared:1 text"), "+OK");
  EXPECT_EQ(app("SET own:1 x"), "+OK");
  EXPECT_EQ(app("GET own:1"), "$x");
  EXPECT_EQ(app("GET shared:1"), "$text");
  EXPECT_EQ(app("SET shared:1 x"), kNoKey);
  EXPECT_EQ(app("GETSET shared:1 x"), kNoKey);
  EXPECT_EQ(app("LPUSH inbox:1 x"), ":1");
  EXPECT_EQ(app("LRANGE inbox:1 0 -1"), kNoKey);
  EXPECT_EQ(app("LPOP inbox:1"), kNoKey);
  // That a key is there may be known by any right.
  EXPECT_EQ(app("EXISTS inbox:1 shared:1"), ":2");
  EXPECT_EQ(app("EXISTS other"), kNoKey);
  EXPECT_EQ(app("MGET own:1 other"), kNoKey);
  EXPECT_EQ(app("COPY shared:1 own:2"), ":1");
  EXPECT_EQ(app("COPY own:2 shared:2"), kNoKey);
  EXPECT_EQ(app("SET own:1 y GET"), "$x");
  EXPECT_EQ(app("SET inbox:s y"), "+OK");
  EXPECT_EQ(app("SET inbox:s y GET"), kNoKey);
  // Elsewhere values of all keys would be shown.
  EXPECT_EQ(app("NRANGE - +"), kNoKey);
}

TEST_F(AclCommandsTest, PipelinesAreCheckedCommandByCommand) {
  const auto client = As("app", "+get +set ~own:*");
  std::string sent;
  std::vector<std::string> expected;
  for (int i = 0; i < 200; ++i) {
    const bool own = i % 3 != 0;
    sent += (own ? "GET own:" : "GET other:") + std::to_string(i) + "\r\n";
    expected.push_back(own ? "$nil" : kNoKey);
  }
  client->SendBytes(sent);
  for (const std::string& each : expected) EXPECT_EQ(client->Read(), each);
}

TEST_F(AclCommandsTest, MultiAndScriptsLendNoRights) {
  const auto client = As("app", "+@all -incr ~own:*");
  RedisClient& app = *client;
  EXPECT_EQ(app("MULTI"), "+OK");
  EXPECT_EQ(app("INCR own:1"), NoCommand("incr"));
  EXPECT_TRUE(app("EXEC").starts_with("-EXECABORT"));
  // What is taken from the user between MULTI and EXEC is not done.
  EXPECT_EQ(app("MULTI"), "+OK");
  EXPECT_EQ(app("SET own:1 x"), "+QUEUED");
  EXPECT_EQ((*admin_)("ACL SETUSER app -set"), "+OK");
  EXPECT_EQ(app("EXEC"), "*[" + NoCommand("set") + "]");
  EXPECT_EQ(app("GET own:1"), "$nil");
  EXPECT_EQ((*admin_)("ACL SETUSER app +set"), "+OK");
  const std::string in_script = "-NOPERM ACL failure in script: ";
  EXPECT_EQ(client->Do({"EVAL", "return redis.pcall('incr', KEYS[1])", "1", "own:1"}),
            in_script + NoCommand("incr").substr(8));
  EXPECT_EQ(client->Do({"EVAL", "return redis.pcall('get', 'other')", "0"}),
            in_script + std::string(kNoKey).substr(8));
  EXPECT_EQ(client->Do({"EVAL", "return 1", "1", "other"}), kNoKey);
}

TEST_F(AclCommandsTest, RightsAreThoseOfThisMoment) {
  const auto client = As("app", "+@read ~*");
  RedisClient& app = *client;
  EXPECT_EQ(app("GET k"), "$nil");
  EXPECT_EQ(app("SET k v"), NoCommand("set"));
  EXPECT_EQ((*admin_)("ACL SETUSER app +@write"), "+OK");
  EXPECT_EQ(app("SET k v"), "+OK");
  EXPECT_EQ(app("ACL WHOAMI"), NoCommand("acl|whoami"));
  EXPECT_EQ((*admin_)("ACL DELUSER app"), ":1");
  EXPECT_EQ(app.Read(), "closed");
  // Another one of that name is not the one that was logged in.
  EXPECT_EQ((*Connect())("AUTH app any"),
            "-WRONGPASS invalid username-password pair or user is disabled.");
}

TEST_F(AclCommandsTest, PasswordsAreKeptAsHashes) {
  EXPECT_EQ((*admin_)("ACL SETUSER app on >first >second +ping"), "+OK");
  EXPECT_EQ((*admin_)("ACL LIST").find("first"), std::string::npos);
  for (const char* password : {"first", "second"}) {
    const auto client = Connect();
    EXPECT_EQ((*client)(std::string("AUTH app ") + password), "+OK");
    EXPECT_EQ((*client)("PING"), "+PONG");
  }
  EXPECT_EQ((*admin_)("ACL SETUSER app <first"), "+OK");
  EXPECT_TRUE((*Connect())("AUTH app first").starts_with("-WRONGPASS"));
  EXPECT_TRUE((*Connect())("AUTH app ").starts_with("-WRONGPASS"));
  EXPECT_EQ((*Connect())("HELLO 2 AUTH app second").substr(0, 9), "*[$server");
  // Not in part: neither of the rules holds.
  EXPECT_TRUE((*admin_)("ACL SETUSER app +get nonsense").starts_with("-ERR Error in ACL SETUSER"));
  EXPECT_NE((*admin_)("ACL LIST").find("-@all +ping"), std::string::npos);
}

TEST_F(AclCommandsTest, TheDefaultUserIsThatOfNewClients) {
  EXPECT_EQ((*admin_)("ACL SETUSER boss on >secret +@all ~* &*"), "+OK");
  EXPECT_EQ((*admin_)("AUTH boss secret"), "+OK");
  EXPECT_EQ((*admin_)("ACL SETUSER default -@all +get resetkeys ~open"), "+OK");
  EXPECT_EQ((*Connect())("GET open"), "$nil");
  EXPECT_EQ((*Connect())("SET open x"), NoCommand("set"));
  EXPECT_EQ((*admin_)("CONFIG SET requirepass word"), "+OK");
  EXPECT_EQ((*Connect())("GET open"), "-NOAUTH Authentication required.");
  const auto client = Connect();
  EXPECT_EQ((*client)("AUTH word"), "+OK");
  EXPECT_EQ((*client)("GET open"), "$nil");
  EXPECT_EQ((*admin_)("ACL SETUSER default off"), "+OK");
  EXPECT_TRUE((*Connect())("AUTH word").starts_with("-WRONGPASS"));
}

TEST_F(AclCommandsTest, UsersComeFromTheirFileAndGoThere) {
  const TempFolder folder;
  const std::string path = folder.path() + "/users.acl";
  std::ofstream(path) << "# users\nuser app on >word ~own:* +@all -@dangerous\n"
                      << "user other off (+get ~a) (+set %W~b)\n";
  Start(path);
  const auto client = Connect();
  EXPECT_EQ((*client)("AUTH app word"), "+OK");
  EXPECT_EQ((*client)("SET own:1 x"), "+OK");
  EXPECT_EQ((*client)("FLUSHALL"), NoCommand("flushall"));
  EXPECT_EQ((*admin_)("ACL SETUSER third on +ping"), "+OK");
  EXPECT_EQ((*admin_)("ACL SAVE"), "+OK");
  // Those that are loaded are others, whatever their names.
  EXPECT_EQ((*admin_)("ACL LOAD"), "+OK");
  EXPECT_EQ(client->Read(), "closed");
  const std::string before = (*admin_)("ACL LIST");
  Start(path);
  EXPECT_EQ((*admin_)("ACL LIST"), before);
  // A file that is wrong changes nothing, and a server does not start with it.
  std::ofstream(path) << "user app on +@all ~*\nuser app off\n";
  EXPECT_NE((*admin_)("ACL LOAD").find(":2: Duplicate user 'app' found"), std::string::npos);
  EXPECT_EQ((*admin_)("ACL LIST"), before);
  std::unique_ptr<Server> another;
  EXPECT_TRUE(Server::Start(options_, &another).IsInvalidArgument());
}

}  // namespace
}  // namespace nacre::server
