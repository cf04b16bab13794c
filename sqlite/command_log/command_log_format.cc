#include "sqlite/command_log/command_log_format.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "util/codes/crc32c.h"
#include "util/coding.h"
#include "util/posix_file.h"

namespace nacre::sqlite {
namespace {

constexpr char kMagic[] = "NCRCMDS1";
constexpr size_t kMagicBytes = sizeof(kMagic) - 1;
constexpr char kPrefix[] = "COMMANDS-";
constexpr size_t kPrefixBytes = sizeof(kPrefix) - 1;
constexpr size_t kDigits = 20;
/// A database's name is far below it.
constexpr uint64_t kHeaderBytesMax = 64 << 10;

uint32_t SeedOf(uint64_t log_id) {
  char bytes[sizeof(log_id)];
  EncodeFixed64(bytes, log_id);
  return Crc32c(bytes, sizeof(bytes));
}

struct GroupHeader {
  uint32_t crc;
  uint32_t bytes;
  uint64_t offset;
  uint64_t first;
  uint32_t count;
};

GroupHeader DecodeGroupHeader(const char* p) {
  return {DecodeFixed32(p), DecodeFixed32(p + 4), DecodeFixed64(p + 8), DecodeFixed64(p + 16),
          DecodeFixed32(p + 24)};
}

/// Whether `bytes`, from byte `offset` of a file on, begin with a whole group.
bool IsWhole(const Slice& bytes, uint64_t offset, uint32_t seed, GroupHeader* header) {
  if (bytes.size() < kGroupHeaderBytes) return false;
  *header = DecodeGroupHeader(bytes.data());
  if (header->offset != offset || header->bytes > bytes.size() - kGroupHeaderBytes) return false;
  return header->crc ==
         Crc32c(bytes.data() + kCrcBytes, kGroupHeaderBytes - kCrcBytes + header->bytes, seed);
}

/// Reads one file of a log from its beginning to its end.
class Reader {
 public:
  Reader(const PosixFile& file, uint64_t from, const CommandVisitor& visit,
         CommandFileContent* content)
      : file_(file), from_(from), visit_(visit), content_(content) {}

  Status Read(bool last) {
    NACRE_RETURN_IF_ERROR(ReadHeader());
    seed_ = SeedOf(content_->header.log_id);
    while (content_->end < file_.size()) {
      bool whole;
      NACRE_RETURN_IF_ERROR(ReadGroup(&whole));
      if (whole) continue;
      bool torn = last;
      if (last) NACRE_RETURN_IF_ERROR(IsTorn(&torn));
      if (!torn) return Damaged();
      break;
    }
    return Status::OK();
  }

  Status ReadHeader() {
    std::string bytes(std::min(kHeaderBytesMax, file_.size()), '\0');
    NACRE_RETURN_IF_ERROR(file_.Read(0, bytes.size(), bytes.data()));
    Slice input = bytes;
    NACRE_RETURN_IF_ERROR(
        DecodeCommandFileHeader(&input, &content_->header).WithContext(file_.path()));
    content_->next = content_->header.first;
    content_->end = bytes.size() - input.size();
    return Status::OK();
  }

 private:
  Status ReadGroup(bool* whole) {
    *whole = false;
    const uint64_t left = file_.size() - content_->end;
    if (left < kGroupHeaderBytes) return Status::OK();
    group_.resize(kGroupHeaderBytes);
    NACRE_RETURN_IF_ERROR(file_.Read(content_->end, group_.size(), group_.data()));
    GroupHeader header = DecodeGroupHeader(group_.data());
    if (header.bytes > left - kGroupHeaderBytes) return Status::OK();
    group_.resize(kGroupHeaderBytes + header.bytes);
    NACRE_RETURN_IF_ERROR(file_.Read(content_->end, group_.size(), group_.data()));
    *whole = IsWhole(group_, content_->end, seed_, &header);
    if (!*whole) return Status::OK();
    if (header.first != content_->next) return Damaged();
    NACRE_RETURN_IF_ERROR(VisitAll(header.count));
    content_->next += header.count;
    content_->end += group_.size();
    return Status::OK();
  }

