#include "db/family/column_family.h"

#include <algorithm>

namespace nacre {

std::shared_ptr<ReadView> ColumnFamily::NewView() const {
  auto view = std::make_shared<ReadView>();
  view->comparator = comparator_;
  view->options = options_;
  view->rules = rules_;
  return view;
}

void ColumnFamily::SetOptions(const ColumnFamilyOptions& options) {
  set_options_.push_back(std::make_unique<const ColumnFamilyOptions>(options));
  current_options_.store(set_options_.back().get(), std::memory_order_release);
}

std::shared_ptr<const ReadView> ColumnFamily::InstallView(
    std::vector<std::shared_ptr<MemTable>> memtables, std::shared_ptr<const Version> version) {
  std::shared_ptr<ReadView> view = NewView();
  view->memtables = std::move(memtables);
  view->version = std::move(version);
  view_.store(view.get(), std::memory_order_release);  // Pairs with the readers' loads.
  std::shared_ptr<const ReadView> before = std::move(current_view_);
  current_view_ = std::move(view);
  return before;
}

std::vector<std::shared_ptr<MemTable>> ColumnFamily::MemTablesWith(
    std::shared_ptr<MemTable> memtable) const {
  std::vector<std::shared_ptr<MemTable>> memtables = current_view_->memtables;
  // Numbers of generations wrap, and only a few of them are at work.
  const auto older = std::find_if(memtables.begin(), memtables.end(), [&](const auto& other) {
    return static_cast<int16_t>(memtable->generation() - other->generation()) > 0;
  });
  memtables.insert(older, std::move(memtable));
  return memtables;
}

std::vector<std::shared_ptr<MemTable>> ColumnFamily::MemTablesWithout(uint16_t generation) const {
  std::vector<std::shared_ptr<MemTable>> memtables = current_view_->memtables;
  std::erase_if(memtables,
                [&](const auto& memtable) { return memtable->generation() == generation; });
  return memtables;
}

std::shared_ptr<MemTable> ColumnFamily::HoldMemTable(uint16_t generation) const {
  for (const auto& memtable : current_view_->memtables) {
    if (memtable->generation() == generation) return memtable;
  }
  return nullptr;
}

ColumnFamily* ColumnFamilySet::Find(const std::string& name) const {
  for (const auto& [id, family] : by_id) {
    if (family->name() == name) return family.get();
  }
  return nullptr;
}

std::map<uint32_t, FamilyRecord> RecordsOf(const ColumnFamilySet& families) {
  std::map<uint32_t, FamilyRecord> records;
  for (const auto& [id, family] : families.by_id) {
    if (id == 0) continue;
    records[id] = {.name = family->name(),
                   .comparator = family->user_comparator()->Name(),
                   .num_levels = family->num_levels()};
  }
  return records;
}

Status ColumnFamilyHandleImpl::GetDescriptor(ColumnFamilyDescriptor* descriptor) {
  *descriptor = ColumnFamilyDescriptor(family_->name(), family_->options());
  return Status::OK();
}

}  // namespace nacre
