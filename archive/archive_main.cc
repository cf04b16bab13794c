// nacre-archive: archives databases continuously into a directory.

#include <fmt/format.h>
#include <gflags/gflags.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "metrics/endpoint.h"
#include "metrics/page.h"
#include "nacre/archive.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "util/api/program_version.h"
#include "util/log.h"

DEFINE_string(pool, "", "the pool's URI, such as tcp:10.0.0.1:7400,10.0.0.2:7400");
DEFINE_string(to, "", "directory of the archives; that of a database is DIR/DATABASE");
DEFINE_int32(interval_ms, 20, "how often it is looked for what is new");
DEFINE_int32(base_interval_s, 24 * 3600, "a new base is made so often, if something was written");
DEFINE_int32(base_threads, 4, "tables that are copied at once for a base");
DEFINE_uint64(base_bytes_per_second, 0, "bytes a second at most that bases read; 0: no limit");
DEFINE_int32(keep_for_s, 0,
             "what is needed for no time of the last so many seconds is removed; 0: "
             "all is kept");
DEFINE_uint32(keep_bases, 1, "so many bases are kept, however old they are");
DEFINE_string(encryption_key_file, "",
              "file with keys, a line 'ID HEX' each, of which the first one encrypts all that is "
              "archived from now on; empty: it is not encrypted");
DEFINE_string(database_key_file, "",
              "file with the keys of databases that are encrypted (Options::encryption_key_file); "
              "needs --encryption_key_file");
DEFINE_string(metrics, "",
              "HOST:PORT to answer GET /metrics at, for Prometheus; empty: what NACRE_METRICS in "
              "the environment says");
DEFINE_int32(report_s, 10, "how often a line on each database goes to standard error; 0: never");

namespace nacre {
namespace {

constexpr char kUsage[] =
    "archives databases of a Nacre pool continuously, until SIGTERM or SIGINT\n\n"
    "  nacre-archive --pool=URI --to=DIR DATABASE...\n\n"
    "The archive of each database, in DIR/DATABASE, has bases and the log since, which is on the\n"
    "disk a moment after the owner's acknowledgement. 'nacre-ctl archives DIR/DATABASE' lists "
    "what\n"
    "can be restored to, and 'nacre-ctl restore' restores it (docs/operations.md).\n";

/// One database's.
struct Archive {
  std::string database;
  std::string dir;
  std::unique_ptr<Archiver> archiver;
};
using Archives = std::vector<Archive>;

/// How far the archives have come, as Prometheus asks for it.
class ArchiveMetrics final : public metrics::Source {
 public:
  explicit ArchiveMetrics(const Archives* archives) : archives_(*archives) {}

  void Collect(metrics::Page* page) const override {
    using metrics::Kind;
    struct Figure {
      metrics::Description metric;
      double (*value)(const ArchiverStatus& status);
    };
    using S = const ArchiverStatus&;
    static constexpr Figure kFigures[] = {
        {{"nacre_archive_sequence", "All up to this sequence is on the disk.", Kind::kGauge},
         [](S s) { return static_cast<double>(s.archived_sequence); }},
        {{"nacre_archive_lag_seconds", "Since the archive was last known to have everything.",
          Kind::kGauge},
         [](S s) { return std::chrono::duration<double>(s.lag).count(); }},
        {{"nacre_archive_healthy", "0 while it does not go on: the log says why.", Kind::kGauge},
         [](S s) { return s.status.ok() ? 1.0 : 0.0; }},
        {{"nacre_archive_batches_total", "Batches written to the log's files.", Kind::kCounter},
         [](S s) { return static_cast<double>(s.batches); }},
        {{"nacre_archive_bytes_total", "Bytes written to the log's files.", Kind::kCounter},
         [](S s) { return static_cast<double>(s.bytes); }},
        {{"nacre_archive_bases_total", "Bases that were made.", Kind::kCounter},
         [](S s) { return static_cast<double>(s.bases); }},
        {{"nacre_archive_gaps_total", "Parts of the log that were gone before they were read.",
          Kind::kCounter},
         [](S s) { return static_cast<double>(s.gaps); }},
    };
    static constexpr metrics::Description kBaseTime = {
        "nacre_archive_base_timestamp_seconds",
        "When the latest base was made, since 1970; absent if there is none.", Kind::kGauge};
    for (const Archive& archive : archives_) {
      const metrics::Labels labels = {{"database", archive.database}};
      const ArchiverStatus status = archive.archiver->GetStatus();
      for (const Figure& figure : kFigures) page->Add(figure.metric, labels, figure.value(status));
      if (status.base_created_at != 0) page->Add(kBaseTime, labels, status.base_created_at);
    }
  }

