#include <memory>
#include <string>
#include <utility>

#include "adapters/c/c_error.h"
#include "adapters/c/c_types.h"

using nacre::Succeeded;

nacre_checkpointoptions_t* nacre_checkpointoptions_create(void) {
  return std::make_unique<nacre_checkpointoptions_t>().release();
}

void nacre_checkpointoptions_destroy(nacre_checkpointoptions_t* options) {
  std::unique_ptr<nacre_checkpointoptions_t> destroyed(options);
}

void nacre_checkpointoptions_set_threads(nacre_checkpointoptions_t* options, int value) {
  options->rep.threads = value;
}

void nacre_checkpointoptions_set_bytes_per_second(nacre_checkpointoptions_t* options,
                                                  uint64_t value) {
  options->rep.bytes_per_second = value;
}

void nacre_checkpointoptions_set_progress(nacre_checkpointoptions_t* options, void* state,
                                          unsigned char (*progress)(void* state, uint64_t tables,
                                                                    uint64_t tables_done,
                                                                    uint64_t bytes,
                                                                    uint64_t bytes_done)) {
  if (progress == nullptr) {
    options->rep.progress = nullptr;
    return;
  }
  options->rep.progress = [state, progress](const nacre::CheckpointProgress& done) {
    return progress(state, done.tables, done.tables_done, done.bytes, done.bytes_done) != 0;
  };
}

uint64_t nacre_checkpoint_create(nacre_t* db, const char* dir,
                                 const nacre_checkpointoptions_t* options, char** errptr) {
  std::unique_ptr<nacre::Checkpoint> checkpoint;
  if (!Succeeded(nacre::Checkpoint::Create(db->rep.get(), &checkpoint), errptr)) return 0;
  nacre::CheckpointInfo info;
  if (!Succeeded(checkpoint->CreateCheckpoint(dir, options->rep, &info), errptr)) return 0;
  return info.number;
}

nacre_checkpointinfo_t* nacre_checkpoint_list(const char* dir, size_t* count, char** errptr) {
  *count = 0;
  auto infos = std::make_unique<nacre_checkpointinfo_t>();
  if (!Succeeded(nacre::GetCheckpoints(dir, &infos->all), errptr)) return nullptr;
  *count = infos->all.size();
  return infos.release();
}

void nacre_checkpoint_list_destroy(nacre_checkpointinfo_t* infos) {
  std::unique_ptr<nacre_checkpointinfo_t> destroyed(infos);
}

uint64_t nacre_checkpointinfo_number(const nacre_checkpointinfo_t* infos, size_t i) {
  return infos->all[i].number;
}

uint64_t nacre_checkpointinfo_sequence(const nacre_checkpointinfo_t* infos, size_t i) {
  return infos->all[i].sequence;
}

uint64_t nacre_checkpointinfo_tables(const nacre_checkpointinfo_t* infos, size_t i) {
  return infos->all[i].tables;
}

uint64_t nacre_checkpointinfo_bytes(const nacre_checkpointinfo_t* infos, size_t i) {
  return infos->all[i].bytes;
}

uint64_t nacre_checkpointinfo_created_at(const nacre_checkpointinfo_t* infos, size_t i) {
  return infos->all[i].created_at;
}

const char* nacre_checkpointinfo_database(const nacre_checkpointinfo_t* infos, size_t i) {
  return infos->all[i].database.c_str();
}

void nacre_checkpoint_delete(const char* dir, uint64_t number, char** errptr) {
  (void)Succeeded(nacre::DeleteCheckpoint(dir, number), errptr);
}

void nacre_checkpoint_verify(const char* dir, uint64_t number,
                             const nacre_checkpointoptions_t* options, char** errptr) {
  (void)Succeeded(nacre::VerifyCheckpoint(dir, number, options->rep), errptr);
}

void nacre_restore_db(const nacre_options_t* options, const char* name, const char* dir,
                      uint64_t number, const nacre_checkpointoptions_t* restore, char** errptr) {
  if (!Succeeded(options->invalid, errptr)) return;
  const nacre::RestoreOptions restore_options = {.checkpoint = number,
                                                 .threads = restore->rep.threads,
                                                 .bytes_per_second = restore->rep.bytes_per_second,
                                                 .progress = restore->rep.progress};
  (void)Succeeded(nacre::RestoreDB(options->rep, name, dir, restore_options), errptr);
}
