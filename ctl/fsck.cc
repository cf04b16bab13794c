#include "ctl/fsck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "ctl/ctl_report.h"
#include "ctl/database_check.h"
#include "ctl/database_view.h"
#include "ctl/terminal/progress_line.h"
#include "pool/databases.h"
#include "pool/read/pool_reader.h"
#include "pool/read/slab_map.h"
#include "util/clock.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

/// How often to check a database whose owner is at work.
constexpr int kCheckAttempts = 5;

/// Whether `finding`, made by `before`, is about something that `after` has unchanged.
bool StillHolds(const Finding& finding, const DatabaseView& before, const DatabaseView& after) {
  if (finding.table != 0) {
    const auto then = before.state.tables.find(finding.table);
    const auto now = after.state.tables.find(finding.table);
    return then != before.state.tables.end() && now != after.state.tables.end() &&
           then->second.second.placement.fragments == now->second.second.placement.fragments;
  }
  if (finding.segment != 0) {
    const auto then = before.state.segments.find(finding.segment);
    const auto now = after.state.segments.find(finding.segment);
    return then != before.state.segments.end() && now != after.state.segments.end() &&
           then->second == now->second;
  }
  return true;
}

bool SameMoment(const DatabaseView& a, const DatabaseView& b) {
  return !a.root.owned && !b.root.owned && a.root.epoch == b.root.epoch &&
         a.root.version == b.root.version;
}

class PoolCheck {
 public:
  PoolCheck(pool::PoolClient* client, const FsckOptions& options, FsckReport* report)
      : client_(client), options_(options), report_(report) {}

  void Run() {
    const PoolReport pool = AskPool(client_);
    for (const NodeReport& node : pool.nodes) {
      if (node.status.ok()) continue;
      report_->findings.push_back(
          {.problem = Problem::kNode, .node = node.address, .text = Explain(node.status)});
    }
    Status status = PoolReader::Open(client_->fabric(), &reader_);
    if (!status.ok()) return report_->failures.push_back(std::move(status));
    if (!options_.database.empty()) return Check(options_.database);
    for (const pool::KnownDatabase& database : pool.databases) {
      Note(database);
      Check(database.name);
    }
    CheckStrangers();
  }

 private:
  void Note(const pool::KnownDatabase& database) { known_.insert(database.database_id); }
  void Check(const std::string& name);
  /// One attempt. False: what was found may be due to what the owner did meanwhile.
  bool CheckOnce(const std::string& name, bool last);
  /// Checks what is left of a database that was destroyed or never finished.
  void CheckRemains(const std::string& name);
  /// Checks slabs leased to unknown databases.
  void CheckStrangers();
  std::map<NodeId, SlabMap> ReadSlabMaps();

  pool::PoolClient* const client_;
  const FsckOptions& options_;
  FsckReport* const report_;
  std::unique_ptr<PoolReader> reader_;
  std::set<uint64_t> known_;  ///< Ids of databases.
};

std::map<NodeId, SlabMap> PoolCheck::ReadSlabMaps() {
  std::map<NodeId, SlabMap> maps;
  for (int i = 0; i < client_->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    SlabMap map;
    const Status status = ReadSlabMap(reader_.get(), node, &map);
    if (status.ok()) {
      maps[node] = std::move(map);
    } else if (!status.IsUnavailable()) {
      report_->findings.push_back({.problem = Problem::kDamage,
                                   .node = client_->node_address(node),
                                   .text = std::string(status.message())});
    }
  }
  return maps;
}

void PoolCheck::Check(const std::string& name) {
  for (int attempt = 1; attempt <= kCheckAttempts; ++attempt) {
    if (CheckOnce(name, attempt == kCheckAttempts)) return;
  }
}

