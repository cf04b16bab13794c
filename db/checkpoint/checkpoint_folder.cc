#include "db/checkpoint/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "db/checkpoint/sealed_description.h"
#include "util/named_point.h"

namespace nacre {
namespace {

constexpr std::string_view kDescription = "CHECKPOINT-";
constexpr std::string_view kTable = ".table";
constexpr std::string_view kSealedTable = ".sealed";
constexpr std::string_view kUnfinished = ".tmp";
constexpr size_t kDatabaseDigits = 16;
/// Bounds a description: some four million tables.
constexpr uint64_t kDescriptionBytesMax = uint64_t{4} << 30;

bool AllDigits(std::string_view text, bool hex) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [hex](char c) {
    return (c >= '0' && c <= '9') || (hex && c >= 'a' && c <= 'f');
  });
}

/// Whether `name` is that of a table's file.
bool IsTable(std::string_view name) {
  if (!name.ends_with(kTable) && !name.ends_with(kSealedTable)) return false;
  name.remove_suffix(name.size() - name.rfind('.'));
  return name.size() > kDatabaseDigits && name[kDatabaseDigits] == '-' &&
         AllDigits(name.substr(0, kDatabaseDigits), /*hex=*/true) &&
         AllDigits(name.substr(kDatabaseDigits + 1), /*hex=*/false);
}

/// The number of the checkpoint that the file `name` describes; 0: none.
uint64_t NumberOf(std::string_view name) {
  if (!name.starts_with(kDescription)) return 0;
  name.remove_prefix(kDescription.size());
  uint64_t number = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool all = parsed.ec == std::errc() && parsed.ptr == name.data() + name.size();
  return all && AllDigits(name, /*hex=*/false) ? number : 0;
}

bool IsUnfinished(std::string_view name) {
  if (!name.ends_with(kUnfinished)) return false;
  name.remove_suffix(kUnfinished.size());
  return IsTable(name) || NumberOf(name) != 0;
}

}  // namespace

Status CheckpointFolder::Open(const std::string& path, FileLock::Kind kind,
                              const FileEncryption& encryption,
                              std::unique_ptr<CheckpointFolder>* folder) {
  if (path.empty()) return Status::InvalidArgument("the directory of checkpoints has no name");
  if (kind == FileLock::Kind::kExclusive) {
    NACRE_RETURN_IF_ERROR(MakeFolder(path));
  } else {
    std::vector<std::string> names;
    NACRE_RETURN_IF_ERROR(ListFolder(path, &names));
  }
  std::unique_ptr<CheckpointFolder> opened(new CheckpointFolder(path));
  NACRE_RETURN_IF_ERROR(FileLock::Take(path + "/LOCK", kind, &opened->lock_));
  NACRE_RETURN_IF_ERROR(opened->ReadAll(encryption));
  *folder = std::move(opened);
  return Status::OK();
}

Status CheckpointFolder::Look(const std::string& path, const FileEncryption& encryption,
                              std::unique_ptr<CheckpointFolder>* folder) {
  std::unique_ptr<CheckpointFolder> opened(new CheckpointFolder(path));
  NACRE_RETURN_IF_ERROR(opened->ReadAll(encryption));
  *folder = std::move(opened);
  return Status::OK();
}

Status CheckpointFolder::ReadDescription(const std::string& path,
                                         CheckpointDescription* description) const {
  std::string bytes;
  NACRE_RETURN_IF_ERROR(ReadSmallFile(path, kDescriptionBytesMax, &bytes));
  std::string key_id;
  if (IsSealedDescription(bytes)) {
    std::string plain;
    NACRE_RETURN_IF_ERROR(
        OpenDescription(sealing_, path.substr(path.rfind('/') + 1), bytes, &plain, &key_id)
            .WithContext(path));
    bytes = std::move(plain);
  }
  NACRE_RETURN_IF_ERROR(DecodeCheckpointDescription(bytes, description).WithContext(path));
  description->key_id = std::move(key_id);
  return Status::OK();
}

Status CheckpointFolder::ReadAll(const FileEncryption& encryption) {
  sealing_.context = encryption.context;
  if (!encryption.key_file.empty()) {
    NACRE_RETURN_IF_ERROR(KeyRing::Read(encryption.key_file, &sealing_.keys));
  }
  std::vector<std::string> names;
  NACRE_RETURN_IF_ERROR(ListFolder(path_, &names));
  for (const std::string& name : names) {
    const uint64_t number = NumberOf(name);
    if (number == 0) continue;
    const std::string file = path_ + "/" + name;
    CheckpointDescription description;
    Status status = ReadDescription(file, &description);
    // One may be removed meanwhile if no process holds the lock.
    if (status.IsNotFound()) continue;
    if (!status.ok()) {
      damaged_.emplace(number, std::move(status));
      continue;
    }
    for (const auto& [level, meta] : description.tables) {
      named_.insert(TablePath(description, meta.id));
    }
    checkpoints_.emplace(number, std::move(description));
  }
  return Status::OK();
}

