#include "sharding/shard_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "nacre/column_family.h"
#include "sharding/shard_map.pb.h"
#include "util/coding.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

constexpr uint32_t kFormatVersion = 1;
/// That of a map whose shards belong to members: an older program would take them for its own.
constexpr uint32_t kSharedFormatVersion = 2;
/// That of a map with shards that were split or merged, or are being: an older program would not
/// find what they have.
constexpr uint32_t kReshapedFormatVersion = 3;
/// That of a map with families that members have made: an older program would take them for others.
constexpr uint32_t kFamiliesFormatVersion = 4;
/// Begins the names in shards of families that are named by their ids.
constexpr char kNamedById = '@';

uint64_t PrefixOf(const Slice& key) {
  uint64_t prefix = 0;
  for (size_t i = 0; i < sizeof(prefix); ++i) {
    prefix = prefix << 8 | (i < key.size() ? static_cast<uint8_t>(key[i]) : 0);
  }
  return prefix;
}

Status ParseMessage(const Slice& bytes, sharding::Map* message) {
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      message->shards().empty()) {
    return Status::Corruption("the map of the shards cannot be parsed");
  }
  if (message->format() < kFormatVersion || message->format() > kFamiliesFormatVersion) {
    return Status::NotSupported(
        fmt::format("the map of the shards has format {}", message->format()));
  }
  return Status::OK();
}

}  // namespace

Status ShardMap::Make(const Comparator* comparator, const std::vector<std::string>& boundaries,
                      ShardMap* map) {
  ShardMap made;
  made.comparator_ = comparator;
  made.next_family_ = kFirstFamily;
  made.shards_.push_back({.id = made.next_shard_++, .begin = {}});
  for (const std::string& begin : boundaries) {
    const bool ascends =
        made.shards_.size() == 1 || comparator->Compare(made.shards_.back().begin, begin) < 0;
    if (begin.empty() || !ascends) {
      return Status::InvalidArgument(
          fmt::format("boundaries: '{}' is {}", Slice(begin).ToString(/*hex=*/true),
                      begin.empty() ? "empty" : "not behind the one before it"));
    }
    made.shards_.push_back({.id = made.next_shard_++, .begin = begin});
  }
  made.Prepare();
  *map = std::move(made);
  return Status::OK();
}

Status ShardMap::Parse(const Slice& bytes, const Comparator* comparator, ShardMap* map) {
  sharding::Map message;
  NACRE_RETURN_IF_ERROR(ParseMessage(bytes, &message));
  if (message.comparator() != comparator->Name()) {
    return Status::InvalidArgument(fmt::format("the keyspace has the comparator {}, not {}",
                                               message.comparator(), comparator->Name()));
  }
  ShardMap parsed;
  parsed.comparator_ = comparator;
  parsed.version_ = message.version();
  parsed.being_made_ = message.being_made();
  parsed.next_shard_ = message.next_shard();
  parsed.next_family_ = message.next_family();
  for (const sharding::Shard& shard : message.shards()) {
    parsed.shards_.push_back({.id = shard.id(),
                              .begin = shard.begin(),
                              .owner = shard.owner(),
                              .epoch = shard.epoch(),
                              .previous_owner = shard.previous_owner(),
                              .sources = {shard.sources().begin(), shard.sources().end()},
                              .heir_of = {shard.heir_of().begin(), shard.heir_of().end()}});
  }
  for (const sharding::Reshaping& reshaping : message.reshapings()) {
    parsed.reshapings_.push_back(
        {.sources = {reshaping.sources().begin(), reshaping.sources().end()},
         .targets = {reshaping.targets().begin(), reshaping.targets().end()},
         .split_key = reshaping.split_key()});
  }
  parsed.retired_.assign(message.retired().begin(), message.retired().end());
  for (const sharding::Family& family : message.families()) {
    parsed.families_.push_back({.id = family.id(),
                                .name = family.name(),
                                .named_by_id = family.named_by_id(),
                                .options = family.options()});
  }
  for (size_t i = 2; i < parsed.shards_.size(); ++i) {
    if (comparator->Compare(parsed.shards_[i - 1].begin, parsed.shards_[i].begin) >= 0) {
      return Status::Corruption("the shards of the map do not ascend");
    }
  }
  parsed.draining_.assign(message.draining().begin(), message.draining().end());
  if (!std::ranges::is_sorted(parsed.draining_)) {
    return Status::Corruption("the draining members of the map do not ascend");
  }
  const sharding::Balance& balance = message.balance();
  parsed.balance_ = {.paused = balance.paused(),
                     .imbalance_percent = balance.imbalance_percent(),
                     .split_bytes = balance.split_bytes(),
                     .split_operations_per_second = balance.split_operations_per_second(),
                     .merge_bytes = balance.merge_bytes()};
  parsed.shared_ = message.shared();
  parsed.Prepare();
  *map = std::move(parsed);
  return Status::OK();
}

