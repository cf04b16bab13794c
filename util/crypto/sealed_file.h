#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "util/crypto/aead.h"
#include "util/crypto/key_ring.h"
#include "util/crypto/secret_key.h"

namespace nacre {

// Files of which all that is not said to be plain is sealed. A sealed file is
//
//     a header of its own kind, plain
//     0   4  version of sealing, 1: AES-256-GCM, keys by HKDF-SHA256
//     4  32  ID of the key, padded with zeros
//    36  32  salt, drawn
//    68  16  tag
//    84   4  CRC32C of the header and of this up to here
//     pieces: as many bytes as are sealed, and a tag of 16 bytes
//
// The file's key is derived from the one with that ID, by the salt and by what the file is: its
// kind, its name and what its folder is bound to. So nothing that was sealed as one file opens as
// another one. Of the file's key, nonce 0 is for the first tag, of no bytes, with all before it as
// associated data: by it a wrong key is known as such. The nonce of a piece is its offset in the
// file, so that it opens in its place only, and as whole as it was sealed.
//
// A writer has to seal at most once at an offset. One that goes on with another's file, or again
// after a failure, cannot know what was sealed behind the end: it takes another key (ContinueKey).

/// Bytes between the header of a sealed file and its first piece.
inline constexpr size_t kSealBytes = 88;
inline constexpr size_t kSealSaltBytes = 32;

/// How the files of a folder are sealed.
struct Sealing {
  std::shared_ptr<const KeyRing> keys{};  ///< Null: they are not.
  std::string context{};                  ///< What the folder is bound to.
};

/// What a file is, which its key depends on.
struct SealedAs {
  std::string_view kind;
  std::string_view name;
};

/// The key of one file. Thread safety: as a value.
struct FileKey {
  std::string id;  ///< That of the key which it comes from.
  SecretKey key;
};

/// Makes a key for a new file that begins with `header`. `*seal`: what has to follow the header.
/// `sealing.keys` is not null. `IOError` if there are no random numbers, or OpenSSL fails.
Status NewFileKey(const Sealing& sealing, const SealedAs& file, const Slice& header,
                  std::string* seal, FileKey* key);
/// The key of a file that begins with `header` and `seal` (kSealBytes). `Corruption` if its
/// checksum is wrong, `NotSupported` for another version. `InvalidArgument` if there are no keys,
/// or not that one, or another one with its ID, which is also what a header looks like that was
/// changed on purpose. Messages do not name the file.
Status FindFileKey(const Sealing& sealing, const SealedAs& file, const Slice& header,
                   const Slice& seal, FileKey* key);
/// The ID of the key only, which needs none.
Status FindKeyId(const Slice& header, const Slice& seal, std::string* id);
/// A key for what is behind an offset up to which the file's own was used, by another salt.
Status ContinueKey(const SecretKey& file_key, const Slice& salt, SecretKey* key);

/// Appends a piece of a file, which begins at `offset` there.
Status SealPiece(Aead* aead, uint64_t offset, const Slice& plain, std::string* to);
/// Opens a piece, without its tag, into `to`, which may be where it is. `Corruption` naming the
/// offset.
Status OpenPiece(Aead* aead, uint64_t offset, const Slice& sealed, const char* tag, char* to);

}  // namespace nacre
