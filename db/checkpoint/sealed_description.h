#pragma once

#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "util/crypto/sealed_file.h"

namespace nacre {

// The description of a checkpoint (db/checkpoint/checkpoint_description.h), sealed:
//
//     offset size
//          0    8  magic, as of a plain one
//          8    4  format version, 3
//         12    4  zero
//         16    8  bytes of the whole
//         24   88  seal (util/crypto/sealed_file.h); the file is of the kind "checkpoint"
//        112       the plain description, as a piece
//               4  CRC32C of everything before

bool IsSealedDescription(const Slice& bytes);
/// Puts the sealed description in the place of the plain one. `name` is that of its file.
Status SealDescription(const Sealing& sealing, const std::string& name, std::string* bytes);
/// The reverse; `*key_id` is that of the key. `Corruption`, and failures as FindFileKey. Safe on
/// any bytes.
Status OpenDescription(const Sealing& sealing, const std::string& name, const Slice& bytes,
                       std::string* plain, std::string* key_id);
/// The ID of the key of the description in the file `path`; empty if it is plain.
Status ReadDescriptionKey(const std::string& path, std::string* key_id);

}  // namespace nacre
