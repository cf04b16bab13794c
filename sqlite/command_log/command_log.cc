#include "sqlite/command_log/command_log.h"

#include <algorithm>
#include <utility>

#include "util/named_point.h"

namespace nacre::sqlite {
namespace {

/// The most bytes that are synced at once, if there is more than one transaction.
constexpr size_t kGroupBytesMax = 4 << 20;
/// The most bytes of one transaction: formats have 32 bits for it.
constexpr size_t kCommandBytesMax = 1 << 30;

}  // namespace

Status CommandLog::Open(const std::string& folder, const std::string& database,
                        CommandFileOpener opener, std::unique_ptr<CommandLog>* log) {
  NACRE_RETURN_IF_ERROR(MakeFolder(folder));
  std::unique_ptr<CommandLog> opened(new CommandLog(folder, database, std::move(opener)));
  NACRE_RETURN_IF_ERROR(
      FileLock::Take(folder + "/LOCK", FileLock::Kind::kExclusive, &opened->lock_));
  NACRE_RETURN_IF_ERROR(opened->FindFiles());
  *log = std::move(opened);
  return Status::OK();
}

Status CommandLog::FindFiles() {
  std::vector<std::string> names;
  NACRE_RETURN_IF_ERROR(ListFolder(folder_, &names));
  MutexLock lock(&mutex_);
  for (const std::string& name : names) {
    uint64_t first;
    if (!ParseCommandFileName(name, &first)) continue;
    const std::string path = PathOf(first);
    CommandFileHeader header;
    NACRE_RETURN_IF_ERROR(ReadCommandFileHeader(path, &header));
    if (header.database != database_) {
      return Status::InvalidArgument(path + ": is of the log of database '" + header.database +
                                     "', not of '" + database_ + "'");
    }
    if (header.first != first || (id_ != 0 && header.log_id != id_)) {
      return Status::Corruption(path + ": is of another log, or has another's name");
    }
    id_ = header.log_id;
    files_[first] = 0;
  }
  return Status::OK();
}

Status CommandLog::Replay(uint64_t applied, const CommandVisitor& visit) {
  MutexLock lock(&mutex_);
  if (files_.empty()) return Status::OK();
  if (files_.begin()->first > applied + 1) {
    return Status::Corruption(PathOf(files_.begin()->first) +
                              ": the database has transactions up "
                              "to " +
                              std::to_string(applied) +
                              ", and the log begins behind the "
                              "next one");
  }
  for (auto file = files_.begin(); file != files_.end(); ++file) {
    const auto behind = std::next(file);
    const bool last = behind == files_.end();
    const std::string path = PathOf(file->first);
    CommandFileContent content;
    NACRE_RETURN_IF_ERROR(ReadCommandFile(path, last, applied + 1, visit, &content));
    file->second = content.end;
    next_ = content.next;
    end_ = content.end;
    if (!last && behind->first != next_) {
      return Status::Corruption(path + ": ends before transaction " + std::to_string(next_) +
                                ", and the next file begins with " + std::to_string(behind->first));
    }
  }
  if (applied < next_) return Status::OK();
  return Status::Corruption(PathOf(files_.rbegin()->first) + ": ends before transaction " +
                            std::to_string(next_) + ", but the database has transaction " +
                            std::to_string(applied));
}

Status CommandLog::Start(uint64_t new_id) {
  MutexLock lock(&mutex_);
  if (files_.empty()) {
    id_ = new_id;
    return MakeFile(next_);
  }
  NACRE_RETURN_IF_ERROR(opener_(PathOf(files_.rbegin()->first), &file_));
  // What is torn goes for good, before anything is written behind it.
  NACRE_RETURN_IF_ERROR(file_->Truncate(end_));
  return file_->Sync();
}

Status CommandLog::MakeFile(uint64_t first) {
  const std::string path = PathOf(first);
  const std::string header = EncodeCommandFileHeader({id_, first, database_});
  NACRE_RETURN_IF_ERROR(WriteSmallFile(path, header));
  NACRE_RETURN_IF_ERROR(opener_(path, &file_));
  end_ = header.size();
  files_[first] = end_;
  return Status::OK();
}

Status CommandLog::Commit(const Slice& commands,
                          const std::function<Status(uint64_t number)>& apply) {
  if (commands.size() > kCommandBytesMax) {
    return Status::InvalidArgument("a transaction has " + std::to_string(commands.size()) +
                                   " bytes of commands, and " + std::to_string(kCommandBytesMax) +
                                   " are the most");
  }
  Waiter self{commands, &apply};
  MutexLock lock(&mutex_);
  queue_.push_back(&self);
  while (!self.done && (leading_ || queue_.front() != &self)) done_.Wait();
  if (self.done) return self.status;

  leading_ = true;
  std::vector<Waiter*> group;
  size_t bytes = 0;
  for (Waiter* waiter : queue_) {
    if (!group.empty() && bytes + waiter->commands.size() > kGroupBytesMax) break;
    bytes += waiter->commands.size();
    group.push_back(waiter);
  }
  Status broken = broken_;
  if (broken.ok()) {
    MutexUnlock unlock(&mutex_);
    Lead(group);
  }
  for (Waiter* waiter : group) {
    if (!broken.ok()) waiter->status = broken;
    waiter->done = true;
    queue_.pop_front();
  }
  leading_ = false;
  done_.SignalAll();
  return self.status;
}

void CommandLog::Lead(const std::vector<Waiter*>& group) {
  Status status = WriteGroup(group);
  NACRE_POINT("command-log.synced");
  for (Waiter* waiter : group) {
    if (status.ok()) {
      status = (*waiter->apply)(next_);
      if (status.ok()) {
        ++next_;
        continue;
      }
      // Later transactions would be made without one that the log has.
      MutexLock lock(&mutex_);
      broken_ = status.WithContext(
          "a transaction is in the command log and could not be made; open the database anew");
    }
    waiter->status = status;
  }
  NACRE_POINT("command-log.applied");
}

Status CommandLog::WriteGroup(const std::vector<Waiter*>& group) {
  std::vector<Slice> transactions;
  transactions.reserve(group.size());
  for (const Waiter* waiter : group) transactions.push_back(waiter->commands);
  const std::string bytes = EncodeCommandGroup(id_, end_, next_, transactions);
  Status status = file_->Append(bytes);
  const bool appended = status.ok();
  if (appended) {
    NACRE_POINT("command-log.written");
    status = file_->Sync();
  }
  MutexLock lock(&mutex_);
  if (!status.ok()) {
    // This also cuts what could not be synced, as the system may have forgotten that it is not.
    const Status cut = file_->Truncate(end_);
    if (appended || !cut.ok()) broken_ = status.WithContext("open the database anew");
    return status;
  }
  ++syncs_;
  end_ += bytes.size();
  files_.rbegin()->second = end_;
  grown_.SignalAll();
  return Status::OK();
}

Status CommandLog::Rotate(uint64_t* last) {
  MutexLock lock(&mutex_);
  while (leading_) done_.Wait();
  if (!broken_.ok()) return broken_;
  // No thread leads while this one has the mutex.
  *last = next_ - 1;
  if (files_.rbegin()->first == next_) return Status::OK();
  const Status status = MakeFile(next_);
  NACRE_POINT("command-log.rotated");
  if (status.ok()) return status;
  // Commits go on in the old file. One of that name would say that it ends here.
  Status removed = RemoveFile(PathOf(next_));
  if (removed.ok()) removed = SyncFolder(folder_);
  if (!removed.ok()) broken_ = removed.WithContext("open the database anew");
  return status;
}

Status CommandLog::RemoveUpTo(uint64_t last) {
  for (;;) {
    uint64_t first;
    {
      MutexLock lock(&mutex_);
      if (files_.size() < 2 || std::next(files_.begin())->first > last + 1) break;
      first = files_.begin()->first;
      files_.erase(files_.begin());
    }
    // Removal begins with the first file, so that what a crash leaves is the end of the log.
    NACRE_RETURN_IF_ERROR(RemoveFile(PathOf(first)));
    NACRE_RETURN_IF_ERROR(SyncFolder(folder_));
    NACRE_POINT("command-log.removed");
  }
  return Status::OK();
}

uint64_t CommandLog::bytes() const {
  MutexLock lock(&mutex_);
  uint64_t bytes = 0;
  for (const auto& [first, size] : files_) bytes += size;
  return bytes;
}

bool CommandLog::AwaitBytes(uint64_t bytes) {
  MutexLock lock(&mutex_);
  for (;;) {
    if (stopped_) return false;
    uint64_t there = 0;
    for (const auto& [first, size] : files_) there += size;
    if (there >= bytes) return true;
    grown_.Wait();
  }
}

void CommandLog::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  grown_.SignalAll();
}

bool CommandLog::stopped() const {
  MutexLock lock(&mutex_);
  return stopped_;
}

uint64_t CommandLog::syncs() const {
  MutexLock lock(&mutex_);
  return syncs_;
}

size_t CommandLog::waiting() const {
  MutexLock lock(&mutex_);
  return queue_.size();
}

}  // namespace nacre::sqlite
