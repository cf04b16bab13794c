#include "tests/support/model/history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "nacre/iterator.h"
#include "nacre/write_batch.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {

namespace {

constexpr uint64_t kMostValuesOfClient = uint64_t{1} << 32;

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string GroupPrefix(uint64_t group) { return "g" + std::to_string(group) + "/"; }

/// "3.17/" and bytes that follow from it.
std::string WholeValue(uint64_t client, uint64_t number, size_t bytes) {
  return std::to_string(client) + "." + std::to_string(number) + "/" +
         TestValue(client * kMostValuesOfClient + number, bytes);
}

/// "3.17" of such a value; none if it is not one.
std::optional<std::string> NameOfValue(const Slice& value, size_t bytes) {
  const std::string_view text(value.data(), value.size());
  const size_t dot = text.find('.');
  const size_t slash = text.find('/');
  const auto is_number = [](std::string_view digits) {
    return !digits.empty() && digits.size() < 12 &&
           digits.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (slash == std::string_view::npos || dot == std::string_view::npos || dot > slash ||
      !is_number(text.substr(0, dot)) || !is_number(text.substr(dot + 1, slash - dot - 1))) {
    return std::nullopt;
  }
  std::string name(text.substr(0, slash));
  const uint64_t client = std::stoull(name.substr(0, dot));
  const uint64_t number = std::stoull(name.substr(dot + 1));
  if (text != WholeValue(client, number, bytes)) return std::nullopt;
  return name;
}

void WriteLine(std::ostream& out, size_t client, const HistoryOperation& operation) {
  out << "{\"client\":" << client << ",\"call\":" << operation.call_ns
      << ",\"return\":" << operation.return_ns << ",\"op\":\""
      << (operation.write ? "write" : "read") << "\",\"keys\":[";
  const char* between = "";
  for (const std::string& key : operation.keys) {
    out << between << '"' << key << '"';
    between = ",";
  }
  out << "],\"values\":[";
  between = "";
  for (const std::optional<std::string>& value : operation.values) {
    out << between << (value ? '"' + *value + '"' : std::string("null"));
    between = ",";
  }
  out << "]}\n";
}

}  // namespace

void WriteHistories(const std::vector<std::vector<HistoryOperation>>& histories,
                    const std::string& path) {
  std::ofstream out(path);
  for (size_t client = 0; client < histories.size(); ++client) {
    for (const HistoryOperation& operation : histories[client]) WriteLine(out, client, operation);
  }
  out.close();
  ASSERT_TRUE(out.good()) << path;
}

SharedDB::Current SharedDB::Get() const {
  const MutexLock lock(&mutex_);
  return current_;
}

void SharedDB::Set(std::shared_ptr<DB> db) {
  // The old one, whose closing takes a while, is let go outside of the lock.
  Current old;
  const MutexLock lock(&mutex_);
  old = std::exchange(current_, {.db = std::move(db), .number = current_.number + 1});
  waiting_ = 0;
  changed_.SignalAll();
}

bool SharedDB::AwaitAfter(uint64_t number, std::chrono::seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const MutexLock lock(&mutex_);
  if (current_.number == number) ++waiting_;
  while (current_.number == number && !stopped_) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left.count() <= 0) break;
    changed_.WaitFor(left);
  }
  if (current_.number != number) return !stopped_;
  --waiting_;
  return false;
}

int SharedDB::waiting() const {
  const MutexLock lock(&mutex_);
  return waiting_;
}

void SharedDB::Stop() {
  const MutexLock lock(&mutex_);
  stopped_ = true;
  changed_.SignalAll();
}

HistoryClient::HistoryClient(int number, const HistoryOptions& options, SharedDB* shared,
                             std::atomic<uint64_t>* started)
    : number_(number),
      options_(options),
      follower_(number >= options.clients - options.followers),
      reader_(follower_ || number >= options.clients - options.followers - options.readers),
      shared_(shared),
      started_(started),
      random_(options.seed * 1000 + static_cast<uint64_t>(number)) {
  read_.linearizable = follower_;
}

void HistoryClient::Run(const std::atomic<bool>& stop) {
  const auto longest_pause = static_cast<uint64_t>(options_.longest_pause.count());
  SharedDB::Current current = shared_->Get();
  while (!stop.load()) {
    const bool fenced = Step(current.db.get()).IsFenced();
    if (fenced || !reader_) current.db.reset();
    if (fenced && !shared_->AwaitAfter(current.number, options_.patience)) {
      EXPECT_TRUE(stop.load()) << "client " << number_ << " was fenced and left alone";
      return;
    }
    if (current.db == nullptr) current = shared_->Get();
    if (longest_pause > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_.Uniform(longest_pause + 1)));
    }
  }
}

