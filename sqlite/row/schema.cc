#include "sqlite/row/schema.h"

#include <utility>

namespace nacre::sqlite {
namespace {

KeySpace MakeKeySpace(const Declaration& declaration, uint32_t space, bool unique,
                      const std::vector<KeyColumn>& columns) {
  KeySpace keys;
  keys.space = space;
  keys.unique = unique;
  for (const KeyColumn& declared : columns) {
    const ColumnDeclaration& column = declaration.columns[static_cast<size_t>(declared.column)];
    const Collation collation = declared.collation.value_or(column.collation);
    keys.parts.push_back({declared.column, column.affinity, collation,
                          IsExact(column.affinity, collation), declared.descending});
  }
  if (columns.empty()) {
    keys.parts.push_back({kRowNumber, Affinity::kInteger, Collation::kBinary, true, false});
  }
  return keys;
}

}  // namespace

Schema::Schema(std::string table_name, Declaration table_declaration,
               const std::vector<uint32_t>& spaces)
    : name(std::move(table_name)), declaration(std::move(table_declaration)) {
  has_rowid_ = declaration.HasRowid();
  primary = MakeKeySpace(declaration, spaces[0], true, declaration.primary_key);
  for (size_t i = 0; i < declaration.indexes.size(); ++i) {
    const IndexDeclaration& index = declaration.indexes[i];
    indexes.push_back(MakeKeySpace(declaration, spaces[i + 1], index.unique, index.columns));
  }
  key_place.assign(declaration.columns.size(), -1);
  slot.assign(declaration.columns.size(), -1);
  for (size_t place = 0; place < primary.parts.size(); ++place) {
    const KeyPart& part = primary.parts[place];
    if (part.column != kRowNumber && part.exact) {
      key_place[static_cast<size_t>(part.column)] = static_cast<int>(place);
    }
  }
  for (size_t column = 0; column < slot.size(); ++column) {
    if (key_place[column] < 0) slot[column] = slots++;
  }
}

std::vector<uint32_t> Schema::Spaces() const {
  std::vector<uint32_t> spaces = {primary.space};
  for (const KeySpace& index : indexes) spaces.push_back(index.space);
  return spaces;
}

}  // namespace nacre::sqlite
