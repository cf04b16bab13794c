#include "util/crypto/sealed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre {
namespace {

constexpr uint32_t kSealingVersion = 1;
constexpr size_t kIdAt = 4;
constexpr size_t kSaltAt = kIdAt + KeyRing::kMaxIdBytes;
constexpr size_t kTagAt = kSaltAt + kSealSaltBytes;
constexpr size_t kSealCrcAt = kTagAt + Aead::kTagBytes;
static_assert(kSealCrcAt + kCrcBytes == kSealBytes);

// Keep the uses of a key apart.
constexpr std::string_view kFileLabel = "nacre file 1";
constexpr std::string_view kContinueLabel = "nacre file continued 1";

Status DeriveFileKey(const SecretKey& from, const Sealing& sealing, const SealedAs& file,
                     const Slice& salt, SecretKey* key) {
  std::string purpose;
  // Each part is preceded by its length, so that no byte can move from one to the other.
  for (const std::string_view part :
       {kFileLabel, file.kind, std::string_view(sealing.context), file.name}) {
    PutLengthPrefixedSlice(&purpose, part);
  }
  return DeriveSecretKey(from.bytes(), salt, purpose, key);
}

uint32_t SealCrc(const Slice& header, const Slice& seal) {
  return Crc32c(seal.data(), kSealCrcAt, Crc32c(header.data(), header.size()));
}

/// What the tag of the seal is of.
std::string Associated(const Slice& header, const Slice& seal) {
  return header.ToString().append(seal.data(), kTagAt);
}

}  // namespace

Status NewFileKey(const Sealing& sealing, const SealedAs& file, const Slice& header,
                  std::string* seal, FileKey* key) {
  const KeyRing::Key& first = sealing.keys->first();
  key->id = first.id;
  seal->assign(kSealBytes, '\0');
  EncodeFixed32(seal->data(), kSealingVersion);
  std::copy(first.id.begin(), first.id.end(), seal->begin() + kIdAt);
  NACRE_RETURN_IF_ERROR(DrawRandomBytes(kSealSaltBytes, seal->data() + kSaltAt));
  const Slice salt(seal->data() + kSaltAt, kSealSaltBytes);
  NACRE_RETURN_IF_ERROR(DeriveFileKey(first.key, sealing, file, salt, &key->key));
  Aead aead(key->key);
  NACRE_RETURN_IF_ERROR(aead.Seal(Aead::NonceOf(0), Associated(header, *seal), Slice(),
                                  seal->data(), seal->data() + kTagAt));
  EncodeFixed32(seal->data() + kSealCrcAt, SealCrc(header, *seal));
  return Status::OK();
}

Status FindKeyId(const Slice& header, const Slice& seal, std::string* id) {
  if (seal.size() != kSealBytes ||
      DecodeFixed32(seal.data() + kSealCrcAt) != SealCrc(header, seal)) {
    return Status::Corruption("its seal does not match its checksum");
  }
  if (const uint32_t version = DecodeFixed32(seal.data()); version != kSealingVersion) {
    return Status::NotSupported(
        fmt::format("version {} of sealing, this program knows {}", version, kSealingVersion));
  }
  id->assign(seal.data() + kIdAt, ::strnlen(seal.data() + kIdAt, KeyRing::kMaxIdBytes));
  return IsKeyId(*id) ? Status::OK() : Status::Corruption("its seal names no key");
}

Status FindFileKey(const Sealing& sealing, const SealedAs& file, const Slice& header,
                   const Slice& seal, FileKey* key) {
  NACRE_RETURN_IF_ERROR(FindKeyId(header, seal, &key->id));
  if (sealing.keys == nullptr) {
    return Status::InvalidArgument(
        fmt::format("it is encrypted with key '{}', and there is no key file", key->id));
  }
  const SecretKey* const from = sealing.keys->Find(key->id);
  if (from == nullptr) {
    return Status::InvalidArgument(
        fmt::format("it is encrypted with key '{}', which the key file '{}' does not have", key->id,
                    sealing.keys->path()));
  }
  const Slice salt(seal.data() + kSaltAt, kSealSaltBytes);
  NACRE_RETURN_IF_ERROR(DeriveFileKey(*from, sealing, file, salt, &key->key));
  Aead aead(key->key);
  char none = 0;
  const Status status =
      aead.Open(Aead::NonceOf(0), Associated(header, seal), Slice(), seal.data() + kTagAt, &none);
  if (!status.IsCorruption()) return status;
  return Status::InvalidArgument(
      fmt::format("key '{}' of the key file '{}' is not the one that it is encrypted with, or it "
                  "was another file, or its header was changed",
                  key->id, sealing.keys->path()));
}

Status ContinueKey(const SecretKey& file_key, const Slice& salt, SecretKey* key) {
  return DeriveSecretKey(file_key.bytes(), salt, kContinueLabel, key);
}

Status SealPiece(Aead* aead, uint64_t offset, const Slice& plain, std::string* to) {
  const size_t begin = to->size();
  to->resize(begin + plain.size() + Aead::kTagBytes);
  char* const piece = to->data() + begin;
  return aead->Seal(Aead::NonceOf(offset), Slice(), plain, piece, piece + plain.size());
}

Status OpenPiece(Aead* aead, uint64_t offset, const Slice& sealed, const char* tag, char* to) {
  Status status = aead->Open(Aead::NonceOf(offset), Slice(), sealed, tag, to);
  if (!status.IsCorruption()) return status;
  return Status::Corruption(
      fmt::format("the piece at {} does not match its tag: it was changed or moved", offset));
}

}  // namespace nacre
