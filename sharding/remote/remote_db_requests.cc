#include <algorithm>
#include <string>
#include <utility>

#include "sharding/remote/remote_db.h"
#include "transactions/below.h"

namespace nacre {
namespace {

using Kind = sharding::DatabaseRequest;

/// Begins a request of this kind.
sharding::DatabaseRequest* Begin(sharding::DatabaseRequest::Kind kind,
                                 const ColumnFamilyHandle* family, MemberExchange* exchange) {
  sharding::DatabaseRequest* const request = exchange->request()->mutable_database();
  request->set_kind(kind);
  request->set_family(IdOf(family));
  return request;
}

void AddRange(const Slice* begin, const Slice* end, sharding::DatabaseRequest* request) {
  sharding::KeyRange* const range = request->add_ranges();
  if (begin != nullptr) range->set_begin(begin->data(), begin->size());
  if (end != nullptr) range->set_end(end->data(), end->size());
}

void AddOptions(const std::unordered_map<std::string, std::string>& changes,
                sharding::DatabaseRequest* request) {
  for (const auto& [name, value] : changes) (*request->mutable_options())[name] = value;
}

bool TakeNumber(const sharding::DatabaseReply& reply, uint64_t* number) {
  if (reply.numbers().empty()) return false;
  *number = reply.numbers(0);
  return true;
}

}  // namespace

Status RemoteDB::Ask(MemberExchange* exchange, Unanswered unanswered) const {
  return owner_->Call(exchange->request(), owner_->OperationDeadline(), unanswered,
                      exchange->reply());
}

Status RemoteDB::AskAndSleep(MemberExchange* exchange, Unanswered unanswered) const {
  return owner_->CallAndSleep(exchange->request(), unanswered, exchange->reply());
}

// ---- Background work ----------------------------------------------------------------------------

Status RemoteDB::FlushWAL(bool sync) {
  MemberExchange exchange(shard_);
  Begin(Kind::FLUSH_WAL, nullptr, &exchange)->set_flag(sync);
  return AskAndSleep(&exchange);
}

Status RemoteDB::Flush(const FlushOptions& options, ColumnFamilyHandle* family) {
  MemberExchange exchange(shard_);
  Begin(Kind::FLUSH, family, &exchange)->set_flag(options.wait);
  return AskAndSleep(&exchange);
}

Status RemoteDB::CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family,
                              const Slice* begin, const Slice* end) {
  MemberExchange exchange(shard_);
  sharding::DatabaseRequest* const request = Begin(Kind::COMPACT_RANGE, family, &exchange);
  request->set_change_level(options.change_level);
  request->set_target_level(options.target_level);
  request->set_max_subcompactions(options.max_subcompactions);
  AddRange(begin, end, request);
  return AskAndSleep(&exchange);
}

Status RemoteDB::WaitForCompact() {
  MemberExchange exchange(shard_);
  Begin(Kind::WAIT_FOR_COMPACT, nullptr, &exchange);
  return AskAndSleep(&exchange);
}

Status RemoteDB::SuggestCompactRange(ColumnFamilyHandle* family, const Slice* begin,
                                     const Slice* end) {
  MemberExchange exchange(shard_);
  AddRange(begin, end, Begin(Kind::SUGGEST_COMPACT_RANGE, family, &exchange));
  return Ask(&exchange);
}

Status RemoteDB::PauseBackgroundWork() {
  MemberExchange exchange(shard_);
  Begin(Kind::PAUSE_BACKGROUND_WORK, nullptr, &exchange);
  // It waits for work that runs, and is counted: a second one would need to be continued, too.
  return AskAndSleep(&exchange, Unanswered::kOpen);
}

Status RemoteDB::ContinueBackgroundWork() {
  MemberExchange exchange(shard_);
  Begin(Kind::CONTINUE_BACKGROUND_WORK, nullptr, &exchange);
  return Ask(&exchange, Unanswered::kOpen);
}

Status RemoteDB::EnableAutoCompaction(const std::vector<ColumnFamilyHandle*>& families) {
  for (ColumnFamilyHandle* const family : families) {
    NACRE_RETURN_IF_ERROR(SetOptions(family, {{"disable_auto_compactions", "false"}}));
  }
  return Status::OK();
}

Status RemoteDB::Resume() {
  MemberExchange exchange(shard_);
  Begin(Kind::RESUME, nullptr, &exchange);
  return AskAndSleep(&exchange);  // It flushes.
}

Status RemoteDB::VerifyChecksum() {
  MemberExchange exchange(shard_);
  Begin(Kind::VERIFY_CHECKSUM, nullptr, &exchange);
  return AskAndSleep(&exchange);
}

