#include "sqlite/catalogue.h"

#include <algorithm>
#include <cctype>

#include "util/coding.h"

namespace nacre::sqlite {
namespace {

constexpr char kVersion = 2;

std::string KeyOf(const std::string& name, char kind = 't') {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return CatalogueKey(kind, lower);
}

}  // namespace

Status DecodeTable(const Slice& value, TableRecord* record) {
  const Status malformed = Status::Corruption("catalogue: a table's record is malformed");
  Slice input = value;
  if (input.empty() || input[0] != kVersion) return malformed;
  input.remove_prefix(1);
  uint32_t count;
  if (!GetVarint32(&input, &count) || count > input.size()) return malformed;
  record->spaces.resize(count);
  for (uint32_t& space : record->spaces) {
    if (!GetVarint32(&input, &space)) return malformed;
  }
  record->signature = input.ToString();
  return count == 0 ? malformed : Status::OK();
}

Status FindTable(const ReadView& view, const std::string& name, TableRecord* record) {
  PinnableSlice value;
  NACRE_RETURN_IF_ERROR(view.Get(KeyOf(name), &value));
  return DecodeTable(value, record).WithContext(name);
}

void AddTable(Transaction* transaction, const std::string& name, const TableRecord& record) {
  std::string value(1, kVersion);
  PutVarint32(&value, static_cast<uint32_t>(record.spaces.size()));
  for (uint32_t space : record.spaces) PutVarint32(&value, space);
  transaction->Put(KeyOf(name), value.append(record.signature));
}

void RemoveTable(Transaction* transaction, const std::string& name) {
  transaction->Delete(KeyOf(name));
}

Status FindDeclaration(const ReadView& view, const std::string& name,
                       std::vector<std::string>* arguments) {
  PinnableSlice value;
  NACRE_RETURN_IF_ERROR(view.Get(KeyOf(name, 'a'), &value));
  Slice input = value;
  arguments->clear();
  while (!input.empty()) {
    Slice argument;
    if (!GetLengthPrefixedSlice(&input, &argument)) {
      return Status::Corruption("catalogue: the declaration of " + name + " is malformed");
    }
    arguments->push_back(argument.ToString());
  }
  return Status::OK();
}

void AddDeclaration(Transaction* transaction, const std::string& name,
                    const std::vector<std::string>& arguments) {
  std::string value;
  for (const std::string& argument : arguments) PutLengthPrefixedSlice(&value, argument);
  transaction->Put(KeyOf(name, 'a'), value);
}

void RemoveDeclaration(Transaction* transaction, const std::string& name) {
  transaction->Delete(KeyOf(name, 'a'));
}

}  // namespace nacre::sqlite
