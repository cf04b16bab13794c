#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre::sqlite {

// The files of a command log (sqlite/command_log/command_log.h), little-endian. Each is called
// COMMANDS-00000000000000000042 after its first transaction and begins with
//
//     bytes    8          "NCRCMDS1"
//     fixed64             the log's id, which all its files and its database have
//     fixed64             number of its first transaction
//     varint32, bytes     name of the database
//     fixed32             CRC32C of all of this
//
// and goes on with groups, each of which was on the disk before the next one was written:
//
//     fixed32             CRC32C of the rest of the group, begun with that of the log's id
//     fixed32             bytes of the transactions below
//     fixed64             where in the file the group begins
//     fixed64             number of its first transaction
//     fixed32             how many transactions
//     varint32, bytes     for each, its commands (sqlite/command_log/command_list.h)
//
// So a group that is not whole is what a crash has torn, and nothing in it was acknowledged, if no
// whole one is behind it. With one behind it, it was whole once, and is damaged. As a group tells
// its place, bytes of a copy of the log that a row holds are not taken for one.

inline constexpr size_t kGroupHeaderBytes = 28;

struct CommandFileHeader {
  uint64_t log_id = 0;
  uint64_t first = 0;
  std::string database{};
};

std::string CommandFileName(uint64_t first);
/// False if it is another kind of file.
bool ParseCommandFileName(const std::string& name, uint64_t* first);

std::string EncodeCommandFileHeader(const CommandFileHeader& header);
/// Takes it off `input`. `Corruption` if it is none.
Status DecodeCommandFileHeader(Slice* input, CommandFileHeader* header);

/// The group of `transactions`, of which the first has the number `first`, for byte `offset` of a
/// file.
std::string EncodeCommandGroup(uint64_t log_id, uint64_t offset, uint64_t first,
                               const std::vector<Slice>& transactions);

using CommandVisitor = std::function<Status(uint64_t number, const Slice& commands)>;

/// What is in a file.
struct CommandFileContent {
  CommandFileHeader header{};
  uint64_t next = 0;  ///< Number of the transaction after its last one.
  uint64_t end = 0;   ///< End of its last whole group, in bytes.
};

/// Reads the header only.
Status ReadCommandFileHeader(const std::string& path, CommandFileHeader* header);

/// Goes through the file and has `visit` called for the transactions from number `from` on; what it
/// answers, unless OK, ends this. `Corruption` names file and offset of damage; in the `last` file
/// of a log a torn end is none, and `content->end` is before it.
Status ReadCommandFile(const std::string& path, bool last, uint64_t from,
                       const CommandVisitor& visit, CommandFileContent* content);

}  // namespace nacre::sqlite