Status HistoryClient::Step(DB* db) {
  const uint64_t newest = started_->fetch_add(1) / options_.operations_in_group;
  const bool writes_only = options_.followers > 0 && !follower_;
  const uint64_t choice = reader_       ? 50 + random_.Uniform(50)
                          : writes_only ? random_.Uniform(50)
                                        : random_.Uniform(100);
  // What has been written long ago is read again, too: by then it lies in tables.
  const uint64_t group = random_.OneIn(20) ? random_.Uniform(newest + 1) : newest;
  if (random_.Uniform(100) >= options_.percent_of_many) {
    return choice < 50 ? Write(db, newest, /*many=*/false) : GetOne(db, group);
  }
  if (choice < 50) return Write(db, newest, /*many=*/true);
  if (choice < 70) return MultiGet(db, group);
  return choice < 85 ? ReadSnapshot(db, group) : Iterate(db, group);
}

Status HistoryClient::Write(DB* db, uint64_t group, bool many) {
  HistoryOperation operation{.write = true, .keys = SomeKeysOf(group)};
  if (!many) operation.keys.resize(1);
  WriteBatch batch;
  std::string whole;
  for (const std::string& key : operation.keys) {
    if (group != no_deletes_in_ && random_.OneIn(6)) {
      operation.values.emplace_back();
      NACRE_RETURN_IF_ERROR(batch.Delete(key));
    } else {
      whole = NewValue();
      operation.values.emplace_back(whole.substr(0, whole.find('/')));
      NACRE_RETURN_IF_ERROR(batch.Put(key, whole));
    }
  }
  operation.call_ns = Now();
  operation.sequence_before = SequenceNow(db);
  Status status;
  if (many) {
    status = db->Write(options_.write, &batch);
  } else if (operation.values[0].has_value()) {
    status = db->Put(options_.write, operation.keys[0], whole);
  } else {
    status = db->Delete(options_.write, operation.keys[0]);
  }
  operation.return_ns = status.ok() ? Now() : 0;
  if (!status.ok()) no_deletes_in_ = group;
  return Finish(db, status, std::move(operation));
}

Status HistoryClient::GetOne(DB* db, uint64_t group) {
  HistoryOperation read;
  const std::string key = KeysOf(group)[random_.Uniform(options_.keys_in_group)];
  std::string value;
  read.call_ns = Now();
  const Status status = db->Get(read_, key, &value);
  read.return_ns = Now();
  Found(status, key, value, &read);
  return Finish(db, status, std::move(read));
}

Status HistoryClient::MultiGet(DB* db, uint64_t group) {
  HistoryOperation read;
  const std::vector<std::string> keys = KeysOf(group);
  std::vector<std::string> values;
  read.call_ns = Now();
  const std::vector<Status> statuses =
      db->MultiGet(read_, std::vector<Slice>(keys.begin(), keys.end()), &values);
  read.return_ns = Now();
  Status failure;
  for (size_t i = 0; i < keys.size(); ++i) {
    Found(statuses[i], keys[i], values[i], &read);
    if (!statuses[i].ok() && !statuses[i].IsNotFound()) failure = statuses[i];
  }
  return Finish(db, failure, std::move(read));
}

Status HistoryClient::ReadSnapshot(DB* db, uint64_t group) {
  HistoryOperation read;
  read.call_ns = Now();
  if (follower_) {
    if (Status status = db->TryCatchUpWithPrimary(); !status.ok()) {
      return Finish(db, status, std::move(read));
    }
  }
  const Snapshot* const snapshot = db->GetSnapshot();
  // The state is that of a moment in between, whenever it is read.
  read.return_ns = Now();
  ReadOptions options;
  options.snapshot = snapshot;
  Status failure;
  for (const std::string& key : KeysOf(group)) {
    std::string value;
    const Status status = db->Get(options, key, &value);
    Found(status, key, value, &read);
    if (!status.ok() && !status.IsNotFound()) failure = status;
  }
  db->ReleaseSnapshot(snapshot);
  return Finish(db, failure, std::move(read));
}

Status HistoryClient::Iterate(DB* db, uint64_t group) {
  HistoryOperation read;
  const std::string prefix = GroupPrefix(group);
  const std::vector<std::string> keys = KeysOf(group);
  read.call_ns = Now();
  const std::unique_ptr<Iterator> iterator = db->NewIterator(read_);
  read.return_ns = Now();
  size_t at = 0;
  for (iterator->Seek(prefix); iterator->Valid() && iterator->key().starts_with(prefix);
       iterator->Next()) {
    while (at < keys.size() && Slice(keys[at]) != iterator->key()) {
      Found(Status::NotFound(), keys[at++], {}, &read);
    }
    if (at == keys.size()) {
      ADD_FAILURE() << "out of order, or nobody's: " << iterator->key().ToString();
      break;
    }
    Found(Status::OK(), keys[at++], iterator->value(), &read);
  }
  const Status status = iterator->status();
  for (; status.ok() && at < keys.size(); ++at) Found(Status::NotFound(), keys[at], {}, &read);
  return Finish(db, status, std::move(read));
}

void HistoryClient::ReadGroup(uint64_t group) {
  const SharedDB::Current current = shared_->Get();
  EXPECT_TRUE(IsOk(MultiGet(current.db.get(), group)));
}

