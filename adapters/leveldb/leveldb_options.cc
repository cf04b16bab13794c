#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "adapters/common/c_memory.h"
#include "adapters/common/callback_comparator.h"
#include "adapters/leveldb/leveldb_error.h"
#include "adapters/leveldb/leveldb_types.h"

// Options, and what they name. LevelDB's header says what each option is for; those about files,
// blocks and caches are accepted, and there is nothing here that they could change.

namespace {

template <typename T>
void Destroy(T* object) {
  std::unique_ptr<T> destroyed(object);
}

}  // namespace

leveldb_options_t* leveldb_options_create(void) {
  return std::make_unique<leveldb_options_t>().release();
}

void leveldb_options_destroy(leveldb_options_t* options) { Destroy(options); }

void leveldb_options_set_comparator(leveldb_options_t* options, leveldb_comparator_t* comparator) {
  const nacre::Comparator* chosen =
      comparator == nullptr ? nullptr
                            : static_cast<const nacre::Comparator*>(comparator->rep.get());
  // Orders of one name are the same, says LevelDB. This one is known to memory nodes.
  if (chosen == nullptr || std::strcmp(chosen->Name(), nacre::kLevelDBBytewiseName) == 0) {
    chosen = nacre::BytewiseComparator();
  }
  options->rep.comparator = chosen;
}

void leveldb_options_set_filter_policy(leveldb_options_t*, leveldb_filterpolicy_t*) {}

void leveldb_options_set_create_if_missing(leveldb_options_t* options, uint8_t value) {
  options->rep.create_if_missing = value != 0;
}

void leveldb_options_set_error_if_exists(leveldb_options_t* options, uint8_t value) {
  options->rep.error_if_exists = value != 0;
}

void leveldb_options_set_paranoid_checks(leveldb_options_t* options, uint8_t value) {
  // Checksums are always verified. This is what it says about the log in LevelDB.
  options->rep.wal_recovery_mode = value != 0
                                       ? nacre::WALRecoveryMode::kTolerateCorruptedTailRecords
                                       : nacre::Options().wal_recovery_mode;
}

void leveldb_options_set_env(leveldb_options_t*, leveldb_env_t*) {}

void leveldb_options_set_info_log(leveldb_options_t*, leveldb_logger_t*) {}

void leveldb_options_set_write_buffer_size(leveldb_options_t* options, size_t size) {
  options->rep.write_buffer_size = std::clamp<size_t>(size, 64 << 10, 1 << 30);
}

void leveldb_options_set_max_open_files(leveldb_options_t*, int) {}

void leveldb_options_set_cache(leveldb_options_t*, leveldb_cache_t*) {}

void leveldb_options_set_block_size(leveldb_options_t*, size_t) {}

void leveldb_options_set_block_restart_interval(leveldb_options_t*, int) {}

void leveldb_options_set_max_file_size(leveldb_options_t* options, size_t size) {
  options->rep.target_file_size_base = std::clamp<size_t>(size, 1 << 20, 1 << 30);
}

void leveldb_options_set_compression(leveldb_options_t*, int) {}

leveldb_comparator_t* leveldb_comparator_create(void* state, void (*destructor)(void*),
                                                int (*compare)(void*, const char* a, size_t alen,
                                                               const char* b, size_t blen),
                                                const char* (*name)(void*)) {
  auto comparator = std::make_unique<leveldb_comparator_t>();
  comparator->rep = std::make_unique<nacre::CallbackComparator>(state, destructor, compare, name);
  return comparator.release();
}

void leveldb_comparator_destroy(leveldb_comparator_t* comparator) { Destroy(comparator); }

leveldb_filterpolicy_t* leveldb_filterpolicy_create(
    void* state, void (*destructor)(void*),
    char* (*)(void*, const char* const* key_array, const size_t* key_length_array, int num_keys,
              size_t* filter_length),
    uint8_t (*)(void*, const char* key, size_t length, const char* filter, size_t filter_length),
    const char* (*)(void*)) {
  return std::make_unique<leveldb_filterpolicy_t>(leveldb_filterpolicy_t{state, destructor})
      .release();
}

void leveldb_filterpolicy_destroy(leveldb_filterpolicy_t* policy) {
  const std::unique_ptr<leveldb_filterpolicy_t> destroyed(policy);
  if (policy != nullptr && policy->destructor != nullptr) policy->destructor(policy->state);
}

leveldb_filterpolicy_t* leveldb_filterpolicy_create_bloom(int) {
  return std::make_unique<leveldb_filterpolicy_t>().release();
}

leveldb_readoptions_t* leveldb_readoptions_create(void) {
  return std::make_unique<leveldb_readoptions_t>().release();
}

void leveldb_readoptions_destroy(leveldb_readoptions_t* options) { Destroy(options); }

void leveldb_readoptions_set_verify_checksums(leveldb_readoptions_t* options, uint8_t value) {
  options->rep.verify_checksums = value != 0;
}

/// There is no cache of blocks that a read could fill.
void leveldb_readoptions_set_fill_cache(leveldb_readoptions_t* /*options*/, uint8_t /*value*/) {}

void leveldb_readoptions_set_snapshot(leveldb_readoptions_t* options,
                                      const leveldb_snapshot_t* snapshot) {
  options->rep.snapshot = snapshot == nullptr ? nullptr : snapshot->rep;
}

leveldb_writeoptions_t* leveldb_writeoptions_create(void) {
  return std::make_unique<leveldb_writeoptions_t>().release();
}

void leveldb_writeoptions_destroy(leveldb_writeoptions_t* options) { Destroy(options); }

void leveldb_writeoptions_set_sync(leveldb_writeoptions_t* options, uint8_t value) {
  options->rep.sync = value != 0;
}

leveldb_cache_t* leveldb_cache_create_lru(size_t) {
  return std::make_unique<leveldb_cache_t>().release();
}

void leveldb_cache_destroy(leveldb_cache_t* cache) { Destroy(cache); }

leveldb_env_t* leveldb_create_default_env(void) {
  return std::make_unique<leveldb_env_t>().release();
}

void leveldb_env_destroy(leveldb_env_t* env) { Destroy(env); }

char* leveldb_env_get_test_directory(leveldb_env_t*) {
  // The same directory that LevelDB answers, and as there it is made.
  const char* chosen = std::getenv("TEST_TMPDIR");
  const std::string directory = chosen != nullptr && *chosen != '\0'
                                    ? chosen
                                    : "/tmp/leveldbtest-" + std::to_string(geteuid());
  (void)mkdir(directory.c_str(), 0755);
  return nacre::CopyToCString(directory);
}

void leveldb_free(void* ptr) { std::free(ptr); }

// The version of LevelDB's header that this was made for.

int leveldb_major_version(void) { return 1; }

int leveldb_minor_version(void) { return 23; }
