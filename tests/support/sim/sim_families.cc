#include "tests/support/sim/sim_families.h"

#include <algorithm>

namespace nacre::sim {

namespace {

constexpr const char* kNames[] = {"a", "b", "c"};

}  // namespace

bool FamilyModel::BeginCreate(uint32_t owner, uint32_t* number, std::string* name) {
  ++moment_;
  for (const char* const each : kNames) {
    const auto last = std::find_if(families_.rbegin(), families_.rend(),
                                   [=](const Family& family) { return family.name == each; });
    const bool again = last != families_.rend() && last->owner == owner && last->there_from == 0 &&
                       last->gone_from == 0 && !last->drop_begun;
    if (last != families_.rend() && last->gone_from == 0 && !again) continue;
    *name = each;
    *number = static_cast<uint32_t>(again ? families_.rend() - last - 1 : families_.size());
    if (!again) families_.push_back({.name = each, .owner = owner});
    return true;
  }
  return false;
}

void FamilyModel::EndCreate(uint32_t number) { families_[number].there_from = ++moment_; }

void FamilyModel::BeginDrop(uint32_t owner, uint32_t number) {
  ++moment_;
  families_[number].owner = owner;
  families_[number].drop_begun = true;
}

void FamilyModel::EndDrop(uint32_t number) { families_[number].gone_from = ++moment_; }

std::vector<uint32_t> FamilyModel::NumbersOf(const std::vector<std::string>& names) {
  std::vector<uint32_t> numbers;
  for (const std::string& name : names) {
    const auto last = std::find_if(families_.rbegin(), families_.rend(),
                                   [&](const Family& family) { return family.name == name; });
    if (last == families_.rend()) scheduler_->Fail("nobody has made a family " + name);
    numbers.push_back(static_cast<uint32_t>(families_.rend() - last - 1));
  }
  return numbers;
}

void FamilyModel::Opened(const std::vector<uint32_t>& numbers, uint64_t begun,
                         const std::function<bool(uint32_t)>& quiescent) {
  ++moment_;
  for (uint32_t number = 0; number < families_.size(); ++number) {
    const bool there = std::find(numbers.begin(), numbers.end(), number) != numbers.end();
    Judge(there, begun, quiescent(families_[number].owner), &families_[number]);
  }
}

void FamilyModel::Judge(bool there, uint64_t begun, bool quiescent, Family* family) {
  if (there) {
    if (family->gone_from != 0 && family->gone_from <= begun) {
      scheduler_->Fail("family " + family->name + " was dropped, and is there again");
    }
    if (family->there_from == 0) family->there_from = moment_;
    return;
  }
  const bool had_to_be = family->there_from != 0 && family->there_from <= begun;
  if (had_to_be && !family->drop_begun) {
    scheduler_->Fail("family " + family->name + " is not there any more");
  }
  if (quiescent && family->gone_from == 0) family->gone_from = moment_;
}

Status ListExtraFamilies(const Options& options, const std::string& name,
                         std::vector<std::string>* names) {
  NACRE_RETURN_IF_ERROR(DB::ListColumnFamilies(options, name, names));
  std::erase_if(*names, [](const std::string& each) {
    return each == kDefaultColumnFamilyName || each == FamilyModel::kOther;
  });
  return Status::OK();
}

std::vector<ColumnFamilyDescriptor> DescriptorsOf(const std::vector<std::string>& names,
                                                  const Options& options) {
  std::vector<ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : names) descriptors.emplace_back(name, options);
  descriptors.emplace_back(FamilyModel::kOther, options);
  descriptors.emplace_back(kDefaultColumnFamilyName, options);
  return descriptors;
}

FamilyHandle TakeHandle(DB* db, ColumnFamilyHandle* handle) {
  return {handle,
          [db](ColumnFamilyHandle* last) { db->DestroyColumnFamilyHandle(last).IgnoreError(); }};
}

OpenDatabase TakeHandles(DB* db, const std::vector<uint32_t>& numbers,
                         const std::vector<ColumnFamilyHandle*>& handles) {
  OpenDatabase opened{.db = db, .other = nullptr, .extras = {}};
  std::vector<FamilyHandle> taken;
  for (ColumnFamilyHandle* const handle : handles) taken.push_back(TakeHandle(db, handle));
  for (size_t i = 0; i < numbers.size(); ++i) opened.extras.emplace_back(numbers[i], taken[i]);
  opened.other = taken[numbers.size()];
  return opened;
}

}  // namespace nacre::sim
