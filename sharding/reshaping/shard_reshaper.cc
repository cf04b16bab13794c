#include "sharding/reshaping/shard_reshaper.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "sharding/batches/batch_parts.h"
#include "transactions/prepared_store.h"
#include "util/exceptions.h"
#include "util/named_point.h"
#include "util/planted_bug.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;

/// A round that took no longer is as short as the last one may be.
constexpr milliseconds kShortRound{20};
/// Writers are faster than the copying if so many rounds do not get there.
constexpr int kRoundsMax = 20;

std::vector<uint32_t> FindTargets(const ShardMap& map, const std::vector<uint32_t>& sources) {
  std::vector<uint32_t> targets;
  for (const ShardMap::Shard& shard : map.shards()) {
    if (shard.sources == sources) targets.push_back(shard.id);
  }
  return targets;
}

}  // namespace

ShardReshaper::ShardReshaper(const ShardOpener* opener, const ShardMap& map,
                             ShardMap::Reshaping reshaping,
                             std::vector<std::shared_ptr<LocalShard>> sources)
    : opener_(opener), reshaping_(std::move(reshaping)), after_(map), sources_(std::move(sources)) {
  if (FindTargets(after_, reshaping_.sources).empty()) {
    // This copy of the map is not shown to others: any owner will do.
    const size_t first = after_.IndexOf(reshaping_.sources.front());
    after_.CommitReshaping(reshaping_, after_.shards()[first].owner).IgnoreError();
  }
}

ShardReshaper::~ShardReshaper() {
  copiers_.clear();
  for (const auto& target : targets_) {
    if (target != nullptr) target->Close().IgnoreError();
  }
}

std::vector<ColumnFamilyDescriptor> ShardReshaper::FamiliesNow() const {
  LocalShard* const source = sources_.front().get();
  const auto options_of = [&](ColumnFamilyHandle* handle) {
    return ColumnFamilyOptions(source->db()->GetOptions(handle));
  };
  std::vector<ColumnFamilyDescriptor> families = {ColumnFamilyDescriptor(
      kDefaultColumnFamilyName, options_of(source->db()->DefaultColumnFamily()))};
  for (const ShardMap::Family& family : after_.families()) {
    const std::shared_ptr<ColumnFamilyHandle> handle = source->Hold(family.id);
    if (handle != nullptr) families.emplace_back(family.NameInShards(), options_of(handle.get()));
  }
  return families;
}

Status ShardReshaper::EnableCompactions(LocalShard* target) const {
  std::vector<std::shared_ptr<ColumnFamilyHandle>> held;
  std::vector<ColumnFamilyHandle*> enabled;
  for (const ColumnFamilyDescriptor& family : families_) {
    if (family.options.disable_auto_compactions) continue;
    if (family.name == kDefaultColumnFamilyName) {
      enabled.push_back(target->db()->DefaultColumnFamily());
      continue;
    }
    const auto known =
        std::ranges::find(after_.families(), family.name, &ShardMap::Family::NameInShards);
    held.push_back(target->Hold(known->id));
    if (held.back() != nullptr) enabled.push_back(held.back().get());
  }
  return enabled.empty() ? Status::OK() : target->db()->EnableAutoCompaction(enabled);
}

Status ShardReshaper::OpenTargets() {
  families_ = FamiliesNow();
  // As they are now, too; but who may take whose database is for the keyspace to say.
  DBOptions options = sources_.front()->db()->GetDBOptions();
  options.pool = opener_->options().pool;
  options.take_over = opener_->options().take_over;
  targets_.resize(reshaping_.targets.size());
  std::vector<DatabaseCopier::Target> ranges;
  for (size_t i = 0; i < targets_.size(); ++i) {
    const size_t index = after_.IndexOf(reshaping_.targets[i]);
    if (index == after_.size()) return Status::Aborted("the shards have changed meanwhile");
    // A map that could not be saved may have named it before.
    NACRE_RETURN_IF_ERROR(opener_->ClearTarget(after_, reshaping_.targets[i]));
    NACRE_RETURN_IF_ERROR(DatabaseCopier::OpenTarget(
        sources_.front()->engine(), options,
        ShardMap::DatabaseOf(opener_->name(), reshaping_.targets[i]), families_, &targets_[i]));
    const std::string* const end = after_.EndOf(index);
    ranges.push_back({.db = targets_[i].get(), .begin = {}, .end = {}});
    if (index > 0) ranges.back().begin = after_.shards()[index].begin;
    if (end != nullptr) ranges.back().end = *end;
    NACRE_POINT("reshaping.target-made");
  }
  for (const auto& source : sources_) {
    copiers_.push_back(std::make_unique<DatabaseCopier>(source->engine(), ranges));
  }
  return Status::OK();
}

Status ShardReshaper::Round() {
  for (const auto& copier : copiers_) {
    uint64_t entries = 0;
    NACRE_RETURN_IF_ERROR(copier->Round(&entries));
  }
  return Status::OK();
}

