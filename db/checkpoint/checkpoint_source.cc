#include "db/checkpoint/checkpoint_source.h"

#include <utility>

#include "db/db_impl.h"
#include "db/follower/follower_db.h"
#include "db/version/pinned_tables.h"
#include "table/seal/table_keys.h"

namespace nacre {
namespace {

/// All but Find: what a DBImpl and a FollowerDB have in common.
template <typename Database>
class SourceOf : public CheckpointSource {
 public:
  explicit SourceOf(Database* db) : db_(db) {}

  Status Pin(CheckpointDescription* description,
             std::vector<std::shared_ptr<TableHandle>>* tables) final {
    PinnedTables pinned;
    NACRE_RETURN_IF_ERROR(db_->PinTables(&pinned));
    description->database_id = db_->database_id();
    description->database = db_->GetName();
    description->comparator = db_->comparator()->Name();
    description->num_levels = pinned.num_levels;
    description->sequence = pinned.sequence;
    description->manifest_version = pinned.manifest_version;
    description->next_table_id = pinned.next_table_id;
    description->families = std::move(pinned.families);
    description->next_family = pinned.next_family;
    tables->clear();
    for (VersionEdit::Added& added : pinned.tables) {
      const auto level = static_cast<uint32_t>(added.level);
      TableMeta meta = PlainMeta(added.table->meta());
      meta.database_id = description->database_id;
      meta.level = level;
      meta.placement = Placement();
      description->tables.emplace_back(level, std::move(meta));
      tables->push_back(std::move(added.table));
    }
    return Status::OK();
  }
  const DBOptions& options() const final { return db_->options(); }
  Clock* clock() const final { return db_->clock(); }

 protected:
  Database* db() const { return db_; }

 private:
  Database* const db_;
};

class OwnerSource final : public SourceOf<DBImpl> {
 public:
  using SourceOf::SourceOf;

  Status Find(const TableMeta& meta, const Status& failure,
              std::shared_ptr<TableHandle>* table) override {
    if (!failure.IsUnavailable() && !failure.IsTimedOut()) return failure;
    // Its nodes may be lost since, and the table repaired onto others.
    std::shared_ptr<TableHandle> moved = db()->FindTable(meta);
    if (moved == nullptr || moved == *table) return failure;
    *table = std::move(moved);
    return Status::OK();
  }
};

class ReaderSource final : public SourceOf<FollowerDB> {
 public:
  using SourceOf::SourceOf;

  Status Find(const TableMeta& meta, const Status& failure,
              std::shared_ptr<TableHandle>* table) override {
    if (!FollowerDB::Suspect(failure)) return failure;
    PinnedTables latest;
    NACRE_RETURN_IF_ERROR(db()->PinTables(&latest));
    for (VersionEdit::Added& added : latest.tables) {
      if (added.table->id() != meta.id) continue;
      if (added.table == *table) return failure;
      *table = std::move(added.table);
      return Status::OK();
    }
    return Status::TryAgain("table " + std::to_string(meta.id) + " was compacted away meanwhile");
  }
};

}  // namespace

Status CheckpointSource::Of(DB* db, std::unique_ptr<CheckpointSource>* source) {
  if (auto* const owner = dynamic_cast<DBImpl*>(db); owner != nullptr) {
    *source = std::make_unique<OwnerSource>(owner);
    return Status::OK();
  }
  if (auto* const reader = dynamic_cast<FollowerDB*>(db); reader != nullptr) {
    *source = std::make_unique<ReaderSource>(reader);
    return Status::OK();
  }
  return Status::NotSupported("checkpoint of a DB that none of DB's own functions has opened");
}

}  // namespace nacre
