#include "db_bench/engine/scratch_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

namespace nacre::bench {

Status ScratchFolder::Make(std::unique_ptr<ScratchFolder>* folder) {
  // The process id tells whose it is, should a kill -9 leave it behind.
  std::string path = "/dev/shm/nacre_db_bench." + std::to_string(getpid()) + ".XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return Status::IOError("no folder in /dev/shm (" + std::string(std::strerror(errno)) +
                           "); name one with --db");
  }
  folder->reset(new ScratchFolder(path));
  return Status::OK();
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace nacre::bench