Status ShardReshaper::Prepare() {
  return CatchAll([&]() -> Status {
    NACRE_RETURN_IF_ERROR(OpenTargets());
    Clock* const clock = sources_.front()->clock();
    for (int round = 0; round < kRoundsMax; ++round) {
      const uint64_t begun = clock->NowNanos();
      NACRE_RETURN_IF_ERROR(Round());
      NACRE_POINT("reshaping.round-ended");
      const std::chrono::nanoseconds took(clock->NowNanos() - begun);
      if (took <= kShortRound) break;
    }
    if (NACRE_PLANTED_BUG("reshaping.whole-too-early")) {
      for (const auto& target : targets_) {
        NACRE_RETURN_IF_ERROR(DatabaseCopier::Finish(target.get()));
      }
    }
    return Status::OK();
  });
}

Status ShardReshaper::ReadEntries(Entries* entries) const {
  for (const auto& source : sources_) {
    const auto keyspace_id = [&](uint32_t id) { return source->KeyspaceId(id); };
    const size_t heir = after_.IndexOfDecider(source->id());
    PreparedStore store(source->db(), source->engine());
    const Status status = store.Open([&](const std::string& name, WriteBatch* updates) -> Status {
      if (LocalParticipant::IsDecision(name)) {
        if (heir < after_.size() && !NACRE_PLANTED_BUG("reshaping.decisions-are-left")) {
          (*entries)[{after_.shards()[heir].id, name}];
        }
        return Status::OK();
      }
      WriteBatch renamed;
      NACRE_RETURN_IF_ERROR(AppendUpdates(*updates, keyspace_id, &renamed));
      std::vector<BatchPart> parts;
      NACRE_RETURN_IF_ERROR(DivideBatch(after_, renamed, &parts));
      for (const BatchPart& part : parts) {
        // Two sources may have parts of one batch.
        NACRE_RETURN_IF_ERROR(AppendUpdates(
            part.updates, [](uint32_t id) { return id; },
            &(*entries)[{after_.shards()[part.shard].id, name}]));
      }
      return Status::OK();
    });
    store.Close();
    NACRE_RETURN_IF_ERROR(status);
  }
  return Status::OK();
}

Status ShardReshaper::Finish(std::vector<std::shared_ptr<LocalShard>>* targets) {
  return CatchAll([&]() -> Status {
    if (copiers_.empty()) NACRE_RETURN_IF_ERROR(OpenTargets());
    if (!NACRE_PLANTED_BUG("reshaping.last-writes-are-not-copied") ||
        copiers_.front()->copied() == 0) {
      NACRE_RETURN_IF_ERROR(Round());
    }
    NACRE_POINT("reshaping.all-copied");
    SequenceNumber copied = 0;
    for (const auto& copier : copiers_) copied = std::max(copied, copier->copied());
    copiers_.clear();
    Entries entries;
    if (!NACRE_PLANTED_BUG("reshaping.prepared-batches-are-left")) {
      NACRE_RETURN_IF_ERROR(ReadEntries(&entries));
    }
    std::vector<std::shared_ptr<LocalShard>> made(targets_.size());
    std::vector<Status> statuses(targets_.size());
    RunTogether("nacre-shards", targets_.size(), [&](size_t i) {
      statuses[i] = CatchAll([&] { return MakeWhole(i, copied, entries, &made[i]); });
    });
    for (const Status& status : statuses) NACRE_RETURN_IF_ERROR(status);
    NACRE_POINT("reshaping.targets-whole");
    // Only now: what it holds and keeps the gate closed for is that of the sources until here.
    for (const auto& shard : made) NACRE_RETURN_IF_ERROR(shard->batches()->Open());
    *targets = std::move(made);
    return Status::OK();
  });
}

Status ShardReshaper::MakeWhole(size_t target, SequenceNumber copied, const Entries& entries,
                                std::shared_ptr<LocalShard>* made) {
  DBImpl* const engine = targets_[target].get();
  DatabaseCopier::StartWritesAfter(copied, engine);
  const uint32_t id = reshaping_.targets[target];
  auto shard = opener_->MakeShard(after_, id, std::move(targets_[target]));
  PreparedStore store(shard->db(), engine);
  // The sources may have had none.
  Status status = store.Open([](const std::string&, WriteBatch*) { return Status::OK(); });
  if (status.ok()) status = store.MakeFamily();
  for (const auto& [key, updates] : entries) {
    if (!status.ok() || key.first != id) continue;
    WriteBatch entry = updates;
    status = shard->Translate(&entry);
    if (status.ok()) status = store.Add({}, key.second, entry);
  }
  store.Close();
  NACRE_RETURN_IF_ERROR(status);
  NACRE_POINT("reshaping.entries-copied");
  NACRE_RETURN_IF_ERROR(DatabaseCopier::Finish(engine));
  NACRE_RETURN_IF_ERROR(EnableCompactions(shard.get()));
  *made = std::move(shard);
  return Status::OK();
}

}  // namespace nacre
