#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pool/connect/pool_pace.h"
#include "pool/read/remote_stream.h"
#include "pool/store/damage_finder.h"
#include "pool/store/read_plan.h"
#include "pool/store/remote_table.h"
#include "table/format/failed_read.h"
#include "util/memory/loadable_memory.h"
#include "util/mutex.h"
#include "util/planted_bug.h"

namespace nacre::pool {
namespace {

class LocalRead : public PendingRead {
 public:
  explicit LocalRead(const Slice& bytes) : bytes_(bytes) {}
  Status Await(Slice* bytes) override {
    *bytes = bytes_;
    return Status::OK();
  }

 private:
  const Slice bytes_;
};

/// A read from whichever nodes can give its bytes: when one of them fails, from others.
class RemoteRead : public PendingRead {
 public:
  RemoteRead(std::shared_ptr<const RemoteTable> table, uint64_t offset, size_t n, bool ahead)
      : table_(std::move(table)), offset_(offset), length_(n) {
    Start(ahead);
  }

  Status Await(Slice* bytes) override {
    while (read_ != nullptr && !complete_) {
      std::vector<NodeId> late;
      if (!stream_->Await(*read_, patience_, &late)) {
        if (patience_ == 0 && !OthersSuffice()) {
          stream_->Await(*read_);
          continue;
        }
        if (NACRE_PLANTED_BUG("read.memory-of-a-late-read-given-back")) read_->buffer() = Buffer();
        LeaveLate(late);  // The stream keeps its memory until what is on its way has arrived.
      } else if (read_->status().IsTimedOut() && patience_ > 0) {
        LeaveLate(std::vector<NodeId>(read_->failed()));
      } else if (!read_->status().ok()) {
        TurnToOthers(read_->status(), FragmentsOn(read_->failed()));
      } else if (CheckSources()) {
        plan_.Complete(read_->buffer().data());
        complete_ = true;
      }
    }
    NACRE_RETURN_IF_ERROR(status_);
    NACRE_RETURN_IF_ERROR(CheckOpen());
    *bytes = Slice(plan_.in_place != nullptr ? plan_.in_place : read_->buffer().data(), length_);
    return Status::OK();
  }

 private:
  /// Acquire: what arrived before this answers OK arrived before the store was closed.
  Status CheckOpen() const {
    if (!table_->store->closed.load(std::memory_order_acquire)) [[likely]]
      return Status::OK();
    return Status::ShutdownInProgress("the database is closed");
  }

  void Start(bool ahead) {
    if (status_ = CheckOpen(); !status_.ok()) return;
    const FragmentSet lost = lost_ | table_->Lost();
    const FragmentSet slow = lost | table_->LostOrSlow();
    // What can be had in time comes first, then what is slow and may answer all the same, as what
    // was late just now does not.
    const auto plan = [&](FragmentSet avoided) {
      return avoided != lost && Suffices(avoided) && Plan(avoided).ok();
    };
    if (!(plan(slow | late_) || (late_ != 0 && plan(lost | late_)))) {
      // Then those that were late before come again, with more patience each time; and in the end,
      // or where there are no others, whatever can be had with all of it.
      if (late_ != 0) patience_ = PoolPace::MorePatience(patience_);
      late_ = late_last_;
      if (late_ == 0 || patience_ == 0 || !plan(lost | late_)) {
        if (late_ != 0) patience_ = 0;
        if (!plan(slow)) status_ = Plan(lost);
      }
    }
    if (status_.ok() && plan_.in_place == nullptr)
      status_ = table_->store->connections.Stream(&stream_);
    if (status_.ok() && plan_.in_place == nullptr) {
      read_ = ahead ? stream_->StartAhead(plan_.parts, plan_.bytes, patience_ == 0)
                    : stream_->Start(plan_.parts, plan_.bytes, patience_ == 0);
    }
  }

  void LeaveLate(const std::vector<NodeId>& nodes) {
    late_last_ = FragmentsOn(nodes);
    late_ |= late_last_;
    read_.reset();
    Start(/*ahead=*/false);
  }

  /// Whether the read can be had without the nodes that are not alive.
  bool OthersSuffice() const {
    ReadPlan others;
    return PlanRead(*table_->store, table_->placement, table_->size, lost_ | table_->Lost(),
                    table_->damage, offset_, length_, &others)
        .ok();
  }

