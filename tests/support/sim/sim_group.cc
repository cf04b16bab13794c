#include "tests/support/sim/sim_group.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "util/clock.h"

namespace nacre::sim {
namespace {

Status Take(const Status& read, const std::string& value, uint64_t* number) {
  if (read.ok()) *number = NumberOf(value);
  return read.IsNotFound() ? Status::OK() : read;
}

Status ReadByMultiGet(DB* db, const std::vector<std::string>& names,
                      std::vector<uint64_t>* numbers) {
  const std::vector<Slice> keys(names.begin(), names.end());
  std::vector<std::string> values;
  const std::vector<Status> statuses = db->MultiGet({}, keys, &values);
  for (size_t i = 0; i < keys.size(); ++i) {
    NACRE_RETURN_IF_ERROR(Take(statuses[i], values[i], &(*numbers)[i]));
  }
  return Status::OK();
}

Status ReadBySnapshot(Scheduler* scheduler, DB* db, const std::vector<std::string>& names,
                      std::vector<uint64_t>* numbers) {
  ReadOptions at;
  at.snapshot = db->GetSnapshot();
  if (at.snapshot == nullptr) return Status::Aborted("no snapshot could be taken");
  Status status;
  for (size_t i = 0; i < names.size() && status.ok(); ++i) {
    if (scheduler->OneIn(2)) Clock::System()->SleepFor(std::chrono::microseconds(50));
    std::string value;
    const Status read = db->Get(at, names[i], &value);
    status = Take(read, value, &(*numbers)[i]);
  }
  db->ReleaseSnapshot(at.snapshot);
  return status;
}

Status ReadByIterator(DB* db, const std::vector<std::string>& names,
                      std::vector<uint64_t>* numbers) {
  const std::unique_ptr<Iterator> iterator(db->NewIterator({}));
  for (size_t i = 0; i < names.size() && iterator->status().ok(); ++i) {
    iterator->Seek(names[i]);
    if (!iterator->Valid() || iterator->key() != Slice(names[i])) continue;
    (*numbers)[i] = NumberOf(iterator->value().ToString());
  }
  return iterator->status();
}

}  // namespace

std::string KeyOfGroup(size_t group, size_t shard) {
  return fmt::format("{}{}", static_cast<char>('a' + shard), group);
}

uint64_t NumberOf(const std::string& value) { return value.empty() ? 0 : std::stoull(value); }

Status ReadGroup(Scheduler* scheduler, DB* db, size_t group, size_t shards,
                 std::vector<uint64_t>* numbers) {
  std::vector<std::string> names;
  for (size_t shard = 0; shard < shards; ++shard) names.push_back(KeyOfGroup(group, shard));
  numbers->assign(shards, 0);
  switch (scheduler->Uniform(3)) {
    case 0:
      return ReadByMultiGet(db, names, numbers);
    case 1:
      return ReadBySnapshot(scheduler, db, names, numbers);
    default:
      return ReadByIterator(db, names, numbers);
  }
}

std::string DifferenceIn(size_t group, const std::vector<uint64_t>& numbers) {
  for (size_t i = 1; i < numbers.size(); ++i) {
    if (numbers[i] == numbers[0]) continue;
    return fmt::format("group {} has {} in its first shard and {} in shard {}", group, numbers[0],
                       numbers[i], i);
  }
  return "";
}

}  // namespace nacre::sim
