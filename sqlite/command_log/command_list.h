#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre::sqlite {

/// What a transaction has done, as the command log has it: for each row what xUpdate decided, that
/// is the table, the operation and the stored row with its number, and which tables were made,
/// dropped and renamed. Not the text of the statements, whose random(), date('now'), chosen row
/// numbers and conflict clauses might come out otherwise a second time; nor keys and values of the
/// database, which have the entries of all indexes besides. One command after the other:
///
///     u8             kind
///     varint, bytes  name of the table
///     kPut           varint, bytes: encoded primary key; varint, bytes: the row
///     kDelete        varint, bytes: encoded primary key
///     kCreate        varint n, then n times varint, bytes: the arguments of its declaration
///     kDrop
///     kRename        varint, bytes: the new name
///
/// Thread safety: none.
class CommandList {
 public:
  enum class Kind : uint8_t { kPut = 1, kDelete = 2, kCreate = 3, kDrop = 4, kRename = 5 };

  /// The row is there with these values now, whatever was there under its primary key.
  void Put(const std::string& table, const Slice& primary_key, const Slice& row);
  void Delete(const std::string& table, const Slice& primary_key);
  void Create(const std::string& table, const std::vector<std::string>& arguments);
  void Drop(const std::string& table);
  void Rename(const std::string& table, const std::string& name);

  const std::string& bytes() const { return bytes_; }
  void Clear() { bytes_.clear(); }
  /// What was added since there were `size` bytes goes.
  void UndoTo(size_t size) { bytes_.resize(size); }

 private:
  void Begin(Kind kind, const std::string& table);

  std::string bytes_;
};

/// A command, of which the kind tells what there is. Views of the list's bytes.
struct Command {
  CommandList::Kind kind = CommandList::Kind::kPut;
  std::string table{};
  Slice primary_key{};
  Slice row{};
  std::vector<std::string> arguments{};
  std::string name{};
};

/// Takes the first command off `input`. `Corruption` if it is malformed.
Status ReadCommand(Slice* input, Command* command);

}  // namespace nacre::sqlite
