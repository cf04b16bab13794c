#include "db_bench/engine/leveldb_env.h"

#include <string_view>

namespace nacre::bench {
namespace {

/// Stands for a log. Opening a database replays logs by name only if they exist, and no file is
/// made here.
class DroppedFile final : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice&) override { return leveldb::Status::OK(); }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }
};

struct ScheduledTask {
  void (*function)(void*);
  void* argument;
  std::atomic<int>* scheduled;
};

void RunTask(void* argument) {
  const std::unique_ptr<ScheduledTask> task(static_cast<ScheduledTask*>(argument));
  task->function(task->argument);
  // Pairs with the acquire in scheduled(): a thread that sees 0 sees what the task did.
  task->scheduled->fetch_sub(1, std::memory_order_release);
}

}  // namespace

leveldb::Status LeveldbEnv::NewWritableFile(const std::string& name, leveldb::WritableFile** file) {
  if (disable_wal_ && std::string_view(name).ends_with(".log")) {
    *file = std::make_unique<DroppedFile>().release();
    return leveldb::Status::OK();
  }
  return target()->NewWritableFile(name, file);
}

void LeveldbEnv::Schedule(void (*function)(void*), void* argument) {
  scheduled_.fetch_add(1, std::memory_order_relaxed);
  auto task = std::make_unique<ScheduledTask>(ScheduledTask{function, argument, &scheduled_});
  target()->Schedule(RunTask, task.release());
}

}  // namespace nacre::bench
