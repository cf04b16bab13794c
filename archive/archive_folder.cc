#include "archive/archive_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

namespace nacre {
namespace {

constexpr std::string_view kSuffix = ".log";
constexpr uint64_t kIdentityMost = 4096;
constexpr uint64_t kFamiliesMost = 1 << 20;

/// One that no other archive has.
uint64_t NewId() {
  std::random_device random;
  uint64_t id = 0;
  while (id == 0) id = uint64_t{random()} << 32 | random();
  return id;
}

/// Whether a file that cannot be read is so short that its writer may have died in its header, or
/// is about to write it: what is behind the header is written when that is on the disk.
bool IsBegun(const std::string& path) {
  std::error_code failed;
  const uint64_t size = std::filesystem::file_size(path, failed);
  return !failed && size <= kLogHeaderBytesMost;
}

}  // namespace

Status ArchiveFolder::Open(const std::string& path, const std::string& database,
                           uint64_t database_id, std::shared_ptr<const KeyRing> keys,
                           std::unique_ptr<ArchiveFolder>* folder) {
  NACRE_RETURN_IF_ERROR(MakeFolder(path + "/log"));
  NACRE_RETURN_IF_ERROR(MakeFolder(path + "/base"));
  std::unique_ptr<ArchiveFolder> opened(new ArchiveFolder(path));
  NACRE_RETURN_IF_ERROR(FileLock::Take(path + "/LOCK", FileLock::Kind::kExclusive, &opened->lock_));
  const Status known = opened->ReadIdentity();
  if (known.IsNotFound()) {
    opened->database_ = database;
    opened->database_id_ = database_id;
    opened->id_ = NewId();
    NACRE_RETURN_IF_ERROR(WriteSmallFile(
        path + "/DATABASE", fmt::format("{} {} {}\n", database_id, opened->id_, database)));
    NACRE_RETURN_IF_ERROR(SyncFolder(path));
  } else {
    NACRE_RETURN_IF_ERROR(known);
  }
  if (opened->database_id_ != database_id) {
    return Status::InvalidArgument(fmt::format(
        "{}: it is the archive of another database, {} with id {:016x}; '{}' has id {:016x}", path,
        opened->database_, opened->database_id_, database, database_id));
  }
  opened->sealing_ = {.keys = std::move(keys), .context = fmt::format("{:016x}", opened->id_)};
  NACRE_RETURN_IF_ERROR(opened->ReadFiles(/*finish=*/true));
  *folder = std::move(opened);
  return Status::OK();
}

Status ArchiveFolder::Look(const std::string& path, std::shared_ptr<const KeyRing> keys,
                           std::unique_ptr<ArchiveFolder>* folder) {
  std::unique_ptr<ArchiveFolder> looked(new ArchiveFolder(path));
  const Status known = looked->ReadIdentity();
  if (known.IsNotFound()) return Status::NotFound(path + ": there is no archive");
  NACRE_RETURN_IF_ERROR(known);
  looked->sealing_ = {.keys = std::move(keys), .context = fmt::format("{:016x}", looked->id_)};
  NACRE_RETURN_IF_ERROR(looked->ReadFiles(/*finish=*/false));
  *folder = std::move(looked);
  return Status::OK();
}

Status ArchiveFolder::ReadIdentity() {
  const std::string path = path_ + "/DATABASE";
  std::string text;
  NACRE_RETURN_IF_ERROR(ReadSmallFile(path, kIdentityMost, &text));
  const char* at = text.data();
  const char* const end = at + text.size();
  bool valid = text.ends_with('\n');
  for (uint64_t* const id : {&database_id_, &id_}) {
    const auto [behind, error] = std::from_chars(at, end, *id);
    valid = valid && error == std::errc() && behind != end && *behind == ' ';
    if (!valid) {
      return Status::Corruption(path + ": it does not say which database this is the archive of");
    }
    at = behind + 1;
  }
  database_.assign(at, end - 1);
  return Status::OK();
}

Status ArchiveFolder::ReadFile(const std::string& path, bool finish, LogFileInfo* info) const {
  if (finish) return FinishLogFile(path, sealing_, info);
  std::unique_ptr<LogFileReader> reader;
  NACRE_RETURN_IF_ERROR(LogFileReader::Open(path, sealing_, &reader));
  return reader->Look(info);
}

Status ArchiveFolder::ReadFiles(bool finish) {
  std::vector<std::string> names;
  NACRE_RETURN_IF_ERROR(ListFolder(log(), &names));
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(kSuffix); });
  std::ranges::sort(names);  // Numbers have leading zeros.
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string path = log() + "/" + names[i];
    LogFileInfo info;
    const Status status = ReadFile(path, finish, &info);
    // The archiver has no need of it any more, and has removed it since.
    if (status.IsNotFound() && !finish) continue;
    // The archiver died before it had written a header, or is about to.
    if (status.IsCorruption() && i + 1 == names.size() && IsBegun(path)) {
      if (finish) NACRE_RETURN_IF_ERROR(RemoveFile(path));
      continue;
    }
    NACRE_RETURN_IF_ERROR(status);
    if (info.database_id != database_id_) {
      return Status::Corruption(path + ": it belongs to the archive of another database");
    }
    // An archive that is encrypted stays so: another program has put this one there.
    if (!files_.empty() && info.key_id.empty() && !files_.back().key_id.empty()) {
      return Status::Corruption(path + ": it is not encrypted, but earlier files are");
    }
    files_.push_back(std::move(info));
  }
  return Status::OK();
}

