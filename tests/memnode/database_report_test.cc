// Goal: nodes keep what owners report of their databases and what operators want of them, let no
// client report for another's database, and no older wish overwrites a newer one. Method: an
// embedded pool, its client as owner and operator at once, and a second client.

#include "pool/wire/database_report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pool/databases.h"
#include "pool/reports.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre::pool {
namespace {

class DatabaseReportTest : public PoolFixture {
 protected:
  void SetUp() override {
    OpenPoolAt("embedded:?nodes=2&size=16MiB");
    ASSERT_NO_FATAL_FAILURE(CreateDatabase());
  }

  DatabaseReport SomeReport() const {
    return {.database_id = database_id_,
            .redundancy = "rs(4,2)",
            .space = {{"user-bytes", 1000}, {"parity-bytes", 500}},
            .repair = {.state = RepairProgress::State::kRunning,
                       .bytes_done = 10,
                       .bytes_total = 30,
                       .bytes_per_second = 5,
                       .seconds_left = 4}};
  }
};

TEST_F(DatabaseReportTest, NodesTellWhatTheyWereTold) {
  std::vector<KnownDatabase> known;
  Directions directions;
  ASSERT_TRUE(IsOk(pool::ListDatabases(client_, 1, &known, &directions)));
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known[0].name, database_name_);
  EXPECT_TRUE(known[0].open);
  EXPECT_FALSE(known[0].reported);

  const DatabaseReport report = SomeReport();
  ASSERT_TRUE(IsOk(pool::ReportDatabase(client_, 1, report, &directions)));
  EXPECT_EQ(directions, Directions());
  ASSERT_TRUE(IsOk(pool::ListDatabases(client_, 1, &known, &directions)));
  ASSERT_TRUE(known[0].reported);
  EXPECT_EQ(known[0].report.database_id, database_id_);
  EXPECT_EQ(known[0].report.redundancy, report.redundancy);
  EXPECT_EQ(known[0].report.space, report.space);
  EXPECT_EQ(known[0].report.repair.state, RepairProgress::State::kRunning);
  EXPECT_EQ(known[0].report.repair.bytes_done, 10u);
  EXPECT_EQ(known[0].report.repair.bytes_total, 30u);
  EXPECT_EQ(known[0].report.repair.bytes_per_second, 5u);
  EXPECT_EQ(known[0].report.repair.seconds_left, 4u);
  // The other node was told nothing.
  ASSERT_TRUE(IsOk(pool::ListDatabases(client_, 0, &known, &directions)));
  EXPECT_FALSE(known[0].reported);
}

