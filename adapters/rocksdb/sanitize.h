#pragma once

#include <rocksdb/options.h>

#include <string>
#include <vector>

namespace nacre::rocksdb_api {

/// Gives `max_background_jobs` the value that RocksDB derives from it and from the two options that
/// it has replaced. Nacre moves all other options into their bounds by itself. `notes` gets a line
/// for the LOG if the value changes.
void Sanitize(rocksdb::DBOptions* options, std::vector<std::string>* notes);

// Most options of RocksDB tune what a database in a pool has not got: files, block caches,
// compressed blocks, a limiter of the rate of I/O. Each that is not at its default and means
// nothing here gets a line for the LOG, in the order of the names.

void NoteUnused(const rocksdb::DBOptions& options, std::vector<std::string>* notes);
/// Those of the column family `name`.
void NoteUnused(const std::string& name, const rocksdb::ColumnFamilyOptions& options,
                std::vector<std::string>* notes);

}  // namespace nacre::rocksdb_api
