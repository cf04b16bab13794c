#include "tests/support/process/bank_process.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <thread>
#include <utility>

#include "nacre/write_batch.h"
#include "tests/support/process/child_data.h"
#include "tests/support/status_assert.h"
#include "util/log.h"
#include "util/random.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Far beyond what the failover of a shard takes.
constexpr seconds kBankPatience(60);

/// Set by SIGTERM.
volatile std::sig_atomic_t closing = 0;

/// What is in an account.
struct Account {
  uint64_t money = BankPlan::kMoneyOfAccount;
  uint64_t number = 0;  ///< That of the batch that changed it last.

  std::string ToString() const { return fmt::format("{} {}", money, number); }
  static Account Of(const std::string& value) {
    Account account;
    std::istringstream(value) >> account.money >> account.number;
    return account;
  }
};
using Accounts = std::vector<Account>;

/// One account of each teller is in each shard.
std::string KeyOf(size_t teller, size_t shard) { return fmt::format("{:03}-{:03}", shard, teller); }

void Fail(BankTeller* teller, const std::string& why) {
  for (size_t i = 0; i < why.size() && i + 1 < sizeof(teller->message); ++i) {
    teller->message[i] = why[i];
  }
  teller->failed = true;
}

/// All accounts of a teller, of one moment.
Status Read(DB* db, const BankPlan& plan, size_t teller, Accounts* accounts, bool* is_new) {
  std::vector<std::string> names;
  for (size_t shard = 0; shard < plan.shards; ++shard) names.push_back(KeyOf(teller, shard));
  const std::vector<Slice> keys(names.begin(), names.end());
  std::vector<std::string> values;
  const std::vector<Status> statuses = db->MultiGet({}, keys, &values);
  accounts->clear();
  size_t missing = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!statuses[i].ok() && !statuses[i].IsNotFound()) return statuses[i];
    missing += statuses[i].IsNotFound();
    accounts->push_back(statuses[i].ok() ? Account::Of(values[i]) : Account{.money = 0});
  }
  *is_new = missing == keys.size();
  return Status::OK();
}

uint64_t MoneyIn(const Accounts& accounts) {
  uint64_t money = 0;
  for (const Account& account : accounts) money += account.money;
  return money;
}

uint64_t LatestOf(const Accounts& accounts) {
  uint64_t latest = 0;
  for (const Account& account : accounts) latest = std::max(latest, account.number);
  return latest;
}

class Teller {
 public:
  Teller(DB* db, const BankPlan& plan, size_t index, BankTeller* known)
      : db_(db), plan_(plan), index_(index), known_(known), random_(index + ::getpid()) {}

  void Work() {
    bool is_new = false;
    if (!ReadAll(&is_new)) return;
    if (is_new) {
      accounts_.assign(plan_.shards, Account());
      WriteBatch batch;
      for (size_t shard = 0; shard < plan_.shards; ++shard) Add(shard, &batch);
      if (!Write(&batch)) return;
    }
    while (closing == 0) {
      const size_t from = random_.Uniform(plan_.shards);
      const size_t to = random_.Uniform(plan_.shards);
      if (from == to || accounts_[from].money == 0) continue;
      const uint64_t money = 1 + random_.Uniform(accounts_[from].money);
      accounts_[from].money -= money;
      accounts_[to].money += money;
      accounts_[from].number = accounts_[to].number = number_ + 1;
      WriteBatch batch;
      Add(from, &batch);
      Add(to, &batch);
      if (!Write(&batch)) return;
    }
  }

 private:
  void Add(size_t shard, WriteBatch* batch) {
    ASSERT_TRUE(IsOk(batch->Put(KeyOf(index_, shard), accounts_[shard].ToString())));
  }

  /// Writes the batch of the next number. If its end is unknown, the accounts tell it.
  bool Write(WriteBatch* batch) {
    const Status status = db_->Write({}, batch);
    if (status.ok()) {
      known_->acknowledged = ++number_;
      return true;
    }
    if (!status.IsTimedOut() && !status.IsUnavailable() && !status.IsAborted()) {
      Fail(known_, "a batch: " + status.ToString());
      return false;
    }
    ++known_->open;
    bool is_new = false;
    return ReadAll(&is_new);
  }

  bool ReadAll(bool* is_new) {
    const auto begun = std::chrono::steady_clock::now();
    for (;;) {
      const Status status = Read(db_, plan_, index_, &accounts_, is_new);
      if (status.ok()) break;
      const bool late = std::chrono::steady_clock::now() - begun > kBankPatience;
      if (late || status.IsCorruption() || status.IsInvalidArgument()) {
        Fail(known_, "a read: " + status.ToString());
        return false;
      }
      std::this_thread::sleep_for(milliseconds(10));
    }
    if (*is_new && known_->acknowledged == 0) return true;
    number_ = LatestOf(accounts_);
    const uint64_t acknowledged = known_->acknowledged;
    if (number_ < acknowledged) {
      Fail(known_, fmt::format("batch {} was acknowledged, and the accounts are at {}",
                               acknowledged, number_));
      return false;
    }
    if (MoneyIn(accounts_) != plan_.MoneyOfTeller()) {
      Fail(known_,
           fmt::format("it has {} instead of {}", MoneyIn(accounts_), plan_.MoneyOfTeller()));
      return false;
    }
    return true;
  }

  DB* const db_;
  const BankPlan& plan_;
  const size_t index_;
  BankTeller* const known_;
  Random random_;
  Accounts accounts_;
  uint64_t number_ = 0;
};

}  // namespace

// ---- The bank -----------------------------------------------------------------------------------