TEST_F(DatabaseReportTest, OnlyTheOwnerReports) {
  DatabaseReport report = SomeReport();
  Directions directions;
  report.database_id = database_id_ + 1;
  EXPECT_TRUE(IsFailure(pool::ReportDatabase(client_, 0, report, &directions),
                        Status::Code::kInvalidArgument));
  report = SomeReport();
  report.redundancy.assign(100'000, 'x');
  EXPECT_TRUE(IsFailure(pool::ReportDatabase(client_, 0, report, &directions),
                        Status::Code::kInvalidArgument));
  ASSERT_TRUE(IsOk(pool::ReportDatabase(client_, 0, SomeReport(), &directions)));
  ASSERT_TRUE(IsOk(client_->databases()->PublishRoot(database_id_, "root")));
  ASSERT_TRUE(IsOk(client_->databases()->Leave(database_id_)));
  EXPECT_TRUE(IsFailure(pool::ReportDatabase(client_, 0, SomeReport(), &directions),
                        Status::Code::kInvalidArgument));
  std::vector<KnownDatabase> known;
  ASSERT_TRUE(IsOk(pool::ListDatabases(client_, 0, &known, &directions)));
  ASSERT_EQ(known.size(), 1u);
  EXPECT_FALSE(known[0].open);
  EXPECT_FALSE(known[0].reported) << "of an owner that is gone";
  // It is the next owner's report, or none.
  DatabaseLease lease;
  ASSERT_TRUE(IsOk(client_->databases()->Open(database_name_, {}, &lease)));
  ASSERT_TRUE(IsOk(pool::ListDatabases(client_, 0, &known, &directions)));
  EXPECT_TRUE(known[0].open);
  EXPECT_FALSE(known[0].reported);
}

TEST_F(DatabaseReportTest, TheLatestDirectionsHold) {
  Directions now;
  const Directions first{.version = 5,
                         .draining = {client_->instance_id(1)},
                         .repair_paused = true,
                         .repair_bytes_per_second = 1000,
                         .added_addresses = {"shm:/run/n9.sock"}};
  ASSERT_TRUE(IsOk(pool::SetDirections(client_, 0, first, &now)));
  EXPECT_EQ(now, first);
  Directions other = first;
  other.repair_paused = false;
  for (const uint64_t version : {0, 4, 5}) {
    other.version = version;
    ASSERT_TRUE(IsOk(pool::SetDirections(client_, 0, other, &now)));
    EXPECT_EQ(now, first) << version;
  }
  other.version = 6;
  ASSERT_TRUE(IsOk(pool::SetDirections(client_, 0, other, &now)));
  EXPECT_EQ(now, other);
  ASSERT_TRUE(IsOk(pool::ReportDatabase(client_, 0, SomeReport(), &now)));
  EXPECT_EQ(now, other);
  other.version = 7;
  other.added_addresses.assign(1000, std::string(100, 'x'));
  EXPECT_TRUE(
      IsFailure(pool::SetDirections(client_, 0, other, &now), Status::Code::kInvalidArgument));
}

TEST_F(DatabaseReportTest, ReadersOfTheLogAreToldOfToTheOwner) {
  const auto acknowledge = [&](const std::vector<NodeId>& nodes, uint64_t reader, uint64_t sequence,
                               bool restorable, std::vector<LogReader>* readers) {
    readers->clear();
    return pool::AcknowledgeLog(client_, nodes, database_id_, reader, sequence, restorable,
                                readers);
  };
  std::vector<LogReader> readers;
  ASSERT_TRUE(IsOk(acknowledge({0, 1}, 7, 100, /*restorable=*/false, &readers)));
  ASSERT_EQ(readers.size(), 2u) << "each node tells of one";
  EXPECT_EQ(readers[0].reader, 7u);
  EXPECT_EQ(readers[0].sequence, 100u);
  EXPECT_EQ(readers[0].restorable, 0u);
  ASSERT_TRUE(IsOk(acknowledge({1}, 7, 120, /*restorable=*/true, &readers)));
  // One that comes late takes nothing back.
  ASSERT_TRUE(IsOk(acknowledge({1}, 7, 110, /*restorable=*/true, &readers)));
  ASSERT_TRUE(IsOk(acknowledge({1}, 3, 50, /*restorable=*/false, &readers)));
  Directions directions;
  readers.clear();
  ASSERT_TRUE(IsOk(pool::ReportDatabase(client_, 1, SomeReport(), &directions, &readers)));
  ASSERT_EQ(readers.size(), 2u);
  EXPECT_EQ(readers[0].reader, 3u);
  EXPECT_EQ(readers[1].sequence, 120u);
  EXPECT_EQ(readers[1].restorable, 120u);
  // Reader 0 is none: who asks so is told of the others.
  ASSERT_TRUE(IsOk(acknowledge({0}, 0, 1000, /*restorable=*/true, &readers)));
  ASSERT_EQ(readers.size(), 1u);
  EXPECT_EQ(readers[0].sequence, 100u);
  std::vector<KnownDatabase> known;
  ASSERT_TRUE(IsOk(pool::ListDatabases(client_, 1, &known, &directions)));
  EXPECT_EQ(known[0].log_readers.size(), 2u);

  readers.clear();
  EXPECT_TRUE(IsFailure(pool::AcknowledgeLog(client_, {0}, database_id_ + 1, 7, 1, false, &readers),
                        Status::Code::kNotFound));
  EXPECT_TRUE(IsFailure(pool::AcknowledgeLog(client_, {}, database_id_, 7, 1, false, &readers),
                        Status::Code::kUnavailable));
  Status status;
  for (uint64_t reader = 1; status.ok() && reader < 1000; ++reader) {
    status = acknowledge({0}, reader, 1, false, &readers);
  }
  EXPECT_TRUE(status.IsBusy()) << status.ToString();
  EXPECT_TRUE(IsOk(acknowledge({0}, 7, 200, false, &readers))) << "it was there before";
}

}  // namespace
}  // namespace nacre::pool