Status ArchiveFolder::ReadFamilies(std::set<uint32_t>* ids) const {
  const std::string path = path_ + "/FAMILIES";
  ids->clear();
  std::string text;
  const Status status = ReadSmallFile(path, kFamiliesMost, &text);
  if (status.IsNotFound()) return Status::OK();
  NACRE_RETURN_IF_ERROR(status);
  for (const char* at = text.data(); at != text.data() + text.size();) {
    uint32_t id = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), id);
    if (error != std::errc() || *end != '\n') {
      return Status::Corruption(path + ": it is no list of numbers, one on each line");
    }
    ids->insert(id);
    at = end + 1;
  }
  return Status::OK();
}

Status ArchiveFolder::WriteFamilies(const std::set<uint32_t>& ids) const {
  NACRE_RETURN_IF_ERROR(
      WriteSmallFile(path_ + "/FAMILIES", fmt::format("{}\n", fmt::join(ids, "\n"))));
  return SyncFolder(path_);
}

std::vector<ArchivedRange> ArchiveFolder::Ranges() const {
  std::vector<ArchivedRange> ranges;
  for (const LogFileInfo& file : files_) {
    // Where a write failed, the next file may begin before the end of what was written.
    if (ranges.empty() || ranges.back().last < file.after) {
      ranges.push_back({.after = file.after, .last = file.after});
    }
    ArchivedRange& range = ranges.back();
    if (range.first_micros == 0) range.first_micros = file.first_micros;
    range.last_micros = std::max(range.last_micros, file.last_micros);
    range.last = std::max(range.last, file.last);
    range.bytes += file.bytes;
  }
  return ranges;
}

Status ArchiveFolder::NewFile(uint64_t after, const std::shared_ptr<const KeyRing>& keys,
                              std::unique_ptr<LogFileWriter>* writer) const {
  const std::string path = fmt::format("{}/{:020}{}", log(), after + 1, kSuffix);
  const Sealing sealing{.keys = keys, .context = sealing_.context};
  NACRE_RETURN_IF_ERROR(LogFileWriter::Create(path, database_id_, after, sealing, writer));
  return SyncFolder(log());
}

Status ArchiveFolder::GetBases(const std::string& key_file,
                               std::vector<CheckpointInfo>* bases) const {
  NACRE_RETURN_IF_ERROR(GetCheckpoints(base(), bases, BaseEncryption(key_file)));
  bool encrypted = false;
  for (const CheckpointInfo& each : *bases) {
    if (encrypted && each.key_id.empty()) {
      return Status::Corruption(fmt::format(
          "{}: checkpoint {} is not encrypted, but earlier ones are", base(), each.number));
    }
    encrypted = !each.key_id.empty();
  }
  return Status::OK();
}

void ArchiveFolder::Put(const LogFileInfo& file) {
  const auto there = std::ranges::find(files_, file.path, &LogFileInfo::path);
  if (there != files_.end()) {
    *there = file;
  } else {
    files_.push_back(file);
  }
}

Status ArchiveFolder::RemoveThrough(uint64_t sequence) {
  while (files_.size() > 1 && files_.front().last <= sequence) {
    NACRE_RETURN_IF_ERROR(RemoveFile(files_.front().path));
    files_.erase(files_.begin());
  }
  return SyncFolder(log());
}

}  // namespace nacre
