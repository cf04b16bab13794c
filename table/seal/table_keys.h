#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "nacre/status.h"
#include "table/format/table_meta.h"
#include "table/format/table_seal.h"
#include "util/crypto/key_ring.h"

namespace nacre {

/// The keys of a process for the tables of encrypted databases.
///
/// Thread safety: const methods from many threads at once.
class TableKeys {
 public:
  explicit TableKeys(std::shared_ptr<const KeyRing> ring) : ring_(std::move(ring)) {}

  /// Makes `identity`, which has the ids of a table that is to be written, one that is sealed, with
  /// the ring's first key.
  Status SealNew(TableMeta* identity) const;
  /// Whether a table is encrypted with the ring's first key.
  bool IsFirst(const TableMeta& meta) const {
    return meta.sealed() && meta.seal->key_id() == ring_->first().id;
  }
  const std::shared_ptr<const KeyRing>& ring() const { return ring_; }

 private:
  const std::shared_ptr<const KeyRing> ring_;
};

/// Those in the file; null if `path` is empty. Fails as KeyRing::Read.
Status ReadTableKeys(const std::string& path, std::shared_ptr<const TableKeys>* keys);

/// Finds the key of a table that is sealed, and opens its bounds if it has any (the head of a
/// fragment has none); does nothing to others. `keys` is
/// null where there are none. `InvalidArgument` naming the key that is missing; `Corruption`: the
/// table was not sealed with that key, or its bounds were changed.
Status OpenSeal(const TableKeys* keys, TableMeta* meta);

/// What `meta`, whose bounds are open, would be if the table was not encrypted.
TableMeta PlainMeta(const TableMeta& meta);

}  // namespace nacre
