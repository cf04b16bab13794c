#include "sharding/members/shared_families.h"

#include <chrono>

#include "nacre/compaction_filter.h"
#include "nacre/convenience.h"
#include "nacre/merge_operator.h"
#include "nacre/slice_transform.h"
#include "sharding/members/keyspace_member.h"
#include "sharding/remote/member_codec.h"

namespace nacre {
namespace {

constexpr std::chrono::milliseconds kPause(1);

template <typename Operator>
std::string NameOf(const Operator& operation) {
  return operation == nullptr ? "none" : operation->Name();
}

/// No text tells which operators a family has.
Status CheckOperators(const ColumnFamilyOptions& of_default, const ColumnFamilyDescriptor& family) {
  const auto check = [&](const char* what, const auto& here, const auto& there) {
    const std::string here_name = NameOf(here);
    const std::string there_name = NameOf(there);
    if (here_name == there_name) return Status::OK();
    return Status::NotSupported("column family " + family.name + ": its " + what + " is " +
                                here_name + ", that of the default family " + there_name +
                                ": other members would not know it");
  };
  const ColumnFamilyOptions& options = family.options;
  NACRE_RETURN_IF_ERROR(check("merge_operator", options.merge_operator, of_default.merge_operator));
  NACRE_RETURN_IF_ERROR(
      check("prefix_extractor", options.prefix_extractor, of_default.prefix_extractor));
  return check("compaction_filter", options.compaction_filter, of_default.compaction_filter);
}

}  // namespace

Status SharedFamilies::Await(const std::string& family, bool there) const {
  const Deadline deadline =
      Deadline::After(context_.clock, context_.opener->options().operation_timeout);
  while (context_.views->latest()->map.HasFamily(family) != there) {
    if (deadline.Expired()) {
      return Status::TimedOut("the coordinator does not tell of column family " + family);
    }
    context_.clock->SleepFor(kPause);
  }
  return Status::OK();
}

Status SharedFamilies::Make(const std::vector<ColumnFamilyDescriptor>& families,
                            std::vector<ColumnFamilyHandle*>* handles) {
  FamilyOptions made;
  for (const ColumnFamilyDescriptor& family : families) {
    const ShardedOptions& of_default = context_.opener->options();
    NACRE_RETURN_IF_ERROR(CheckNewFamily(of_default.comparator, family));
    NACRE_RETURN_IF_ERROR(CheckOperators(of_default, family));
    std::string text;
    NACRE_RETURN_IF_ERROR(GetStringFromColumnFamilyOptions({}, family.options, &text));
    if (!made.emplace(family.name, std::move(text)).second) {
      return Status::InvalidArgument("column family " + family.name + " is named twice");
    }
  }
  NACRE_RETURN_IF_ERROR(context_.member->AskLeader(MakeFamiliesRequest(made)));
  for (const ColumnFamilyDescriptor& family : families) {
    NACRE_RETURN_IF_ERROR(Await(family.name, /*there=*/true));
  }
  Follow();
  std::vector<std::unique_ptr<ColumnFamilyHandle>> found;
  for (const ColumnFamilyDescriptor& family : families) {
    found.push_back(context_.families->NewHandle(family.name));
    if (found.back() != nullptr) continue;
    return Status::Aborted("column family " + family.name + " was dropped meanwhile");
  }
  for (auto& handle : found) handles->push_back(handle.release());
  return Status::OK();
}

Status SharedFamilies::MakeMissing() {
  Follow();
  std::vector<ColumnFamilyDescriptor> missing;
  for (const ColumnFamilyDescriptor& family : context_.opener->families()) {
    if (!context_.families->Has(family.name)) missing.push_back(family);
  }
  if (missing.empty()) return Status::OK();
  std::vector<ColumnFamilyHandle*> handles;
  const Status status = Make(missing, &handles);
  for (ColumnFamilyHandle* const handle : handles) delete handle;
  if (!status.IsInvalidArgument()) return status;
  // Another member may have made them meanwhile.
  for (const ColumnFamilyDescriptor& family : missing) {
    if (!Await(family.name, /*there=*/true).ok()) return status;
  }
  Follow();
  return Status::OK();
}

Status SharedFamilies::Drop(const std::vector<const ShardedFamily*>& families) {
  std::vector<std::string> names;
  for (const ShardedFamily* const family : families) names.push_back(family->name());
  NACRE_RETURN_IF_ERROR(context_.member->AskLeader(DropFamiliesRequest(names)));
  for (const std::string& name : names) NACRE_RETURN_IF_ERROR(Await(name, /*there=*/false));
  Follow();
  return Status::OK();
}

}  // namespace nacre
