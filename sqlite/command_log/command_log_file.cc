#include "sqlite/command_log/command_log_file.h"

#include <utility>

#include "util/posix_file.h"

namespace nacre::sqlite {
namespace {

class LocalFile final : public CommandFile {
 public:
  explicit LocalFile(std::unique_ptr<PosixFile> file) : file_(std::move(file)) {}

  Status Append(const Slice& bytes) override { return file_->Append(bytes); }
  Status Sync() override { return file_->SyncData(); }
  Status Truncate(uint64_t bytes) override { return file_->Truncate(bytes); }

 private:
  const std::unique_ptr<PosixFile> file_;
};

}  // namespace

Status OpenCommandFile(const std::string& path, std::unique_ptr<CommandFile>* file) {
  std::unique_ptr<PosixFile> opened;
  NACRE_RETURN_IF_ERROR(PosixFile::OpenToAppend(path, &opened));
  *file = std::make_unique<LocalFile>(std::move(opened));
  return Status::OK();
}

}  // namespace nacre::sqlite