// ---- What there is ------------------------------------------------------------------------------

bool RemoteDB::AskForProperty(MemberExchange* exchange, ColumnFamilyHandle* family,
                              const Slice& property) const {
  sharding::DatabaseRequest* const request = exchange->request()->mutable_database();
  request->set_family(IdOf(family));
  request->set_name(property.data(), property.size());
  return Ask(exchange).ok() && exchange->reply()->database().found();
}

bool RemoteDB::GetProperty(ColumnFamilyHandle* family, const Slice& property, std::string* value) {
  MemberExchange exchange(shard_);
  exchange.request()->mutable_database()->set_kind(Kind::PROPERTY);
  if (!AskForProperty(&exchange, family, property)) return false;
  *value = exchange.reply()->database().text();
  return true;
}

bool RemoteDB::GetIntProperty(ColumnFamilyHandle* family, const Slice& property, uint64_t* value) {
  MemberExchange exchange(shard_);
  exchange.request()->mutable_database()->set_kind(Kind::INT_PROPERTY);
  return AskForProperty(&exchange, family, property) &&
         TakeNumber(exchange.reply()->database(), value);
}

bool RemoteDB::GetMapProperty(ColumnFamilyHandle* family, const Slice& property,
                              std::map<std::string, std::string>* value) {
  MemberExchange exchange(shard_);
  exchange.request()->mutable_database()->set_kind(Kind::MAP_PROPERTY);
  if (!AskForProperty(&exchange, family, property)) return false;
  value->clear();
  for (const auto& [name, text] : exchange.reply()->database().map()) (*value)[name] = text;
  return true;
}

bool RemoteDB::GetAggregatedIntProperty(const Slice& property, uint64_t* value) {
  MemberExchange exchange(shard_);
  exchange.request()->mutable_database()->set_kind(Kind::AGGREGATED_INT_PROPERTY);
  return AskForProperty(&exchange, nullptr, property) &&
         TakeNumber(exchange.reply()->database(), value);
}

Status RemoteDB::ResetStats() {
  MemberExchange exchange(shard_);
  Begin(Kind::RESET_STATS, nullptr, &exchange);
  return Ask(&exchange);
}

Status RemoteDB::GetApproximateSizes(ColumnFamilyHandle* family, const Range* ranges, int n,
                                     uint64_t* sizes) {
  if (n <= 0) return Status::OK();
  MemberExchange exchange(shard_);
  sharding::DatabaseRequest* const request = Begin(Kind::APPROXIMATE_SIZES, family, &exchange);
  for (int i = 0; i < n; ++i) AddRange(&ranges[i].start, &ranges[i].limit, request);
  NACRE_RETURN_IF_ERROR(Ask(&exchange));
  const auto& numbers = exchange.reply()->database().numbers();
  if (numbers.size() != n) {
    return Status::Corruption("a member answers another number of sizes than of ranges");
  }
  std::copy(numbers.begin(), numbers.end(), sizes);
  return Status::OK();
}

int RemoteDB::NumberLevels(ColumnFamilyHandle* family) {
  MemberExchange exchange(shard_);
  Begin(Kind::NUMBER_LEVELS, family, &exchange);
  uint64_t levels = 0;
  const bool known = Ask(&exchange).ok() && TakeNumber(exchange.reply()->database(), &levels);
  return known ? static_cast<int>(levels) : ColumnFamilyOptions().num_levels;
}

uint64_t RemoteDB::GetLatestSequenceNumber() const {
  MemberExchange exchange(shard_);
  Begin(Kind::LATEST_SEQUENCE_NUMBER, nullptr, &exchange);
  uint64_t sequence = 0;
  const bool known = Ask(&exchange).ok() && TakeNumber(exchange.reply()->database(), &sequence);
  return known ? sequence : 0;
}

// ---- Options ------------------------------------------------------------------------------------

Options RemoteDB::GetOptions(ColumnFamilyHandle* /*family*/) const {
  Options options;
  options.comparator = comparator_;
  return options;
}

Status RemoteDB::SetOptions(ColumnFamilyHandle* family,
                            const std::unordered_map<std::string, std::string>& changes) {
  MemberExchange exchange(shard_);
  AddOptions(changes, Begin(Kind::SET_OPTIONS, family, &exchange));
  return Ask(&exchange);
}

Status RemoteDB::SetDBOptions(const std::unordered_map<std::string, std::string>& changes) {
  MemberExchange exchange(shard_);
  AddOptions(changes, Begin(Kind::SET_DB_OPTIONS, nullptr, &exchange));
  return Ask(&exchange);
}

}  // namespace nacre
