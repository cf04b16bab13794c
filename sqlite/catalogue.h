#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "sqlite/transaction.h"

namespace nacre::sqlite {

/// What a database knows of a table, under its name in lower case; see Database for the key:
///
///     u8       2, the version of this format
///     varint   n, then n varints: the spaces, that of the clustered rows first
///     bytes    Declaration::Signature
struct TableRecord {
  std::vector<uint32_t> spaces;
  std::string signature;
};

/// Decodes what the catalogue has of it. `Corruption` if that is malformed.
Status DecodeTable(const Slice& value, TableRecord* record);

/// `NotFound` if there is no such table. `Corruption` if the record is malformed.
Status FindTable(const ReadView& view, const std::string& name, TableRecord* record);
void AddTable(Transaction* transaction, const std::string& name, const TableRecord& record);
void RemoveTable(Transaction* transaction, const std::string& name);

/// The arguments that a table was declared with, but for options: what is needed to use it without
/// a connection of SQLite. Each as varint, bytes.
Status FindDeclaration(const ReadView& view, const std::string& name,
                       std::vector<std::string>* arguments);
void AddDeclaration(Transaction* transaction, const std::string& name,
                    const std::vector<std::string>& arguments);
void RemoveDeclaration(Transaction* transaction, const std::string& name);

}  // namespace nacre::sqlite
