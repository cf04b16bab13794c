#pragma once

#include <leveldb/c.h>

#include <memory>
#include <string>

#include "nacre/comparator.h"
#include "nacre/db.h"
#include "nacre/iterator.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "nacre/write_batch.h"

// What stands behind the opaque types of leveldb/c.h. Each owns what it holds, unless something
// else is said. There are none behind those that leveldb/c.h names and has no function to make.

struct leveldb_t {
  std::string name;  ///< Its name in the pool.
  std::unique_ptr<nacre::DB> rep;
};

struct leveldb_comparator_t {
  std::unique_ptr<nacre::Comparator> rep;
};

struct leveldb_options_t {
  nacre::Options rep;  ///< What means something here; without a pool.
};

struct leveldb_readoptions_t {
  nacre::ReadOptions rep;
};

struct leveldb_writeoptions_t {
  nacre::WriteOptions rep;
};

struct leveldb_snapshot_t {
  const nacre::Snapshot* rep;  ///< The database's.
};

struct leveldb_iterator_t {
  std::unique_ptr<nacre::Iterator> rep;
};

struct leveldb_writebatch_t {
  nacre::WriteBatch rep;
  nacre::Status failure;  ///< The failure of the first update that did not fit.
};

/// Accepted; Nacre's tables have filters of their own.
struct leveldb_filterpolicy_t {
  void* state = nullptr;
  void (*destructor)(void*) = nullptr;
};

/// Accepted; there is no cache of blocks where there are no blocks.
struct leveldb_cache_t {};

/// Accepted; nothing lies in files.
struct leveldb_env_t {};
