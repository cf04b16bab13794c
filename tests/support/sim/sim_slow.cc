#include "tests/support/sim/sim_slow.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/support/test_db.h"
#include "util/clock.h"

namespace nacre::sim {

std::string SlowKey(size_t i) { return fmt::format("key{:05}", i); }
std::string SlowValue(size_t i) { return TestValue(i, 100); }

Options PatientOptions(Case* c, const std::string& redundancy) {
  Options options = c->DatabaseOptions();
  options.operation_timeout = std::chrono::minutes(2);
  options.redundancy = redundancy;
  return options;
}

OwnedDatabase::OwnedDatabase(Scheduler* scheduler, Case* c, const Options& options,
                             const char* name)
    : scheduler_(scheduler),
      case_(c),
      process_(c->NewProcess(name)),
      db_(std::make_unique<std::unique_ptr<DB>>().release()) {
  In([&] { c->Await("opening", [&] { return DB::Open(options, "db", db_).ok(); }); });
}

void OwnedDatabase::Kill() { case_->cluster().KillProcess(process_, scheduler_->OneIn(2)); }

std::vector<uint64_t> OwnedDatabase::Put(size_t first, size_t last,
                                         std::chrono::microseconds pause) {
  std::vector<uint64_t> times;
  In([&] {
    for (size_t i = first; i < last; ++i) {
      const uint64_t start = scheduler_->TrueNanos();
      case_->Expect(db()->Put({}, SlowKey(i), SlowValue(i)));
      times.push_back(scheduler_->TrueNanos() - start);
      if (pause.count() > 0) Clock::System()->SleepFor(pause);
    }
  });
  return times;
}

std::vector<uint64_t> OwnedDatabase::Get(size_t first, size_t last) {
  std::vector<uint64_t> times;
  In([&] {
    for (size_t i = first; i < last; ++i) {
      const uint64_t start = scheduler_->TrueNanos();
      ExpectValue(i);
      times.push_back(scheduler_->TrueNanos() - start);
    }
  });
  return times;
}

void OwnedDatabase::Flush() {
  In([&] { case_->Expect(db()->Flush({})); });
}

void OwnedDatabase::WriteTables(size_t last) {
  Put(0, last);
  In([&] {
    case_->Expect(db()->Flush({}));
    case_->Expect(db()->CompactRange({}, nullptr, nullptr));
    case_->Expect(db()->WaitForCompact());
  });
}

void OwnedDatabase::Check(size_t last) {
  Get(0, last);
  In([&] {
    const std::unique_ptr<Iterator> iterator(db()->NewIterator({}));
    size_t i = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++i) {
      case_->Expect(iterator->key() == Slice(SlowKey(i)), "an iterator shows another key");
      case_->Expect(iterator->value() == Slice(SlowValue(i)), "an iterator: another value");
    }
    case_->Expect(iterator->status());
    case_->Expect(i == last, fmt::format("an iterator shows {} keys, not {}", i, last));
  });
}

void OwnedDatabase::AwaitPrompt() {
  In([&] {
    size_t i = 0;
    case_->Await("prompt nodes", [&] {
      case_->Expect(db()->Put({}, SlowKey(i), SlowValue(i)));
      i = (i + 1) % 10;
      return Number("slow-nodes") == 0;
    });
  });
}

uint64_t OwnedDatabase::Number(const std::string& name) const {
  uint64_t number = 0;
  case_->Expect(db()->GetIntProperty("nacre." + name, &number), "no " + name);
  return number;
}

void OwnedDatabase::ExpectValue(size_t i) const {
  std::string value;
  case_->Expect(db()->Get({}, SlowKey(i), &value));
  case_->Expect(value == SlowValue(i), "another value of " + SlowKey(i));
}

void SetSlowness(Case* c, size_t node, uint64_t factor) {
  c->cluster().network().SetSlowness(c->cluster().process(node), factor);
}

void SetAllSlowness(Case* c, uint64_t factor) {
  for (size_t i = 0; i < c->cluster().size(); ++i) SetSlowness(c, i, factor);
}

void SetAllTails(Case* c, uint64_t odds, std::chrono::microseconds least) {
  for (size_t i = 0; i < c->cluster().size(); ++i) {
    c->cluster().network().SetTail(c->cluster().process(i), odds, least);
  }
}

size_t CountHeldUp(const std::vector<uint64_t>& times) {
  return static_cast<size_t>(std::count_if(times.begin(), times.end(),
                                           [](uint64_t nanos) { return nanos > kHeldUpNanos; }));
}

std::string Describe(std::vector<uint64_t> times) {
  constexpr size_t kTold = 8;
  std::sort(times.rbegin(), times.rend());
  std::string text = "the longest waits, in microseconds:";
  for (size_t i = 0; i < std::min(kTold, times.size()); ++i) {
    text += ' ' + std::to_string(times[i] / 1000);
  }
  return text;
}

std::vector<ExtentAddr> FragmentsOfTables(const ctl::DatabaseView& view) {
  std::vector<ExtentAddr> extents;
  for (const auto& [id, table] : view.state.tables) {
    const std::vector<ExtentAddr>& fragments = table.second.placement.fragments;
    extents.insert(extents.end(), fragments.begin(), fragments.end());
  }
  return extents;
}

}  // namespace nacre::sim