 private:
  const Archives& archives_;
};

Status OpenEndpoint(std::unique_ptr<metrics::Endpoint>* endpoint) {
  Status left_out;
  NACRE_RETURN_IF_ERROR(
      metrics::OpenEndpoint(FLAGS_metrics, endpoint, &left_out).WithContext("--metrics"));
  if (!left_out.ok()) fmt::print(stderr, "no metrics are shown: {}\n", left_out.ToString());
  return Status::OK();
}

/// DATABASE is a folder's name.
Status CheckName(const std::string& database) {
  if (!database.empty() && database.front() != '.' && database.find('/') == std::string::npos) {
    return Status::OK();
  }
  return Status::InvalidArgument("'" + database + "' cannot be the name of a directory");
}

std::string Line(const std::string& database, const ArchiverStatus& status) {
  return fmt::format(
      "{}: archived to sequence {}, {} batches, {} bytes, {} bases, {} gaps, lag {} ms{}", database,
      status.archived_sequence, status.batches, status.bytes, status.bases, status.gaps,
      status.lag.count(), status.status.ok() ? "" : ": " + status.status.ToString());
}

Status Run(const std::vector<std::string>& databases) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  if (FLAGS_pool.empty()) return Status::InvalidArgument("--pool is missing");
  if (FLAGS_to.empty()) return Status::InvalidArgument("--to is missing");
  if (databases.empty()) return Status::InvalidArgument("no database is named");
  Options options;
  options.pool_uri = FLAGS_pool;
  options.encryption_key_file = FLAGS_database_key_file;
  options.info_log = NewStderrLogger(LogLevel::kInfo);
  ArchiveOptions archive;
  archive.interval = milliseconds(FLAGS_interval_ms);
  archive.base_interval = seconds(FLAGS_base_interval_s);
  archive.base.threads = FLAGS_base_threads;
  archive.base.bytes_per_second = FLAGS_base_bytes_per_second;
  archive.keep_for = seconds(FLAGS_keep_for_s);
  archive.keep_bases = FLAGS_keep_bases;
  archive.encryption_key_file = FLAGS_encryption_key_file;
  // Blocked before any thread begins, so that they come to sigtimedwait.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  Archives archives;
  const ArchiveMetrics source(&archives);
  std::unique_ptr<metrics::Endpoint> endpoint;
  NACRE_RETURN_IF_ERROR(OpenEndpoint(&endpoint));
  for (const std::string& database : databases) {
    NACRE_RETURN_IF_ERROR(CheckName(database));
    const std::string dir = FLAGS_to + "/" + database;
    std::unique_ptr<Archiver> archiver;
    NACRE_RETURN_IF_ERROR(Archiver::Open(options, database, dir, archive, &archiver));
    archives.push_back({database, dir, std::move(archiver)});
    fmt::print(stderr, "archiving {} into {}\n", database, dir);
  }
  if (endpoint != nullptr) endpoint->Show(&source);
  const timespec rest{.tv_sec = FLAGS_report_s > 0 ? FLAGS_report_s : 3600, .tv_nsec = 0};
  while (::sigtimedwait(&ends, nullptr, &rest) < 0) {
    if (FLAGS_report_s <= 0) continue;
    for (const Archive& each : archives) {
      fmt::print(stderr, "{}\n", Line(each.database, each.archiver->GetStatus()));
    }
  }
  return Status::OK();
}

}  // namespace
}  // namespace nacre

int main(int argc, char** argv) {
  gflags::SetUsageMessage(nacre::kUsage);
  if (nacre::ParseFlagsOrPrintVersion("nacre-archive", &argc, &argv)) return 0;
  nacre::Status status;
  try {
    status = nacre::Run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    status = nacre::Status::IOError(e.what());
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "nacre-archive: %s\n", status.ToString().c_str());
  return 1;
}
