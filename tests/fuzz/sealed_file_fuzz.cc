// Files that are sealed, and the key files for them, as an attacker may have changed them: any
// bytes are refused, or are what was sealed. Bytes that are sealed here, with the right key, reach
// what is behind the tag.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "archive/log_file.h"
#include "db/checkpoint/sealed_description.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"
#include "util/crypto/key_ring.h"
#include "util/crypto/sealed_file.h"

namespace {

using namespace nacre;  // NOLINT(google-build-using-namespace): a fuzzer has no other scope.

void Require(bool condition) {
  if (!condition) std::abort();
}

Sealing MakeSealing() {
  auto ring = std::make_shared<KeyRing>();
  Require(KeyRing::Parse("one " + std::string(64, '1'), ring.get()).ok());
  return {.keys = std::move(ring), .context = "fuzz"};
}

void ReadKeys(const std::string& bytes) {
  KeyRing ring;
  if (!KeyRing::Parse(bytes, &ring).ok()) return;
  Require(!ring.keys().empty());
  for (const KeyRing::Key& key : ring.keys()) {
    Require(IsKeyId(key.id) && ring.Find(key.id) == &key.key);
  }
}

/// Any bytes as the seal of a file, with a checksum that is right.
void FindKey(const Sealing& sealing, const std::string& bytes) {
  std::string seal = bytes.substr(0, kSealBytes);
  FileKey key;
  const SealedAs file{.kind = "log", .name = "name"};
  Require(!FindFileKey(sealing, file, "header", seal, &key).ok());
  if (seal.size() != kSealBytes) return;
  EncodeFixed32(seal.data() + kSealBytes - kCrcBytes,
                Crc32c(seal.data(), kSealBytes - kCrcBytes, Crc32c("header", 6)));
  Require(!FindFileKey(sealing, file, "header", seal, &key).ok());
}

void ReadDescription(const Sealing& sealing, const std::string& bytes) {
  std::string plain;
  std::string id;
  std::string wrong = bytes;
  constexpr size_t kBytesAt = 16;
  if (wrong.size() > kBytesAt + sizeof(uint64_t) + kCrcBytes) {
    EncodeFixed64(wrong.data() + kBytesAt, wrong.size());
    EncodeFixed32(wrong.data() + wrong.size() - kCrcBytes,
                  Crc32c(wrong.data(), wrong.size() - kCrcBytes));
  }
  for (const std::string& each : {bytes, wrong}) {
    if (IsSealedDescription(each)) {
      Require(!OpenDescription(sealing, "CHECKPOINT-000001", each, &plain, &id).ok());
    }
  }
  std::string sealed = bytes;
  Require(SealDescription(sealing, "CHECKPOINT-000001", &sealed).ok());
  Require(IsSealedDescription(sealed));
  Require(OpenDescription(sealing, "CHECKPOINT-000001", sealed, &plain, &id).ok());
  Require(plain == bytes && id == "one");
  Require(!OpenDescription(sealing, "CHECKPOINT-000002", sealed, &plain, &id).ok());
}

/// Any bytes as pieces of a log, and as what a piece has in it.
void ReadPieces(const Sealing& sealing, const std::string& bytes) {
  auto key = std::make_shared<FileKey>();
  std::string seal;
  Require(NewFileKey(sealing, {.kind = "log", .name = "name"}, "", &seal, key.get()).ok());
  LogPiece piece{.path = "name", .offset = 124, .buffer = bytes, .size = bytes.size(), .key = key};
  std::vector<ArchivedBatch> batches;
  Require(bytes.empty() || !CheckPiece(&piece, &batches).ok());
  Aead aead(key->key);
  piece.buffer.clear();
  PutFixed32(&piece.buffer, static_cast<uint32_t>(bytes.size()));
  Require(SealPiece(&aead, piece.offset, bytes, &piece.buffer).ok());
  piece.size = piece.buffer.size();
  if (!CheckPiece(&piece, &batches).ok()) return;
  size_t there = 0;
  for (const ArchivedBatch& batch : batches) there += 16 + batch.bytes.size();
  Require(there == bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Sealing* const sealing = new Sealing(MakeSealing());
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  ReadKeys(bytes);
  FindKey(*sealing, bytes);
  ReadDescription(*sealing, bytes);
  ReadPieces(*sealing, bytes);
  return 0;
}