Status ShardMap::ParseFamilies(const Slice& bytes, std::vector<std::string>* families) {
  sharding::Map message;
  NACRE_RETURN_IF_ERROR(ParseMessage(bytes, &message));
  *families = {std::string(kDefaultColumnFamilyName)};
  for (const sharding::Family& family : message.families()) {
    if (family.name() != kPreparedFamily) families->push_back(family.name());
  }
  return Status::OK();
}

std::string ShardMap::Serialize() const {
  sharding::Map message;
  const bool has_shared_families = std::ranges::any_of(families_, &Family::named_by_id);
  message.set_format(has_shared_families ? kFamiliesFormatVersion
                     : was_reshaped()    ? kReshapedFormatVersion
                     : shared_           ? kSharedFormatVersion
                                         : kFormatVersion);
  message.set_version(version_);
  message.set_being_made(being_made_);
  message.set_comparator(comparator_->Name());
  message.set_next_shard(next_shard_);
  message.set_next_family(next_family_);
  for (const Shard& shard : shards_) {
    sharding::Shard* const added = message.add_shards();
    added->set_id(shard.id);
    added->set_begin(shard.begin);
    added->set_owner(shard.owner);
    added->set_epoch(shard.epoch);
    added->set_previous_owner(shard.previous_owner);
    added->mutable_sources()->Assign(shard.sources.begin(), shard.sources.end());
    added->mutable_heir_of()->Assign(shard.heir_of.begin(), shard.heir_of.end());
  }
  for (const Reshaping& reshaping : reshapings_) {
    sharding::Reshaping* const added = message.add_reshapings();
    added->mutable_sources()->Assign(reshaping.sources.begin(), reshaping.sources.end());
    added->mutable_targets()->Assign(reshaping.targets.begin(), reshaping.targets.end());
    added->set_split_key(reshaping.split_key);
  }
  message.mutable_retired()->Assign(retired_.begin(), retired_.end());
  for (const Family& family : families_) {
    sharding::Family* const added = message.add_families();
    added->set_id(family.id);
    added->set_name(family.name);
    added->set_named_by_id(family.named_by_id);
    added->set_options(family.options);
  }
  message.mutable_draining()->Assign(draining_.begin(), draining_.end());
  sharding::Balance* const balance = message.mutable_balance();
  balance->set_paused(balance_.paused);
  balance->set_imbalance_percent(balance_.imbalance_percent);
  balance->set_split_bytes(balance_.split_bytes);
  balance->set_split_operations_per_second(balance_.split_operations_per_second);
  balance->set_merge_bytes(balance_.merge_bytes);
  message.set_shared(shared_);
  return message.SerializeAsString();
}

std::string ShardMap::DatabaseOf(const std::string& keyspace, uint32_t id) {
  return fmt::format("{}@{}", keyspace, id);
}

std::string ShardMap::DatabaseOfMap(const std::string& keyspace) { return keyspace + "@map"; }

