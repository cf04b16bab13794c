#include "tests/support/checkpoint_fixture.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/status_assert.h"

namespace nacre {

Status CheckpointFixture::MakeCheckpoint(CheckpointInfo* info, const CheckpointOptions& options) {
  std::unique_ptr<Checkpoint> checkpoint;
  NACRE_RETURN_IF_ERROR(Checkpoint::Create(db_.get(), &checkpoint));
  CheckpointOptions asked = options;
  if (!encryption_.key_file.empty()) asked.encryption = encryption_;
  return checkpoint->CreateCheckpoint(dir(), asked, info);
}

Status CheckpointFixture::Restore(const std::string& name, const RestoreOptions& restore) {
  RestoreOptions asked = restore;
  if (!encryption_.key_file.empty()) asked.encryption = encryption_;
  return RestoreDB(options_, name, dir(), asked);
}

void CheckpointFixture::TurnTo(const std::string& name) {
  db_.reset();
  Options options = options_;
  options.create_if_missing = false;
  ASSERT_TRUE(IsOk(DB::Open(options, name, &db_)));
}

std::vector<std::string> CheckpointFixture::Files(const std::string& ending) const {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir())) {
    const std::string name = entry.path().filename();
    if (name.ends_with(ending)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  EXPECT_TRUE(file.good()) << path;
}

}  // namespace nacre
