#include "db/checkpoint/sealed_description.h"

#include <algorithm>
#include <memory>

#include "db/checkpoint/checkpoint_description.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"
#include "util/posix_file.h"

namespace nacre {
namespace {

constexpr uint32_t kSealedVersion = 3;
constexpr size_t kSealedVersionAt = 8;
constexpr size_t kSealedBytesAt = 16;
constexpr size_t kSealedHeader = 24;
constexpr size_t kSealedPieceAt = kSealedHeader + kSealBytes;

SealedAs OfDescription(const std::string& name) { return {.kind = "checkpoint", .name = name}; }

}  // namespace

bool IsSealedDescription(const Slice& bytes) {
  return bytes.size() >= kSealedHeader && DecodeFixed64(bytes.data()) == kDescriptionMagic &&
         DecodeFixed32(bytes.data() + kSealedVersionAt) == kSealedVersion;
}

Status SealDescription(const Sealing& sealing, const std::string& name, std::string* bytes) {
  std::string sealed(kSealedHeader, '\0');
  EncodeFixed64(sealed.data(), kDescriptionMagic);
  EncodeFixed32(sealed.data() + kSealedVersionAt, kSealedVersion);
  EncodeFixed64(sealed.data() + kSealedBytesAt,
                kSealedPieceAt + bytes->size() + Aead::kTagBytes + kCrcBytes);
  std::string seal;
  FileKey key;
  NACRE_RETURN_IF_ERROR(NewFileKey(sealing, OfDescription(name), sealed, &seal, &key));
  sealed += seal;
  Aead aead(key.key);
  NACRE_RETURN_IF_ERROR(SealPiece(&aead, kSealedPieceAt, *bytes, &sealed));
  PutFixed32(&sealed, Crc32c(sealed.data(), sealed.size()));
  *bytes = std::move(sealed);
  return Status::OK();
}

Status OpenDescription(const Sealing& sealing, const std::string& name, const Slice& bytes,
                       std::string* plain, std::string* key_id) {
  const size_t size = bytes.size();
  if (size < kSealedPieceAt + Aead::kTagBytes + kCrcBytes ||
      DecodeFixed64(bytes.data() + kSealedBytesAt) != size) {
    return Status::Corruption("sealed description: truncated");
  }
  if (DecodeFixed32(bytes.data() + size - kCrcBytes) != Crc32c(bytes.data(), size - kCrcBytes)) {
    return Status::Corruption("sealed description: wrong checksum");
  }
  FileKey key;
  NACRE_RETURN_IF_ERROR(FindFileKey(sealing, OfDescription(name), {bytes.data(), kSealedHeader},
                                    {bytes.data() + kSealedHeader, kSealBytes}, &key));
  Aead aead(key.key);
  const size_t tag_at = size - kCrcBytes - Aead::kTagBytes;
  plain->resize(tag_at - kSealedPieceAt);
  NACRE_RETURN_IF_ERROR(OpenPiece(&aead, kSealedPieceAt,
                                  {bytes.data() + kSealedPieceAt, plain->size()},
                                  bytes.data() + tag_at, plain->data()));
  *key_id = key.id;
  return Status::OK();
}

Status ReadDescriptionKey(const std::string& path, std::string* key_id) {
  key_id->clear();
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Open(path, &file));
  std::string bytes(std::min<uint64_t>(kSealedPieceAt, file->size()), '\0');
  NACRE_RETURN_IF_ERROR(file->Read(0, bytes.size(), bytes.data()));
  if (!IsSealedDescription(bytes)) return Status::OK();
  if (bytes.size() < kSealedPieceAt) {
    return Status::Corruption(path + ": sealed description: truncated");
  }
  return FindKeyId({bytes.data(), kSealedHeader}, {bytes.data() + kSealedHeader, kSealBytes},
                   key_id)
      .WithContext(path);
}

}  // namespace nacre
