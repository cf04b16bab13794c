#include "sqlite/command_log/command_list.h"

#include "util/coding.h"

namespace nacre::sqlite {
namespace {

bool GetString(Slice* input, std::string* text) {
  Slice bytes;
  if (!GetLengthPrefixedSlice(input, &bytes)) return false;
  *text = bytes.ToString();
  return true;
}

bool GetStrings(Slice* input, std::vector<std::string>* texts) {
  uint32_t count;
  if (!GetVarint32(input, &count) || count > input->size()) return false;
  texts->resize(count);
  for (std::string& text : *texts) {
    if (!GetString(input, &text)) return false;
  }
  return true;
}

bool ReadRest(Slice* input, Command* command) {
  switch (command->kind) {
    case CommandList::Kind::kPut:
      return GetLengthPrefixedSlice(input, &command->primary_key) &&
             GetLengthPrefixedSlice(input, &command->row);
    case CommandList::Kind::kDelete:
      return GetLengthPrefixedSlice(input, &command->primary_key);
    case CommandList::Kind::kCreate:
      return GetStrings(input, &command->arguments);
    case CommandList::Kind::kDrop:
      return true;
    case CommandList::Kind::kRename:
      return GetString(input, &command->name);
  }
  return false;
}

}  // namespace

void CommandList::Begin(Kind kind, const std::string& table) {
  bytes_.push_back(static_cast<char>(kind));
  PutLengthPrefixedSlice(&bytes_, table);
}

void CommandList::Put(const std::string& table, const Slice& primary_key, const Slice& row) {
  Begin(Kind::kPut, table);
  PutLengthPrefixedSlice(&bytes_, primary_key);
  PutLengthPrefixedSlice(&bytes_, row);
}

void CommandList::Delete(const std::string& table, const Slice& primary_key) {
  Begin(Kind::kDelete, table);
  PutLengthPrefixedSlice(&bytes_, primary_key);
}

void CommandList::Create(const std::string& table, const std::vector<std::string>& arguments) {
  Begin(Kind::kCreate, table);
  PutVarint32(&bytes_, static_cast<uint32_t>(arguments.size()));
  for (const std::string& argument : arguments) PutLengthPrefixedSlice(&bytes_, argument);
}

void CommandList::Drop(const std::string& table) { Begin(Kind::kDrop, table); }

void CommandList::Rename(const std::string& table, const std::string& name) {
  Begin(Kind::kRename, table);
  PutLengthPrefixedSlice(&bytes_, name);
}

Status ReadCommand(Slice* input, Command* command) {
  const Status malformed = Status::Corruption("a command of the log is malformed");
  if (input->empty()) return malformed;
  command->kind = static_cast<CommandList::Kind>((*input)[0]);
  input->remove_prefix(1);
  if (!GetString(input, &command->table) || !ReadRest(input, command)) return malformed;
  return Status::OK();
}

}  // namespace nacre::sqlite