ShardedOptions BankPlan::Options() const {
  ShardedOptions options;
  options.create_if_missing = true;
  options.pool_uri = pool_uri;
  options.redundancy = redundancy;
  options.write_buffer_size = 1 << 20;
  options.target_file_size_base = 256 << 10;
  options.slab_size = 1 << 20;
  options.coordinator = coordinator;
  options.member_address = member_address;
  for (size_t shard = 1; shard < shards; ++shard) {
    options.boundaries.push_back(fmt::format("{:03}", shard));
  }
  if (!log_path.empty()) options.info_log = NewFileLogger(log_path);
  return options;
}

BankBook::BankBook(const std::string& path, size_t tellers)
    : count_(tellers),
      tellers_(static_cast<BankTeller*>(MapShared(path, tellers * sizeof(BankTeller)))) {
  EXPECT_NE(tellers_, nullptr);
  if (tellers_ == nullptr) std::abort();
}

BankBook::~BankBook() { ::munmap(tellers_, count_ * sizeof(BankTeller)); }

std::string BankBook::Failure() const {
  for (size_t i = 0; i < count_; ++i) {
    if (!tellers_[i].failed) continue;
    std::string text = fmt::format("teller {}: ", i);
    for (const char c : tellers_[i].message) {
      if (c == '\0') break;
      text += c;
    }
    return text;
  }
  return "";
}

Status AuditBank(DB* db, const BankPlan& plan, BankBook* book) {
  std::vector<uint64_t> acknowledged;
  for (size_t i = 0; i < book->size(); ++i) acknowledged.push_back((*book)[i].acknowledged);
  std::vector<Accounts> found(book->size());
  const std::unique_ptr<Iterator> it = db->NewIterator({});
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const std::string key = it->key().ToString();
    found[std::stoull(key.substr(key.find('-') + 1))].push_back(
        Account::Of(it->value().ToString()));
  }
  NACRE_RETURN_IF_ERROR(it->status());
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].empty() && acknowledged[i] == 0) continue;
    EXPECT_EQ(MoneyIn(found[i]), plan.MoneyOfTeller()) << "teller " << i;
    EXPECT_GE(LatestOf(found[i]), acknowledged[i]) << "teller " << i;
  }
  return Status::OK();
}

// ---- Processes ----------------------------------------------------------------------------------

BankProcess::BankProcess(const std::string& binary, const BankPlan& plan, const std::string& book,
                         size_t first, size_t end)
    : process_(std::make_unique<ChildProcess>(
          binary, std::vector<std::string>{"--gtest_filter=BankProcessChild.Run"},
          std::vector<std::string>{
              "NACRE_BANK_BOOK=" + book, "NACRE_BANK_POOL=" + plan.pool_uri,
              "NACRE_BANK_COORDINATOR=" + plan.coordinator, "NACRE_BANK_KEYSPACE=" + plan.keyspace,
              "NACRE_BANK_REDUNDANCY=" + plan.redundancy,
              "NACRE_BANK_ADDRESS=" + plan.member_address,
              "NACRE_BANK_SHARDS=" + std::to_string(plan.shards),
              "NACRE_BANK_TELLERS=" + std::to_string(plan.tellers),
              "NACRE_BANK_FIRST=" + std::to_string(first), "NACRE_BANK_END=" + std::to_string(end),
              "NACRE_BANK_LOG=" + plan.log_path})) {}

void BankProcess::Freeze() { process_->Signal(SIGSTOP); }
void BankProcess::Continue() { process_->Signal(SIGCONT); }

int BankProcess::Close() {
  process_->Signal(SIGTERM);
  return process_->AwaitExit(static_cast<int>(kBankPatience.count()));
}

bool IsBankProcess() { return std::getenv("NACRE_BANK_BOOK") != nullptr; }

void RunBank() {
  std::signal(SIGTERM, [](int) { closing = 1; });
  BankPlan plan{.pool_uri = Environment("NACRE_BANK_POOL"),
                .coordinator = Environment("NACRE_BANK_COORDINATOR"),
                .keyspace = Environment("NACRE_BANK_KEYSPACE"),
                .redundancy = Environment("NACRE_BANK_REDUNDANCY"),
                .member_address = Environment("NACRE_BANK_ADDRESS"),
                .shards = EnvironmentNumber("NACRE_BANK_SHARDS"),
                .tellers = EnvironmentNumber("NACRE_BANK_TELLERS"),
                .log_path = Environment("NACRE_BANK_LOG")};
  BankBook book(Environment("NACRE_BANK_BOOK"), plan.tellers);
  std::unique_ptr<ShardedDB> db;
  Status opened;
  const auto begun = std::chrono::steady_clock::now();
  do {
    opened = ShardedDB::Open(plan.Options(), plan.keyspace, &db);
  } while (!opened.ok() && std::chrono::steady_clock::now() - begun < kBankPatience);
  const size_t first = EnvironmentNumber("NACRE_BANK_FIRST");
  if (!opened.ok()) Fail(&book[first], "opening: " + opened.ToString());
  ASSERT_TRUE(IsOk(opened));
  std::vector<std::thread> threads;
  for (size_t i = first; i < EnvironmentNumber("NACRE_BANK_END"); ++i) {
    threads.emplace_back([&, i] { Teller(db.get(), plan, i, &book[i]).Work(); });
  }
  for (std::thread& thread : threads) thread.join();
  while (closing == 0) std::this_thread::sleep_for(milliseconds(10));
  ASSERT_TRUE(IsOk(db->Close()));
}

}  // namespace nacre
