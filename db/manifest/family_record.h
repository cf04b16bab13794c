#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

/// What the manifest has of a column family other than the default one, whose comparator and levels
/// are those of the database. Options are not stored.
struct FamilyRecord {
  std::string name;
  std::string comparator;
  uint32_t num_levels = 0;

  bool operator==(const FamilyRecord&) const = default;
};

/// Appends length and name, length and comparator, varint32 levels.
void EncodeFamilyRecord(const FamilyRecord& family, std::string* dst);
/// `Corruption` if it is malformed. Safe on any bytes.
Status DecodeFamilyRecord(Slice* input, FamilyRecord* family);

/// Appends varint32 next id, varint32 number of families, and for each varint32 id and record.
void EncodeFamilies(const std::map<uint32_t, FamilyRecord>& families, uint32_t next_family,
                    std::string* dst);
Status DecodeFamilies(Slice* input, std::map<uint32_t, FamilyRecord>* families,
                      uint32_t* next_family);

}  // namespace nacre
