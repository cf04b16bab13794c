#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/utilities/sharded_db.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/temp_folder.h"

namespace nacre {

/// A bank in a keyspace. Its accounts are divided among tellers, each of which has one account in
/// each shard, and moves money between two of its own at a time, in one batch. So the money of each
/// teller is always the same, and only batches that are not whole could change it. Each batch has
/// the next number of its teller, which is in the accounts that it changes.
struct BankPlan {
  static constexpr uint64_t kMoneyOfAccount = 1000;

  std::string pool_uri;
  std::string coordinator;
  std::string keyspace = "bank";
  std::string redundancy = "none";
  std::string member_address = "shm:@";  ///< Empty: only a client.
  size_t shards = 8;
  size_t tellers = 0;
  std::string log_path = "";  ///< File for what the keyspace says; empty: none.

  /// How a process of the bank opens the keyspace.
  ShardedOptions Options() const;
  uint64_t MoneyOfTeller() const { return shards * kMoneyOfAccount; }
};

/// What is known of a teller, in memory that the test and its processes share, so that it outlives
/// them.
struct BankTeller {
  std::atomic<uint64_t> acknowledged{0};  ///< The number of the latest batch that was acknowledged.
  std::atomic<uint64_t> open{0};  ///< Batches of which it was unknown whether they took place.
  char message[240] = {};         ///< What was wrong; written before `failed`.
  std::atomic<bool> failed{false};
};

/// The tellers of a bank, in a file that processes share.
class BankBook {
 public:
  /// A failure fails the test, or ends the process.
  BankBook(const std::string& path, size_t tellers);
  ~BankBook();
  BankBook(const BankBook&) = delete;
  BankBook& operator=(const BankBook&) = delete;

  BankTeller& operator[](size_t teller) { return tellers_[teller]; }
  size_t size() const { return count_; }
  /// Empty, or what was wrong first.
  std::string Failure() const;

 private:
  const size_t count_;
  BankTeller* const tellers_;
};

/// Looks at the whole bank at one moment: each teller has its money, and what was acknowledged
/// before. What is wrong fails the test. A failure is the keyspace's, such as `Aborted`.
Status AuditBank(DB* db, const BankPlan& plan, BankBook* book);

/// A member of the keyspace that has some tellers at work, until it is killed or something is
/// wrong.
///
/// The process is the test's own binary, run anew with the filter BankProcessChild.Run, so a binary
/// that uses this includes BANK_PROCESS_CHILD() once.
class BankProcess {
 public:
  /// `binary`: of the test. Tellers [first, end) work in it.
  BankProcess(const std::string& binary, const BankPlan& plan, const std::string& book,
              size_t first, size_t end);

  void Kill() { process_->Kill(); }
  void Freeze();
  void Continue();
  /// Has it close the keyspace, and waits for its end. The exit code.
  int Close();

 private:
  std::unique_ptr<ChildProcess> process_;
};

/// The process's side.
void RunBank();
bool IsBankProcess();

}  // namespace nacre

/// The test that is the process.
#define BANK_PROCESS_CHILD()                                          \
  TEST(BankProcessChild, Run) {                                       \
    if (!nacre::IsBankProcess()) GTEST_SKIP() << "started by others"; \
    nacre::UseEtcd();                                                 \
    nacre::RunBank();                                                 \
  }