  /// Whether the range can be read without these and without what is damaged: a plan takes damaged
  /// bytes before those of the nodes that it is to avoid.
  bool Suffices(FragmentSet avoided) const {
    if (table_->damage.fragments() == 0) [[likely]]
      return true;
    const Placement& placement = table_->placement;
    const uint64_t row_bytes = placement.chunk_size * placement.redundancy.data;
    for (uint64_t row = offset_ / row_bytes; row <= (offset_ + length_ - 1) / row_bytes; ++row) {
      const FragmentSet without = avoided | table_->damage.InRow(row);
      if (std::popcount(without) > placement.redundancy.parity) return false;
    }
    return true;
  }

  Status Plan(FragmentSet avoided) {
    status_ = PlanRead(*table_->store, table_->placement, table_->size, avoided, table_->damage,
                       offset_, length_, &plan_);
    return status_;
  }

  FragmentSet FragmentsOn(const std::vector<NodeId>& nodes) const {
    FragmentSet fragments = 0;
    for (size_t i = 0; i < table_->placement.fragments.size(); ++i) {
      const NodeId node = table_->placement.fragments[i].start.node;
      if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) {
        fragments |= FragmentSet{1} << i;
      }
    }
    return fragments;
  }

  /// False: some of what is to be decoded is not the table's, and others are asked instead.
  bool CheckSources() {
    FragmentSet wrong = 0;
    Status why;
    for (const ReadPlan::Unchecked& chunk : plan_.unchecked) {
      Status checked =
          table_->sums.Check(*table_, chunk.fragment, chunk.row, read_->buffer().data() + chunk.at);
      if (checked.ok()) continue;
      wrong |= FragmentSet{1} << chunk.fragment;
      why = std::move(checked);
    }
    if (wrong == 0) return true;
    TurnToOthers(why, wrong);
    return false;
  }

  void TurnToOthers(Status why, FragmentSet failed) {
    read_.reset();
    // The message names all nodes that failed in the end.
    failure_ = failure_.ok()
                   ? why
                   : Status::FromCode(static_cast<int>(why.code()),
                                      fmt::format("{}; {}", failure_.message(), why.message()));
    lost_ |= failed;
    status_ = failure_;
    if (failed == 0) return;
    Start(/*ahead=*/false);
    if (!status_.ok()) status_ = failure_;
  }

  const std::shared_ptr<const RemoteTable> table_;
  const uint64_t offset_;
  const size_t length_;
  ReadPlan plan_;
  FragmentSet lost_ = 0;       ///< Those that failed this read.
  FragmentSet late_ = 0;       ///< Those that were late in it.
  FragmentSet late_last_ = 0;  ///< Those of them that the last wait was for.
  int patience_ = 1;           ///< How many patiences it waits; 0: without an end.
  RemoteStream* stream_ = nullptr;
  std::shared_ptr<StreamRead> read_;
  Status status_;
  Status failure_;  ///< The failure of what was tried so far.
  bool complete_ = false;
};

/// The regions of a table's fragments, as far as this process can load them.
///
/// Thread safety: Of may be called from many threads at once.
class FragmentRegions {
 public:
  explicit FragmentRegions(size_t fragments) : current_(fragments) {}

  /// The region with the fragment; null if it has to be read. Lives as long as this.
  const LoadableMemory* Of(size_t fragment, const RemoteTable& table) EXCLUDES(mutex_) {
    std::atomic<const LoadableMemory*>& current = current_[fragment];
    // Acquire: pairs with the release below.
    const LoadableMemory* region = current.load(std::memory_order_acquire);
    if (region != nullptr && region->Valid()) [[likely]]
      return region;
    const ExtentAddr& extent = table.placement.fragments[fragment];
    std::shared_ptr<const LoadableMemory> found = table.store->loadable.RegionOf(extent);
    if (found == nullptr) return nullptr;
    MutexLock lock(&mutex_);
    region = found.get();
    kept_.push_back(std::move(found));
    current.store(region, std::memory_order_release);
    return region;
  }

 private:
  std::vector<std::atomic<const LoadableMemory*>> current_;
  Mutex mutex_;
  /// One for each time that a node was found anew: iterators may still be in the earlier ones.
  std::vector<std::shared_ptr<const LoadableMemory>> kept_ GUARDED_BY(mutex_);
};

class TableExtent : public Extent {
 public:
  explicit TableExtent(std::shared_ptr<RemoteTable> table)
      : table_(std::move(table)),
        in_place_(WholeCopyHere(*table_)),
        regions_(table_->malformed.ok() ? table_->placement.fragments.size() : 0) {}