Status CheckpointFolder::DamageOf() const {
  return damaged_.empty() ? Status::OK() : damaged_.begin()->second;
}

uint64_t CheckpointFolder::next_number() const {
  const uint64_t readable = checkpoints_.empty() ? 0 : checkpoints_.rbegin()->first;
  const uint64_t damaged = damaged_.empty() ? 0 : damaged_.rbegin()->first;
  return std::max(readable, damaged) + 1;
}

Status CheckpointFolder::Find(uint64_t number, uint64_t* found,
                              const CheckpointDescription** description) const {
  *found = number == 0 ? next_number() - 1 : number;
  if (*found == 0) return Status::NotFound(path_ + ": there is no checkpoint");
  if (const auto it = damaged_.find(*found); it != damaged_.end()) return it->second;
  const auto it = checkpoints_.find(*found);
  if (it == checkpoints_.end()) {
    return Status::NotFound(fmt::format("{}: there is no checkpoint {}", path_, *found));
  }
  *description = &it->second;
  return Status::OK();
}

std::string CheckpointFolder::TablePath(const CheckpointDescription& description,
                                        uint64_t table_id) const {
  return fmt::format("{}/{:016x}-{:06}{}", path_, description.database_id, table_id,
                     description.key_id.empty() ? kTable : kSealedTable);
}

std::string CheckpointFolder::DescriptionPath(uint64_t number) const {
  return fmt::format("{}/{}{:06}", path_, kDescription, number);
}

bool CheckpointFolder::Names(const std::string& table_path) const {
  return named_.contains(table_path);
}

Status CheckpointFolder::Add(uint64_t number, CheckpointDescription description) {
  NACRE_RETURN_IF_ERROR(SyncFolder(path_));
  NACRE_POINT("checkpoint.tables-durable");
  const std::string path = DescriptionPath(number);
  std::string bytes = EncodeCheckpointDescription(description);
  if (!description.key_id.empty()) {
    NACRE_RETURN_IF_ERROR(SealDescription(sealing_, path.substr(path_.size() + 1), &bytes));
  }
  NACRE_RETURN_IF_ERROR(WriteSmallFile(path, bytes));
  NACRE_POINT("checkpoint.made");
  for (const auto& [level, meta] : description.tables) {
    named_.insert(TablePath(description, meta.id));
  }
  checkpoints_.emplace(number, std::move(description));
  return Status::OK();
}

Status CheckpointFolder::Remove(uint64_t number) {
  NACRE_RETURN_IF_ERROR(RemoveFile(DescriptionPath(number)));
  NACRE_RETURN_IF_ERROR(SyncFolder(path_));
  NACRE_POINT("checkpoint.removed");
  checkpoints_.erase(number);
  damaged_.erase(number);
  named_.clear();
  for (const auto& [other, description] : checkpoints_) {
    for (const auto& [level, meta] : description.tables) {
      named_.insert(TablePath(description, meta.id));
    }
  }
  return Status::OK();
}

Status CheckpointFolder::Sweep(const CheckpointDescription* wanted) const {
  std::set<std::string> keep = named_;
  if (wanted != nullptr) {
    for (const auto& [level, meta] : wanted->tables) keep.insert(TablePath(*wanted, meta.id));
  }
  std::vector<std::string> names;
  NACRE_RETURN_IF_ERROR(ListFolder(path_, &names));
  for (const std::string& name : names) {
    const std::string file = path_ + "/" + name;
    // It is unknown what a damaged description needs.
    const bool unneeded = damaged_.empty() && IsTable(name) && !keep.contains(file);
    if (unneeded || IsUnfinished(name)) NACRE_RETURN_IF_ERROR(RemoveFile(file));
  }
  return Status::OK();
}

Status CountCheckpointKeys(const std::string& path, std::map<std::string, uint64_t>* files) {
  files->clear();
  std::vector<std::string> names;
  NACRE_RETURN_IF_ERROR(ListFolder(path, &names));
  for (const std::string& name : names) {
    const bool is_description = NumberOf(name) != 0;
    if (!is_description && !IsTable(name)) continue;
    std::string id;
    const std::string file = path + "/" + name;
    Status status;
    if (is_description) status = ReadDescriptionKey(file, &id);
    if (name.ends_with(kSealedTable)) status = ReadTableKey(file, &id);
    // A base may be removed meanwhile.
    if (status.IsNotFound()) continue;
    NACRE_RETURN_IF_ERROR(status);
    ++(*files)[id];
  }
  return Status::OK();
}

Status OpenTableOf(const CheckpointFolder& folder, const CheckpointDescription& description,
                   const TableMeta& meta, std::unique_ptr<TableFileReader>* file) {
  const Sealing* const sealing = description.key_id.empty() ? nullptr : &folder.sealing();
  const Status status =
      TableFileReader::Open(folder.TablePath(description, meta.id), meta, sealing, file);
  // Others may answer NotFound for things that never were.
  return status.IsNotFound() ? Status::Corruption(status.message()) : status;
}

}  // namespace nacre