bool PoolCheck::CheckOnce(const std::string& name, bool last) {
  DatabaseView view;
  Status status = ViewDatabase(client_, name, &view);
  if (status.IsNotFound() && options_.database.empty()) {
    if (!view.root.owned) CheckRemains(name);  // If it is owned, it is being made.
    return true;
  }
  if (status.IsCorruption()) {
    report_->findings.push_back(
        {.problem = Problem::kManifest, .database = name, .text = std::string(status.message())});
    return true;
  }
  if (!status.ok()) {
    report_->failures.push_back(status.WithContext("database " + name));
    return true;
  }
  DatabaseCheck::Progress progress;
  if (options_.progress != nullptr) {
    progress = [&](uint64_t done, uint64_t total) { options_.progress(name, done, total); };
  }
  DatabaseCheck check(client_, reader_.get(), view, options_.full, std::move(progress));
  check.Run(ReadSlabMaps());
  std::vector<Finding>& findings = check.findings();
  if (!findings.empty()) {
    DatabaseView after;
    const Status again = ViewDatabase(client_, name, &after);
    if (!again.ok() && !last) return false;
    if (again.ok() && !SameMoment(view, after)) {
      std::erase_if(findings,
                    [&](const Finding& finding) { return !StillHolds(finding, view, after); });
      const bool general = std::any_of(findings.begin(), findings.end(), [](const Finding& each) {
        return each.table == 0 && each.segment == 0;
      });
      // What is said of no table may be due to a change of owners, or of the manifest's place.
      if (!last && (general || !view.root.owned)) return false;
    }
  }
  for (const Finding& finding : findings) {
    check.health().spare_nodes = std::min(check.health().spare_nodes, finding.spare_nodes);
  }
  report_->databases.push_back(std::move(check.health()));
  for (Finding& finding : findings) report_->findings.push_back(std::move(finding));
  return true;
}

void PoolCheck::CheckRemains(const std::string& name) {
  std::vector<pool::RootCopy> copies;
  if (Status status = client_->databases()->ReadRootCopies(name, &copies); !status.ok()) {
    return report_->failures.push_back(status.WithContext("database " + name));
  }
  for (const pool::RootCopy& copy : copies) {
    // A copy without a root goes by itself when its owner does.
    if (!copy.root.exists || copy.root.epoch == 0 || copy.root.owned) continue;
    report_->findings.push_back({.problem = Problem::kLeak,
                                 .database = name,
                                 .node = client_->node_address(copy.node),
                                 .text = "its creation or its end was cut short; what is left goes "
                                         "when it is destroyed or created again"});
  }
}

void PoolCheck::CheckStrangers() {
  const std::map<NodeId, SlabMap> before = ReadSlabMaps();
  // A database that came meanwhile is known now; one that went has no slabs any more.
  for (const pool::KnownDatabase& database : AskPool(client_).databases) Note(database);
  for (const auto& [node, now] : ReadSlabMaps()) {
    const auto then = before.find(node);
    if (then == before.end()) continue;
    std::map<uint64_t, uint64_t> slabs;  // Counted by database.
    for (size_t slab = 0; slab < std::min(now.owners.size(), then->second.owners.size()); ++slab) {
      const uint64_t owner = now.owners[slab];
      if (owner == 0 || known_.contains(owner) || then->second.owners[slab] != owner) continue;
      ++slabs[owner];
    }
    for (const auto& [id, count] : slabs) {
      report_->findings.push_back(
          {.problem = Problem::kLeak,
           .node = client_->node_address(node),
           .text = fmt::format("{} bytes in {} slabs are leased to database {:016x}, which no "
                               "node knows",
                               count * now.slab_bytes, count, id)});
    }
  }
}

}  // namespace

FsckOptions::Progress TellFsckProgress() {
  struct Told {
    std::string database;
    std::unique_ptr<ProgressLine> line;
  };
  return [told = std::make_shared<Told>()](const std::string& database, uint64_t done,
                                           uint64_t total) {
    if (told->line == nullptr || told->database != database) {
      told->line.reset();
      told->line = std::make_unique<ProgressLine>(stderr, Clock::System(), "fsck " + database,
                                                  ProgressLine::Plain::kRareTenths);
      told->database = database;
    }
    told->line->Show(
        done, total, "",
        fmt::format("database {}: {} of {}", database, FormatBytes(done), FormatBytes(total)));
  };
}

FsckReport Fsck(pool::PoolClient* client, const FsckOptions& options) {
  FsckReport report;
  PoolCheck(client, options, &report).Run();
  return report;
}

}  // namespace nacre::ctl
