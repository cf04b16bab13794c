#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nacre/options.h"
#include "nacre/status.h"
#include "nacre/write_batch.h"
#include "sharding/batches/batch_participant.h"
#include "transactions/prepared_store.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

class LocalShard;

/// The part that a shard of this process has in batches over several shards. Each batch that it has
/// prepared is an entry in its prepared family; that of a decision has ":decided" behind the name.
/// An entry goes with the write that commits its part, so nothing is committed twice.
///
/// Thread safety: as BatchParticipant.
class LocalParticipant final : public BatchParticipant {
 public:
  /// `shard` has it, and is being made.
  explicit LocalParticipant(LocalShard* shard);

  /// Takes in what an earlier process left: batches that are prepared, whose keys are held until
  /// they are settled, and records of decisions. Nothing else uses the shard yet.
  Status Open() EXCLUDES(mutex_);
  /// Makes the family for the entries, so that families that are made later have the same ids in
  /// all shards.
  Status MakeFamily() { return store_.MakeFamily(); }
  /// Whether an entry of this name in the prepared family is the record of a decision.
  static bool IsDecision(const std::string& name);
  /// Deletes the records of all decisions: no shard has an entry any more.
  Status DeleteDecisions() EXCLUDES(mutex_);
  /// From here on everything is answered `Fenced`. Batches that are prepared and not decided are
  /// left to the shard's next owner. Returns when none is being written.
  void Leave() EXCLUDES(mutex_);
  /// Must precede closing the database.
  void Close() EXCLUDES(mutex_);

  /// Those that have to be settled: they were left by an earlier process, or by their writer
  /// (LeaveToOwner), or they failed, or they have been prepared for much longer than an operation
  /// takes.
  std::vector<std::string> Unsettled() const EXCLUDES(mutex_);

  Status Prepare(const std::string& batch, const WriteOptions& options, const BatchPart& part,
                 bool decides, Deadline deadline) override EXCLUDES(mutex_);
  Status WriteAlone(const std::string& batch, const WriteOptions& options, const BatchPart& part,
                    Deadline deadline) override EXCLUDES(mutex_);
  Status BeginCommit(const std::string& batch, Deadline deadline) override EXCLUDES(mutex_);
  Status Decide(const std::string& batch, bool* refused) override EXCLUDES(mutex_);
  Status Commit(const std::string& batch) override EXCLUDES(mutex_);
  void LeaveToOwner(const std::string& batch) override EXCLUDES(mutex_);
  void Abort(const std::string& batch) override EXCLUDES(mutex_);
  Status Settle(const std::string& batch, bool* decided) override EXCLUDES(mutex_);
  void Forget(const std::string& batch) override EXCLUDES(mutex_);
  void Fail(const std::string& batch, const Status& why) override EXCLUDES(mutex_);

 private:
  struct Batch {
    enum class State : uint8_t {
      kPrepared,
      kWriting,  ///< A thread decides or commits it, and alone may change it.
      kFailed,   ///< It is unknown whether it was decided, or it could not be committed.
    };

    WriteOptions options{};
    WriteBatch part{};  ///< Its families have the shard's ids.
    State state = State::kPrepared;
    bool decides = false;
    bool has_entry = false;
    bool in_gate = false;
    bool of_earlier_process = false;
    bool orphaned = false;
    bool in_doubt = false;  ///< Writing the decision failed so that it may be there.
    uint64_t begun_nanos = 0;
  };

  Status Left() const;
  /// `Busy` if one of the keys that it checks was written since, or one of its locks is lost. The
  /// batch holds them.
  Status Check(const BatchPart& part) const;
  /// The batch, whose state is now kWriting. Null: it is not prepared.
  Batch* BeginWriting(const std::string& batch) EXCLUDES(mutex_);
  void EndWriting(const std::string& batch, Batch::State state) EXCLUDES(mutex_);
  /// Its state is kWriting.
  void AbortNow(const std::string& batch, const Batch& entry) EXCLUDES(mutex_);
  void End(const std::string& batch) EXCLUDES(mutex_);
  void LeaveGate(const std::string& batch, Batch* entry);
  void RemoveEntry(const std::string& batch, const WriteOptions& options);
  Status WriteDecision(const std::string& batch, Batch* entry) EXCLUDES(mutex_);

  LocalShard* const shard_;
  PreparedStore store_;

  mutable Mutex mutex_;
  CondVar written_{&mutex_};
  bool left_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> leaving_{false};  ///< Set before `left_`, for those that wait at the gate.
  std::map<std::string, Batch> batches_ GUARDED_BY(mutex_);
  std::set<std::string> decided_ GUARDED_BY(mutex_);  ///< Those whose record is there.
  /// Those whose record is not needed any more: the next decision deletes it.
  std::vector<std::string> forgotten_ GUARDED_BY(mutex_);
};

}  // namespace nacre
