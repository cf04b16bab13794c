#include "db/options/info_log.h"

#include "util/clock.h"
#include "util/log.h"

namespace nacre {

Status OpenLogOf(const std::string& name, DBOptions* options) {
  if (options->info_log != nullptr || options->db_log_dir.empty()) return Status::OK();
  const RollingLogOptions log{.directory = options->db_log_dir,
                              .name = name,
                              .level = options->info_log_level,
                              .max_file_bytes = options->max_log_file_size,
                              .seconds_to_roll = options->log_file_time_to_roll,
                              .keep_files = options->keep_log_file_num};
  return NewRollingLogger(log, Clock::System(), &options->info_log);
}

}  // namespace nacre
