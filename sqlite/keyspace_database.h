#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nacre/utilities/optimistic_transaction_db.h"
#include "sqlite/database.h"
#include "sqlite/query/known_statistics.h"

namespace nacre::sqlite {

/// A keyspace, which other processes may use at the same time. All spaces lie in its default
/// family, one behind the other, so that shards may begin anywhere in them.
///
/// Each state is a snapshot of all shards. A commit is an optimistic transaction of that snapshot.
/// It removes a table as a range, which conflicts with writes of any row in it. The schema's
/// version is a key, as other processes change tables, too.
///
/// Thread safety: as Database.
class KeyspaceDatabase final : public Database {
 public:
  static Status Open(const DatabaseOptions& options, std::unique_ptr<Database>* database);
  ~KeyspaceDatabase() override;

  std::shared_ptr<ReadState> Read() override;
  Status Commit(const ReadState& state, const Overlay& overlay, const RowDeltas& deltas,
                const std::vector<uint32_t>& dropped, const Slice& commands,
                std::optional<uint64_t>* after) override;
  Status CreateSpaces(uint32_t count, std::vector<NewSpace>* spaces) override;
  /// There are no families of spaces.
  Status DropUnusedFamilies(const std::vector<uint32_t>& /*ended*/) override {
    return Status::OK();
  }
  std::shared_ptr<TableStatistics> StatisticsOf(uint32_t space) override {
    return statistics_.Of(space);
  }

 private:
  KeyspaceDatabase(const DatabaseOptions& options, std::unique_ptr<OptimisticTransactionDB> db);

  /// Its commit fails if others have written a key since `snapshot` or, without one, since it
  /// touched it.
  std::unique_ptr<nacre::Transaction> Begin(std::shared_ptr<const Snapshot> snapshot) const;
  Status TryToTakeSpaces(uint32_t count, uint32_t* first);

  const std::shared_ptr<const Family> family_;
  const std::shared_ptr<const FamilySet> families_;  ///< Just `family_`.
  KnownStatistics statistics_;
  std::atomic<uint64_t> last_state_{0};
};

}  // namespace nacre::sqlite
