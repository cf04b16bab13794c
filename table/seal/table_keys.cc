#include "table/seal/table_keys.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "util/coding.h"
#include "util/crypto/secret_key.h"

namespace nacre {
namespace {

Status DeriveTableKey(const SecretKey& from, const TableMeta& meta, const Slice& salt,
                      SecretKey* key) {
  std::string purpose = "nacre table 1";
  PutFixed64(&purpose, meta.database_id);
  PutFixed64(&purpose, meta.id);
  return DeriveSecretKey(from.bytes(), salt, purpose, key);
}

}  // namespace

Status TableKeys::SealNew(TableMeta* identity) const {
  std::string salt(TableSeal::kSaltBytes, '\0');
  NACRE_RETURN_IF_ERROR(DrawRandomBytes(salt.size(), salt.data()));
  SecretKey key;
  NACRE_RETURN_IF_ERROR(DeriveTableKey(ring_->first().key, *identity, salt, &key));
  const TableSeal named(ring_->first().id, std::move(salt));
  identity->seal = std::make_shared<const TableSeal>(named, key);
  return Status::OK();
}

Status ReadTableKeys(const std::string& path, std::shared_ptr<const TableKeys>* keys) {
  keys->reset();
  if (path.empty()) return Status::OK();
  std::shared_ptr<const KeyRing> ring;
  NACRE_RETURN_IF_ERROR(KeyRing::Read(path, &ring));
  *keys = std::make_shared<const TableKeys>(std::move(ring));
  return Status::OK();
}

TableMeta PlainMeta(const TableMeta& meta) {
  TableMeta plain = meta;
  plain.chunk_size = plain.placement.chunk_size = meta.plain_chunk_size();
  plain.size = meta.plain_size();
  plain.seal = nullptr;
  return plain;
}

Status OpenSeal(const TableKeys* keys, TableMeta* meta) {
  if (meta->seal == nullptr || meta->seal->has_key()) return Status::OK();
  const std::string& id = meta->seal->key_id();
  if (keys == nullptr) {
    return Status::InvalidArgument(
        fmt::format("table {} is encrypted with key '{}', and no key file is given", meta->id, id));
  }
  const SecretKey* const from = keys->ring()->Find(id);
  if (from == nullptr) {
    return Status::InvalidArgument(
        fmt::format("table {} is encrypted with key '{}', which is not in {}", meta->id, id,
                    keys->ring()->path()));
  }
  SecretKey key;
  NACRE_RETURN_IF_ERROR(DeriveTableKey(*from, *meta, meta->seal->salt(), &key));
  auto seal = std::make_shared<const TableSeal>(*meta->seal, key);
  if (seal->smallest().empty() && seal->largest().empty()) {
    meta->seal = std::move(seal);
    return Status::OK();
  }
  Status status = seal->OpenBound(TableSeal::Bound::kSmallest, &meta->smallest);
  if (status.ok()) status = seal->OpenBound(TableSeal::Bound::kLargest, &meta->largest);
  if (status.ok() && (meta->smallest.size() < kTagBytes || meta->largest.size() < kTagBytes)) {
    status = Status::Corruption("a bound is shorter than a tag");
  }
  if (status.IsCorruption()) {
    return Status::Corruption(fmt::format(
        "table {}: its bounds do not open with key '{}' of {}: it is another key of that name, or "
        "they were changed",
        meta->id, id, keys->ring()->path()));
  }
  NACRE_RETURN_IF_ERROR(status);
  meta->bounds_shortened = false;
  meta->seal = std::move(seal);
  return Status::OK();
}

}  // namespace nacre