  uint64_t size() const override { return table_->size; }
  const char* InPlace() const override { return in_place_; }
  LoadableBytes Loadable(uint64_t offset) override {
    // What is damaged is read, from elsewhere.
    if (!table_->malformed.ok() || table_->damage.fragments() != 0) return {};
    const Placement& placement = table_->placement;
    if (!placement.redundancy.striped()) {
      for (size_t i = 0; i < placement.fragments.size(); ++i) {
        if (const LoadableMemory* region = regions_.Of(i, *table_)) {
          return {FragmentBytesIn(*region, placement.fragments[i]), 0, table_->size, region};
        }
      }
      return {};
    }
    const Striping::Place place = Striping(placement).Locate(offset);
    const LoadableMemory* const region = regions_.Of(place.fragment, *table_);
    if (region == nullptr) return {};
    const uint64_t begin = offset / placement.chunk_size * placement.chunk_size;
    return {FragmentBytesIn(*region, placement.fragments[place.fragment]) + place.offset -
                (offset - begin),
            begin, std::min(begin + placement.chunk_size, table_->size), region};
  }
  std::unique_ptr<PendingRead> StartRead(uint64_t offset, size_t n) override {
    return NewRead(offset, n, /*ahead=*/false);
  }
  std::unique_ptr<PendingRead> StartReadAhead(uint64_t offset, size_t n) override {
    return NewRead(offset, n, /*ahead=*/true);
  }

  std::string FindDamage(uint64_t offset, size_t n, bool again) override {
    table_->store->damaged_reads.fetch_add(1, std::memory_order_relaxed);
    return pool::FindDamage(table_.get(), offset, n, again);
  }
  FragmentSet damaged() const override { return table_->damage.fragments(); }
  void ReportDamage(FragmentSet fragments) override { table_->ReportDamage(fragments); }
  void ReportDamage(FragmentSet fragments, uint64_t chunk) override {
    table_->ReportDamage(fragments, chunk);
  }
  void PassDamageTo(std::shared_ptr<Extent> moved, FragmentSet kept) override {
    table_->PassDamageTo(std::move(moved), kept);
  }

 private:
  std::unique_ptr<PendingRead> NewRead(uint64_t offset, size_t n, bool ahead) {
    if (!table_->malformed.ok()) return std::make_unique<FailedRead>(table_->malformed);
    const uint64_t size = table_->size;
    if (offset > size || n > size - offset) {
      return std::make_unique<FailedRead>(Status::Corruption(
          fmt::format("read of bytes {} to {} of {}", offset, offset + n, size)));
    }
    if (n == 0) return std::make_unique<LocalRead>(Slice());
    if (in_place_ != nullptr && table_->damage.fragments() == 0) {
      return std::make_unique<LocalRead>(Slice(in_place_ + offset, n));
    }
    return std::make_unique<RemoteRead>(table_, offset, n, ahead);
  }
  static const char* WholeCopyHere(const RemoteTable& table) {
    if (!table.malformed.ok() || table.placement.redundancy.striped()) return nullptr;
    for (const ExtentAddr& fragment : table.placement.fragments) {
      if (const char* bytes = table.store->LocalBytes(fragment)) return bytes;
    }
    return nullptr;
  }

  const std::shared_ptr<RemoteTable> table_;
  const char* const in_place_;
  FragmentRegions regions_;
};

}  // namespace

void RemoteTable::PassDamageTo(std::shared_ptr<Extent> to, FragmentSet kept_by_it) {
  Extent* const next = to.get();
  {
    MutexLock lock(&moving);
    moved = std::move(to);
    kept = kept_by_it;
  }
  const FragmentSet known = damage.fragments() & kept_by_it;
  if (known != 0) next->ReportDamage(known);
}

FragmentSet RemoteTable::NotOn(bool (PoolClient::*serves)(NodeId) const) const {
  FragmentSet missing = 0;
  for (size_t i = 0; i < placement.fragments.size(); ++i) {
    const NodeId node = placement.fragments[i].start.node;
    if (node != store->local.node && !(store->client->*serves)(node))
      missing |= FragmentSet{1} << i;
  }
  return missing;
}

std::shared_ptr<Extent> NewTableExtent(std::shared_ptr<RemoteTable> table) {
  return std::make_shared<TableExtent>(std::move(table));
}

}  // namespace nacre::pool
