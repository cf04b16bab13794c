#include "db_bench/engine/plain_writing.h"

#include <algorithm>
#include <memory>

#include "util/posix_file.h"
#include "util/random.h"

namespace nacre::bench {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;

Status WriteFile(const std::string& path, uint64_t bytes) {
  // Some disks make less of bytes that are all the same.
  std::string piece(kPieceBytes, '\0');
  Random random(1);
  for (char& byte : piece) byte = static_cast<char>(random.Next());
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Create(path, &file));
  for (uint64_t done = 0; done < bytes; done += kPieceBytes) {
    NACRE_RETURN_IF_ERROR(file->Append(Slice(piece.data(), std::min(kPieceBytes, bytes - done))));
  }
  return file->Sync();
}

}  // namespace

Status MeasurePlainWriting(const std::string& folder, uint64_t bytes, Clock* clock,
                           double* mb_per_second) {
  *mb_per_second = 0;
  if (bytes == 0) return Status::OK();
  const std::string path = folder + "/plain-writing";
  const uint64_t start = clock->NowNanos();
  const Status status = WriteFile(path, bytes);
  const double seconds = static_cast<double>(clock->NowNanos() - start) * 1e-9;
  const Status removed = RemoveFile(path);
  if (status.ok() && seconds > 0) {
    *mb_per_second = static_cast<double>(bytes) / 1048576.0 / seconds;
  }
  return status.ok() ? removed : status;
}

}  // namespace nacre::bench
