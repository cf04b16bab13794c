#include "db/manifest/family_record.h"

#include "util/coding.h"

namespace nacre {
namespace {

constexpr uint32_t kMaxFamilyLevels = 256;

Status MalformedFamily(const char* what) {
  return Status::Corruption(std::string("column family: malformed ") + what);
}

}  // namespace

void EncodeFamilyRecord(const FamilyRecord& family, std::string* dst) {
  PutLengthPrefixedSlice(dst, family.name);
  PutLengthPrefixedSlice(dst, family.comparator);
  PutVarint32(dst, family.num_levels);
}

Status DecodeFamilyRecord(Slice* input, FamilyRecord* family) {
  Slice name;
  Slice comparator;
  if (!GetLengthPrefixedSlice(input, &name) || name.empty()) return MalformedFamily("name");
  if (!GetLengthPrefixedSlice(input, &comparator)) return MalformedFamily("comparator");
  if (!GetVarint32(input, &family->num_levels) || family->num_levels == 0 ||
      family->num_levels > kMaxFamilyLevels) {
    return MalformedFamily("number of levels");
  }
  family->name = name.ToString();
  family->comparator = comparator.ToString();
  return Status::OK();
}

void EncodeFamilies(const std::map<uint32_t, FamilyRecord>& families, uint32_t next_family,
                    std::string* dst) {
  PutVarint32(dst, next_family);
  PutVarint32(dst, static_cast<uint32_t>(families.size()));
  for (const auto& [id, family] : families) {
    PutVarint32(dst, id);
    EncodeFamilyRecord(family, dst);
  }
}

Status DecodeFamilies(Slice* input, std::map<uint32_t, FamilyRecord>* families,
                      uint32_t* next_family) {
  uint32_t count = 0;
  families->clear();
  if (!GetVarint32(input, next_family) || !GetVarint32(input, &count)) {
    return MalformedFamily("number");
  }
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t id = 0;
    if (!GetVarint32(input, &id) || id == 0 || id >= *next_family) return MalformedFamily("id");
    FamilyRecord family;
    NACRE_RETURN_IF_ERROR(DecodeFamilyRecord(input, &family));
    if (!families->emplace(id, std::move(family)).second) return MalformedFamily("id");
  }
  return Status::OK();
}

}  // namespace nacre