bool ShardMap::IsShardOf(const std::string& database, const std::string& keyspace) {
  if (!database.starts_with(keyspace + "@")) return false;
  const std::string_view id = std::string_view(database).substr(keyspace.size() + 1);
  return !id.empty() &&
         std::all_of(id.begin(), id.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void ShardMap::Prepare() {
  prefixes_.clear();
  if (comparator_ != BytewiseComparator()) return;
  for (const Shard& shard : shards_) prefixes_.push_back(PrefixOf(shard.begin));
}

size_t ShardMap::IndexOf(uint32_t id) const {
  return static_cast<size_t>(std::ranges::find(shards_, id, &Shard::id) - shards_.begin());
}

size_t ShardMap::IndexOfDecider(uint32_t id) const {
  const auto found = std::ranges::find_if(shards_, [id](const Shard& shard) {
    return shard.id == id || std::ranges::find(shard.heir_of, id) != shard.heir_of.end();
  });
  return static_cast<size_t>(found - shards_.begin());
}

bool ShardMap::IsDraining(int64_t member) const {
  return std::ranges::binary_search(draining_, member);
}

size_t ShardMap::CountOf(int64_t member) const {
  return static_cast<size_t>(std::ranges::count(shards_, member, &Shard::owner));
}

size_t ShardMap::Find(const Slice& key) const {
  auto begin = shards_.begin() + 1;
  auto end = shards_.end();
  if (!prefixes_.empty()) {
    // As a rule the first bytes tell.
    const uint64_t prefix = PrefixOf(key);
    const auto [low, high] = std::equal_range(prefixes_.begin() + 1, prefixes_.end(), prefix);
    begin = shards_.begin() + (low - prefixes_.begin());
    end = shards_.begin() + (high - prefixes_.begin());
  }
  const auto behind = std::partition_point(
      begin, end, [&](const Shard& shard) { return comparator_->Compare(shard.begin, key) <= 0; });
  return static_cast<size_t>(behind - shards_.begin()) - 1;
}

void ShardMap::SetMade() {
  being_made_ = false;
  ++version_;
}

void ShardMap::SetShared() {
  shared_ = true;
  ++version_;
}

void ShardMap::SetOwner(size_t index, int64_t owner) {
  Shard& shard = shards_[index];
  shard.previous_owner = shard.owner;
  shard.owner = owner;
  ++shard.epoch;
  ++version_;
}

void ShardMap::SetDraining(int64_t member, bool draining) {
  std::erase(draining_, member);
  if (draining) draining_.insert(std::ranges::upper_bound(draining_, member), member);
  ++version_;
}

void ShardMap::SetBalance(const Balance& balance) {
  balance_ = balance;
  ++version_;
}

// ---- Splits and merges --------------------------------------------------------------------------

bool ShardMap::was_reshaped() const {
  return !reshapings_.empty() || !retired_.empty() ||
         std::ranges::any_of(shards_, [](const Shard& shard) {
           return !shard.sources.empty() || !shard.heir_of.empty();
         });
}

std::string ShardMap::Shape() const {
  ShardMap shape = *this;
  shape.version_ = 0;
  shape.draining_.clear();
  shape.balance_ = {};
  for (Shard& shard : shape.shards_) {
    shard.owner = 0;
    shard.epoch = 0;
    shard.previous_owner = 0;
  }
  return shape.Serialize();
}

const ShardMap::Reshaping* ShardMap::ReshapingOf(uint32_t id) const {
  const auto found = std::ranges::find_if(reshapings_, [id](const Reshaping& reshaping) {
    return std::ranges::find(reshaping.sources, id) != reshaping.sources.end() ||
           std::ranges::find(reshaping.targets, id) != reshaping.targets.end();
  });
  return found == reshapings_.end() ? nullptr : &*found;
}

Status ShardMap::CheckFree(const std::vector<uint32_t>& shards) const {
  for (const uint32_t id : shards) {
    const size_t index = IndexOf(id);
    if (index == size()) return Status::InvalidArgument(fmt::format("there is no shard {}", id));
    if (ReshapingOf(id) != nullptr) {
      return Status::Busy(fmt::format("shard {} is being split or merged already", id));
    }
    if (!shards_[index].sources.empty()) {
      return Status::Busy(fmt::format("shard {} was split or merged a moment ago", id));
    }
  }
  return Status::OK();
}

Status ShardMap::BeginSplit(uint32_t shard, const std::string& key, Reshaping* reshaping) {
  NACRE_RETURN_IF_ERROR(CheckFree({shard}));
  const size_t index = IndexOf(shard);
  const bool is_first = !key.empty() && Has(index, key) &&
                        (index > 0 && comparator_->Compare(shards_[index].begin, key) == 0);
  if (key.empty() || !Has(index, key) || is_first) {
    return Status::InvalidArgument(fmt::format(
        "shard {} cannot be split at '{}': {}", shard, Slice(key).ToString(/*hex=*/true),
        is_first ? "it begins there" : "it has no such key"));
  }
  *reshaping = {.sources = {shard}, .targets = {next_shard_, next_shard_ + 1}, .split_key = key};
  next_shard_ += 2;
  reshapings_.push_back(*reshaping);
  ++version_;
  return Status::OK();
}

Status ShardMap::BeginMerge(uint32_t low, uint32_t high, Reshaping* reshaping) {
  NACRE_RETURN_IF_ERROR(CheckFree({low, high}));
  if (IndexOf(low) + 1 != IndexOf(high)) {
    return Status::InvalidArgument(
        fmt::format("shard {} does not begin where shard {} ends", high, low));
  }
  *reshaping = {.sources = {low, high}, .targets = {next_shard_++}, .split_key = {}};
  reshapings_.push_back(*reshaping);
  ++version_;
  return Status::OK();
}

Status ShardMap::CommitReshaping(const Reshaping& reshaping, int64_t owner) {
  const auto found = std::ranges::find(reshapings_, reshaping);
  const size_t first = IndexOf(reshaping.sources.front());
  if (found == reshapings_.end() || first + reshaping.sources.size() > size()) {
    return Status::Aborted("it was cancelled meanwhile");
  }
  for (size_t i = first; i < first + reshaping.sources.size(); ++i) {
    if (shards_[i].owner == owner) continue;
    return Status::Aborted(fmt::format("shard {} has another owner by now", shards_[i].id));
  }
  std::vector<Shard> made;
  for (const uint32_t target : reshaping.targets) {
    made.push_back({.id = target,
                    .begin = made.empty() ? shards_[first].begin : reshaping.split_key,
                    .owner = owner,
                    .epoch = 1,
                    .sources = reshaping.sources});
  }
  // The first one alone knows what they decided, so that no two say different things.
  for (size_t i = first; i < first + reshaping.sources.size(); ++i) {
    std::vector<uint32_t>& heir_of = made.front().heir_of;
    heir_of.push_back(shards_[i].id);
    heir_of.insert(heir_of.end(), shards_[i].heir_of.begin(), shards_[i].heir_of.end());
  }
  const auto at = shards_.begin() + static_cast<ptrdiff_t>(first);
  shards_.insert(shards_.erase(at, at + static_cast<ptrdiff_t>(reshaping.sources.size())),
                 made.begin(), made.end());
  reshapings_.erase(found);
  ++version_;
  Prepare();
  return Status::OK();
}

void ShardMap::CancelReshaping(const Reshaping& reshaping) {
  if (std::erase(reshapings_, reshaping) == 0) return;
  retired_.insert(retired_.end(), reshaping.targets.begin(), reshaping.targets.end());
  ++version_;
}

void ShardMap::SetWhole(size_t index) {
  for (const uint32_t source : std::exchange(shards_[index].sources, {})) {
    const bool used = std::ranges::any_of(shards_, [source](const Shard& shard) {
      return std::ranges::find(shard.sources, source) != shard.sources.end();
    });
    if (!used) retired_.push_back(source);
  }
  ++version_;
}

void ShardMap::RemoveRetired(uint32_t id) {
  if (std::erase(retired_, id) > 0) ++version_;
}

// ---- Families -----------------------------------------------------------------------------------

uint32_t ShardMap::AddFamily(const std::string& name) {
  families_.push_back({.id = next_family_++, .name = name});
  ++version_;
  return families_.back().id;
}

uint32_t ShardMap::AddSharedFamily(const std::string& name, const std::string& options) {
  const uint32_t id = AddFamily(name);
  families_.back().named_by_id = true;
  families_.back().options = options;
  return id;
}

std::string ShardMap::Family::NameInShards() const {
  const bool by_id = named_by_id && !NACRE_PLANTED_BUG("family.named-without-its-id");
  return by_id ? fmt::format("{}{}:{}", kNamedById, id, name) : name;
}

bool ShardMap::IsLeftover(const std::string& name_in_shard) const {
  if (name_in_shard == kDefaultColumnFamilyName) return false;
  for (const Family& family : families_) {
    if (family.NameInShards() == name_in_shard) return false;
  }
  uint32_t id = 0;
  const char* const end = name_in_shard.data() + name_in_shard.size();
  const bool by_id = name_in_shard.starts_with(kNamedById) &&
                     std::from_chars(name_in_shard.data() + 1, end, id).ec == std::errc();
  return !by_id || id < next_family_;
}

void ShardMap::RemoveFamily(const std::string& name) {
  std::erase_if(families_, [&](const Family& family) { return family.name == name; });
  ++version_;
}

}  // namespace nacre
