#include "db/redundancy/metadata_scrubber.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <vector>

#include "db/manifest/manifest_scrub.h"
#include "util/byte_pace.h"
#include "util/log.h"

namespace nacre {
namespace {

constexpr auto kMetadataScrubRest = std::chrono::seconds(60);

}  // namespace

void MetadataScrubber::Start(uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return;
  task_.Start(database_.client->PeriodicOn(&pool::Background::metadata_scrubs), "nacre-scrub-log",
              kMetadataScrubRest, PeriodicTask::Begin::kWithWork,
              [this, bytes_per_second] { ScrubOnce(bytes_per_second); });
}

void MetadataScrubber::Stop() {
  stopping_.store(true, std::memory_order_release);
  task_.Stop();
}

void MetadataScrubber::ScrubOnce(uint64_t bytes_per_second) {
  const Status status = RunPass(bytes_per_second);
  if (!status.ok() && !status.IsAborted() && !status.IsFenced()) {
    Log(database_.logger, LogLevel::kError, "{}: scrub of log and manifest: {}", database_.name,
        status.ToString());
  }
}

Status MetadataScrubber::RunPass(uint64_t bytes_per_second) {
  std::unique_ptr<pool::PoolReader> reader;
  NACRE_RETURN_IF_ERROR(pool::PoolReader::Open(database_.client->fabric(), &reader));
  BytePace pace(database_.clock, bytes_per_second, &stopping_);
  const PassBytes pass = [&](uint64_t bytes) {
    counters_.bytes.fetch_add(bytes, std::memory_order_relaxed);
    return pace.Pass(bytes);
  };
  const Status manifest = ScrubManifest(reader.get(), pass);
  if (manifest.IsAborted()) return manifest;
  // One that cannot be renewed keeps the log from nothing.
  NACRE_RETURN_IF_ERROR(ScrubLog(reader.get(), pass));
  NACRE_RETURN_IF_ERROR(manifest);
  counters_.passes.fetch_add(1, std::memory_order_relaxed);
  return Status::OK();
}

// ---- The manifest -----------------------------------------------------------------------------

Status MetadataScrubber::ScrubManifest(pool::PoolReader* reader, const PassBytes& pass) {
  ManifestDamage damage;
  NACRE_RETURN_IF_ERROR(CheckManifestCopies(
      database_.client, reader, [this] { return database_.manifest->place(); }, pass, &damage));
  if (damage.places.empty()) return Status::OK();
  counters_.damaged.fetch_add(damage.places.size(), std::memory_order_relaxed);
  for (const std::string& place : damage.places) {
    Log(database_.logger, LogLevel::kError, "{}: a copy of the manifest is damaged: {}",
        database_.name, place);
  }
  MutexLock healing(&healing_);
  if (database_.manifest->place().root.identity == damage.identity) {
    NACRE_RETURN_IF_ERROR(
        database_.manifest->Renew().WithContext("a copy of the manifest stays damaged"));
  }
  counters_.healed.fetch_add(damage.places.size(), std::memory_order_relaxed);
  Log(database_.logger, LogLevel::kInfo, "{}: the manifest was renewed, since it was damaged",
      database_.name);
  return Status::OK();
}

// ---- The log ----------------------------------------------------------------------------------

std::string MetadataScrubber::Name(const WrittenSegment& written, const ExtentAddr& copy) const {
  return fmt::format("{}: the copy of log segment {}",
                     database_.client->node_address(copy.start.node), written.segment.number);
}

Status MetadataScrubber::ScrubLog(pool::PoolReader* reader, const PassBytes& pass) {
  if (database_.log == nullptr) return Status::OK();
  for (const WrittenSegment& written : database_.log->SegmentsOf(0, UINT64_MAX)) {
    LogSegmentReplicas copies;
    NACRE_RETURN_IF_ERROR(
        CheckLogCopies(database_.client, reader, database_.id, written, pass, &copies));
    if (!copies.damaged.empty()) HealSegment(reader, written.segment.number);
  }
  return Status::OK();
}

void MetadataScrubber::HealSegment(pool::PoolReader* reader, uint64_t number) {
  bool flush = false;
  {
    MutexLock healing(&healing_);
    // The records of one that is gone are in tables, and its memory may have been reused.
    database_.log->WithSealed(
        number, [&](const WrittenSegment& written) { HealCopies(reader, written, &flush); });
  }
  database_.release_log();
  if (flush) database_.flush_log();
}

void MetadataScrubber::HealCopies(pool::PoolReader* reader, const WrittenSegment& written,
                                  bool* flush) {
  LogSegmentReplicas copies;
  const PassBytes at_once = [this](uint64_t /*bytes*/) {
    // Acquire: pairs with Stop.
    return stopping_.load(std::memory_order_acquire) ? Status::Aborted("closing") : Status::OK();
  };
  if (!CheckLogCopies(database_.client, reader, database_.id, written, at_once, &copies).ok()) {
    return;
  }
  counters_.damaged.fetch_add(copies.damaged.size(), std::memory_order_relaxed);
  for (const ExtentAddr& copy : copies.damaged) {
    Log(database_.logger, LogLevel::kError, "{}: {} is damaged", database_.name,
        Name(written, copy));
    Status status = Status::Corruption("no copy is whole");
    for (size_t i = 0; i < copies.whole.size() && !status.ok(); ++i) {
      status = HealLogCopy(database_.client, reader, database_.id, written, copies.whole[i], copy);
    }
    if (status.ok()) {
      counters_.healed.fetch_add(1, std::memory_order_relaxed);
      Log(database_.logger, LogLevel::kInfo, "{}: {} was healed", database_.name,
          Name(written, copy));
      continue;
    }
    *flush = true;
    Log(database_.logger, LogLevel::kWarn, "{}: {} is not healed, and is flushed: {}",
        database_.name, Name(written, copy), status.ToString());
  }
}

}  // namespace nacre
