#include "db/wal/log_encryption.h"

#include <fmt/format.h>

#include <cstring>

#include "util/coding.h"

namespace nacre {
namespace {

constexpr char kEncryptedPayload = '\xfe';
constexpr size_t kPayloadHeadBytes = 1 + sizeof(uint64_t);
constexpr size_t kPayloadExtraBytes = kPayloadHeadBytes + Aead::kTagBytes;

Status DeriveLogKey(const SecretKey& from, uint64_t database_id, uint64_t epoch, SecretKey* key) {
  std::string purpose = "nacre log 1";
  PutFixed64(&purpose, database_id);
  PutFixed64(&purpose, epoch);
  return DeriveSecretKey(from.bytes(), Slice(), purpose, key);
}

struct Associated {
  explicit Associated(uint32_t count) { EncodeFixed32(bytes, count); }
  operator Slice() const { return {bytes, sizeof(bytes)}; }  // NOLINT(google-explicit-constructor)
  char bytes[sizeof(uint32_t)];
};

}  // namespace

Status LogEncryptor::Make(const KeyRing& ring, uint64_t database_id, uint64_t epoch,
                          std::unique_ptr<LogEncryptor>* encryptor) {
  SecretKey key;
  NACRE_RETURN_IF_ERROR(DeriveLogKey(ring.first().key, database_id, epoch, &key));
  encryptor->reset(new LogEncryptor(key, epoch));
  return Status::OK();
}

Status LogEncryptor::Encrypt(SequenceNumber first, uint32_t count, std::span<const Slice> parts,
                             std::string* payload) {
  payload->assign(1, kEncryptedPayload);
  PutFixed64(payload, epoch_);
  for (const Slice& part : parts) payload->append(part.data(), part.size());
  const size_t bytes = payload->size() - kPayloadHeadBytes;
  payload->resize(payload->size() + Aead::kTagBytes);
  char* const updates = payload->data() + kPayloadHeadBytes;
  return aeads_.With([&](Aead* aead) {
    return aead->Seal(Aead::NonceOf(first), Associated(count), Slice(updates, bytes), updates,
                      updates + bytes);
  });
}

bool LogDecryptor::IsEncrypted(const Slice& payload) {
  return payload.size() > kPayloadExtraBytes && payload[0] == kEncryptedPayload;
}

std::shared_ptr<AeadPool> LogDecryptor::Known(uint64_t epoch) {
  MutexLock lock(&mutex_);
  const auto found = by_epoch_.find(epoch);
  return found == by_epoch_.end() ? nullptr : found->second;
}

Status LogDecryptor::Decrypt(SequenceNumber first, uint32_t count, const Slice& payload, char* to,
                             Slice* updates) {
  if (!IsEncrypted(payload)) {
    *updates = payload;
    return Status::OK();
  }
  if (ring_ == nullptr) {
    return Status::InvalidArgument("the log is encrypted, and no key file is given");
  }
  const uint64_t epoch = DecodeFixed64(payload.data() + 1);
  const Slice sealed(payload.data() + kPayloadHeadBytes, payload.size() - kPayloadExtraBytes);
  char* const at = to + kPayloadHeadBytes;  // Exactly where it was, if it is opened in place.
  *updates = Slice(at, sealed.size());
  const auto open = [&](AeadPool* aeads, const Slice& from, char* plain) {
    return aeads->With([&](Aead* aead) {
      return aead->Open(Aead::NonceOf(first), Associated(count), from, sealed.end(), plain);
    });
  };
  if (const auto known = Known(epoch); known != nullptr) {
    return open(known.get(), sealed, at).WithContext(fmt::format("log record {}", first));
  }
  // A key that is the wrong one spoils what it opens in place.
  const std::string kept = sealed.ToString();
  for (const KeyRing::Key& each : ring_->keys()) {
    SecretKey key;
    NACRE_RETURN_IF_ERROR(DeriveLogKey(each.key, database_id_, epoch, &key));
    auto aeads = std::make_shared<AeadPool>(key);
    std::string plain(kept.size(), '\0');
    const Status status = open(aeads.get(), kept, plain.data());
    if (status.IsCorruption()) continue;
    NACRE_RETURN_IF_ERROR(status);
    std::memcpy(at, plain.data(), plain.size());
    MutexLock lock(&mutex_);
    by_epoch_.emplace(epoch, std::move(aeads));
    return Status::OK();
  }
  return Status::InvalidArgument(
      fmt::format("log record {} is encrypted with none of the keys in {}, or was changed", first,
                  ring_->path()));
}

}  // namespace nacre