  Status VisitAll(uint32_t count) const {
    Slice input(group_.data() + kGroupHeaderBytes, group_.size() - kGroupHeaderBytes);
    for (uint64_t number = content_->next; number < content_->next + count; ++number) {
      Slice commands;
      if (!GetLengthPrefixedSlice(&input, &commands)) return Damaged();
      if (number >= from_) NACRE_RETURN_IF_ERROR(visit_(number, commands));
    }
    return input.empty() ? Status::OK() : Damaged();
  }

  /// Whether there is no whole group behind the one at `end`.
  Status IsTorn(bool* torn) const {
    std::string bytes(file_.size() - content_->end, '\0');
    NACRE_RETURN_IF_ERROR(file_.Read(content_->end, bytes.size(), bytes.data()));
    GroupHeader header{};
    *torn = true;
    for (Slice rest = bytes; *torn && rest.size() >= kGroupHeaderBytes; rest.remove_prefix(1)) {
      *torn = !IsWhole(rest, file_.size() - rest.size(), seed_, &header);
    }
    return Status::OK();
  }

  Status Damaged() const {
    return Status::Corruption(file_.path() + ": damaged at byte " + std::to_string(content_->end) +
                              ", where transaction " + std::to_string(content_->next) +
                              " should begin");
  }

  const PosixFile& file_;
  const uint64_t from_;
  const CommandVisitor& visit_;
  CommandFileContent* const content_;
  uint32_t seed_ = 0;
  std::string group_;
};

}  // namespace

std::string CommandFileName(uint64_t first) {
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof(digits), "%0*llu", static_cast<int>(kDigits),
                static_cast<unsigned long long>(first));
  return std::string(kPrefix) + digits;
}

bool ParseCommandFileName(const std::string& name, uint64_t* first) {
  if (name.size() != kPrefixBytes + kDigits || !Slice(name).starts_with(kPrefix)) return false;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kPrefixBytes, end, *first);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

std::string EncodeCommandFileHeader(const CommandFileHeader& header) {
  std::string bytes(kMagic, kMagicBytes);
  PutFixed64(&bytes, header.log_id);
  PutFixed64(&bytes, header.first);
  PutLengthPrefixedSlice(&bytes, header.database);
  PutFixed32(&bytes, Crc32c(bytes.data(), bytes.size()));
  return bytes;
}

Status DecodeCommandFileHeader(Slice* input, CommandFileHeader* header) {
  const Slice all = *input;
  const Status malformed = Status::Corruption("is not, or not any more, a file of a command log");
  if (!input->starts_with(Slice(kMagic, kMagicBytes))) return malformed;
  input->remove_prefix(kMagicBytes);
  Slice database;
  if (!GetFixed64(input, &header->log_id) || !GetFixed64(input, &header->first) ||
      !GetLengthPrefixedSlice(input, &database)) {
    return malformed;
  }
  header->database = database.ToString();
  const size_t covered = all.size() - input->size();
  uint32_t crc;
  if (!GetFixed32(input, &crc) || crc != Crc32c(all.data(), covered)) return malformed;
  return Status::OK();
}

std::string EncodeCommandGroup(uint64_t log_id, uint64_t offset, uint64_t first,
                               const std::vector<Slice>& transactions) {
  std::string group(kGroupHeaderBytes, '\0');
  for (const Slice& commands : transactions) PutLengthPrefixedSlice(&group, commands);
  EncodeFixed32(&group[4], static_cast<uint32_t>(group.size() - kGroupHeaderBytes));
  EncodeFixed64(&group[8], offset);
  EncodeFixed64(&group[16], first);
  EncodeFixed32(&group[24], static_cast<uint32_t>(transactions.size()));
  EncodeFixed32(&group[0], Crc32c(group.data() + 4, group.size() - 4, SeedOf(log_id)));
  return group;
}

Status ReadCommandFileHeader(const std::string& path, CommandFileHeader* header) {
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Open(path, &file));
  CommandFileContent content;
  NACRE_RETURN_IF_ERROR(Reader(*file, 0, CommandVisitor(), &content).ReadHeader());
  *header = std::move(content.header);
  return Status::OK();
}

Status ReadCommandFile(const std::string& path, bool last, uint64_t from,
                       const CommandVisitor& visit, CommandFileContent* content) {
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Open(path, &file));
  return Reader(*file, from, visit, content).Read(last);
}

}  // namespace nacre::sqlite