std::vector<std::string> HistoryClient::KeysOf(uint64_t group) const {
  std::vector<std::string> keys;
  keys.reserve(static_cast<size_t>(options_.keys_in_group));
  for (int i = 0; i < options_.keys_in_group; ++i) {
    keys.push_back(GroupPrefix(group) + static_cast<char>('a' + i));
  }
  return keys;
}

std::vector<std::string> HistoryClient::SomeKeysOf(uint64_t group) {
  std::vector<std::string> keys = KeysOf(group);
  const size_t count = std::min<size_t>(keys.size(), 1 + random_.Uniform(4));
  for (size_t i = 0; i < count; ++i) std::swap(keys[i], keys[i + random_.Uniform(keys.size() - i)]);
  keys.resize(count);
  return keys;
}

std::string HistoryClient::NewValue() {
  return WholeValue(static_cast<uint64_t>(number_), ++values_, options_.value_bytes);
}

void HistoryClient::Found(const Status& status, const Slice& key, const Slice& value,
                          HistoryOperation* read) {
  if (!status.ok() && !status.IsNotFound()) return;
  read->keys.push_back(key.ToString());
  if (status.IsNotFound()) {
    read->values.emplace_back();
    return;
  }
  read->values.push_back(NameOfValue(value, options_.value_bytes));
  EXPECT_TRUE(read->values.back().has_value())
      << key.ToString() << " has " << value.size() << " bytes that nobody has written";
}

uint64_t HistoryClient::SequenceNow(DB* db) const {
  return options_.note_sequences ? db->GetLatestSequenceNumber() : 0;
}

Status HistoryClient::Finish(DB* db, const Status& status, HistoryOperation operation) {
  operation.sequence_after = SequenceNow(db);
  ++counts_.operations;
  const bool failed = !status.ok() && !status.IsNotFound();
  if (operation.write && failed) ++counts_.unknown_writes;
  if (!operation.write && failed) {
    ++counts_.failed_reads;
  } else {
    history_.push_back(std::move(operation));
  }
  return failed ? status : Status::OK();
}

HistoryRun::HistoryRun(std::shared_ptr<DB> db, const HistoryOptions& options,
                       const std::vector<std::shared_ptr<DB>>& followers)
    : options_(options), shared_(std::move(db)) {
  EXPECT_EQ(followers.size(), static_cast<size_t>(options_.followers));
  for (const std::shared_ptr<DB>& follower : followers) {
    others_.push_back(std::make_unique<SharedDB>(follower));
  }
  for (int i = 0; i < options_.clients; ++i) {
    const int follower = i - (options_.clients - options_.followers);
    SharedDB* const shared = follower < 0 ? &shared_ : others_[static_cast<size_t>(follower)].get();
    clients_.push_back(std::make_unique<HistoryClient>(i, options_, shared, &started_));
  }
}

HistoryRun::HistoryRun(const std::vector<std::shared_ptr<DB>>& members,
                       const HistoryOptions& options)
    : options_(options), shared_(members.front()) {
  for (size_t i = 1; i < members.size(); ++i) {
    others_.push_back(std::make_unique<SharedDB>(members[i]));
  }
  for (int i = 0; i < options_.clients; ++i) {
    const size_t member = static_cast<size_t>(i) % members.size();
    SharedDB* const shared = member == 0 ? &shared_ : others_[member - 1].get();
    clients_.push_back(std::make_unique<HistoryClient>(i, options_, shared, &started_));
  }
}

std::string HistoryRun::MiddleKey() const {
  return GroupPrefix(started_.load() / options_.operations_in_group) +
         static_cast<char>('a' + options_.keys_in_group / 2);
}

HistoryRun::~HistoryRun() { Stop(); }

void HistoryRun::Start() {
  for (const auto& client : clients_) {
    threads_.emplace_back([this, &client] { client->Run(stop_); });
  }
}

void HistoryRun::AwaitOperations(uint64_t count) {
  const uint64_t goal = started_.load() + count;
  ASSERT_TRUE(Eventually([&] { return started_.load() >= goal; }));
}

void HistoryRun::AwaitAllFenced() {
  ASSERT_TRUE(
      Eventually([&] { return shared_.waiting() == options_.clients - options_.followers; }));
}

void HistoryRun::Stop() {
  stop_ = true;
  shared_.Stop();
  for (const auto& other : others_) other->Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void HistoryRun::ReadAll() {
  const uint64_t newest = started_.load() / options_.operations_in_group;
  for (uint64_t group = 0; group <= newest; ++group) clients_[0]->ReadGroup(group);
}

std::vector<std::vector<HistoryOperation>> HistoryRun::histories() const {
  std::vector<std::vector<HistoryOperation>> all;
  all.reserve(clients_.size());
  for (const auto& client : clients_) all.push_back(client->history());
  return all;
}

HistoryCounts HistoryRun::counts() const {
  HistoryCounts sum;
  for (const auto& client : clients_) {
    sum.operations += client->counts().operations;
    sum.unknown_writes += client->counts().unknown_writes;
    sum.failed_reads += client->counts().failed_reads;
  }
  return sum;
}

}  // namespace nacre
