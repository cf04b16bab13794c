#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ctl/database_view.h"
#include "nacre/db.h"
#include "nacre/options.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_scheduler.h"

// For cases of nodes that take long, while no operation ever fails.

namespace nacre::sim {

/// Packets take 20 to 120 ms each way, and longer at times: far beyond the patience.
inline constexpr uint64_t kSlow = 20'000;
/// A wait that ends when the patience does, at 20 ms or before, and some round trips after it.
inline constexpr uint64_t kHeldUpNanos = 30'000'000;

std::string SlowKey(size_t i);
std::string SlowValue(size_t i);

/// With these no wait for a node ends before an answer comes, or before the node is down.
Options PatientOptions(Case* c, const std::string& redundancy);

/// A process and its database, which ends with it.
class OwnedDatabase {
 public:
  OwnedDatabase(Scheduler* scheduler, Case* c, const Options& options, const char* name = "owner");

  void In(const std::function<void()>& body) { case_->In(process_, body); }
  DB* db() const { return db_->get(); }
  ProcessId process() const { return process_; }
  void Kill();

  /// Keys [first, last), with a pause after each. How many nanoseconds each Put took.
  std::vector<uint64_t> Put(size_t first, size_t last,
                            std::chrono::microseconds pause = std::chrono::microseconds(0));
  /// The same for Gets, which find what Put wrote.
  std::vector<uint64_t> Get(size_t first, size_t last);
  void Flush();
  /// Keys [0, last), flushed and compacted.
  void WriteTables(size_t last);
  /// That there are keys [0, last), and no others.
  void Check(size_t last);
  /// Waits until no node counts as slow, which takes operations that meet them.
  void AwaitPrompt();
  /// The property "nacre.`name`".
  uint64_t Number(const std::string& name) const;

  /// In a thread of the process: one Get.
  void ExpectValue(size_t i) const;

 private:
  Scheduler* const scheduler_;
  Case* const case_;
  const ProcessId process_;
  std::unique_ptr<DB>* const db_;  ///< Not owned: threads of a process that was killed have it.
};

void SetSlowness(Case* c, size_t node, uint64_t factor);
void SetAllSlowness(Case* c, uint64_t factor);
/// On all nodes one in `odds` packets takes so long at least; 0: none does.
void SetAllTails(Case* c, uint64_t odds, std::chrono::microseconds least);

size_t CountHeldUp(const std::vector<uint64_t>& times);
/// The longest of these.
std::string Describe(std::vector<uint64_t> times);

std::vector<ExtentAddr> FragmentsOfTables(const ctl::DatabaseView& view);

}  // namespace nacre::sim
