#include "server/store/store.h"

#include <algorithm>

#include "nacre/iterator.h"
#include "server/resp/numbers.h"
#include "server/store/encoding.h"
#include "util/draw_id.h"

namespace nacre::server {
namespace {

constexpr int kNoDatabase = -1;
constexpr const char* kServerFamily = "server";
constexpr const char* kAddressRow = "address";

std::string FamilyName(int number) {
  return number == 0 ? kDefaultColumnFamilyName : "db" + std::to_string(number);
}

/// Which database a family is; false for one that is none.
bool NumberOf(const std::string& family, int databases, int* number) {
  for (*number = 0; *number < databases; ++*number) {
    if (family == FamilyName(*number)) return true;
  }
  return false;
}

}  // namespace

Status Store::Open(const Options& options, const std::string& name, int databases,
                   std::unique_ptr<Store>* store) {
  std::unique_ptr<Store> opened(new Store(RowNames(/*by_slot=*/false), {0, 1}, databases));
  NACRE_RETURN_IF_ERROR(opened->DrawIncarnation());
  opened->family_options_ = options;
  NACRE_RETURN_IF_ERROR(opened->OpenDatabases(options, name));
  *store = std::move(opened);
  return Status::OK();
}

Status Store::Serve(DB* db, SlotRange slots, std::unique_ptr<Store>* store) {
  std::unique_ptr<Store> opened(new Store(RowNames(/*by_slot=*/true), slots, /*databases=*/1));
  NACRE_RETURN_IF_ERROR(opened->DrawIncarnation());
  opened->db_ = db;
  // Where that cannot be found out at the moment, there may be elements.
  if (!opened->Adopt(0, db->DefaultColumnFamily()).ok()) {
    opened->Find(0)->has_elements.store(true, std::memory_order_relaxed);
  }
  *store = std::move(opened);
  return Status::OK();
}

std::unique_ptr<Store> Store::ToRead(DB* db) {
  std::unique_ptr<Store> store(new Store(RowNames(/*by_slot=*/true), {0, kSlots}, /*databases=*/1));
  store->db_ = db;
  auto database = std::make_unique<Database>(/*sections=*/0);
  database->family = db->DefaultColumnFamily();
  const MutexLock lock(&store->mutex_);
  store->databases_[0].store(database.get(), std::memory_order_release);
  store->made_.push_back(std::move(database));
  return store;
}

Status Store::DrawIncarnation() {
  uint64_t incarnation = 0;
  NACRE_RETURN_IF_ERROR(DrawId(&incarnation));
  next_incarnation_.store(incarnation, std::memory_order_relaxed);
  return Status::OK();
}

Status Store::OpenDatabases(const Options& options, const std::string& name) {
  std::vector<std::string> names;
  const Status listed = DB::ListColumnFamilies(options, name, &names);
  if (listed.IsNotFound()) {
    names = {kDefaultColumnFamilyName};
  } else if (!listed.ok()) {
    return listed;
  }
  std::vector<ColumnFamilyDescriptor> families;
  std::vector<int> numbers;
  for (const std::string& family : names) {
    int number = kNoDatabase;
    if (family != kServerFamily && !NumberOf(family, databases(), &number)) {
      return Status::InvalidArgument("database '" + name + "' has the family '" + family +
                                     "', which no database number below " +
                                     std::to_string(databases()) + " stands for");
    }
    numbers.push_back(number);
    families.emplace_back(family, options);
  }
  std::vector<ColumnFamilyHandle*> handles;
  NACRE_RETURN_IF_ERROR(DB::Open(options, name, families, &handles, &owned_));
  db_ = owned_.get();
  Status status;
  for (size_t i = 0; i < handles.size(); ++i) {
    if (numbers[i] == kNoDatabase) {
      const MutexLock lock(&mutex_);
      server_family_ = handles[i];
      continue;
    }
    const Status adopted = Adopt(numbers[i], handles[i]);
    if (status.ok()) status = adopted;
  }
  return status;
}

Store::~Store() { Close().IgnoreError(); }

Status Store::Close() {
  if (db_ == nullptr) return Status::OK();
  const MutexLock lock(&mutex_);
  if (owned_ == nullptr) {
    db_ = nullptr;
    return Status::OK();
  }
  for (const std::unique_ptr<Database>& database : made_) {
    db_->DestroyColumnFamilyHandle(database->family).IgnoreError();
  }
  made_.clear();
  if (server_family_ != nullptr) db_->DestroyColumnFamilyHandle(server_family_).IgnoreError();
  server_family_ = nullptr;
  const Status closed = owned_->Close();
  owned_ = nullptr;
  db_ = nullptr;
  return closed;
}

Status Store::Adopt(int number, ColumnFamilyHandle* family) {
  auto database = std::make_unique<Database>(sections_.size());
  database->family = family;
  const Status status = LookForElements(database.get());
  const MutexLock lock(&mutex_);
  databases_[static_cast<size_t>(number)].store(database.get(), std::memory_order_release);
  made_.push_back(std::move(database));
  return status;
}

Status Store::LookForElements(Database* database) const {
  const std::unique_ptr<Iterator> iterator = db_->NewIterator({}, database->family);
  for (uint32_t section = sections_.first; section < sections_.behind; ++section) {
    iterator->Seek(names_.Kind(section, kElementRow));
    if (!iterator->Valid()) break;
    const std::string_view row = iterator->key().ToStringView();
    if (names_.KindOf(row) == kElementRow) {
      database->has_elements.store(true, std::memory_order_relaxed);
      break;
    }
    // There is nothing in between.
    section = names_.SectionOfRow(row);
  }
  return iterator->status();
}

void Store::SweepBy(int number, uint32_t section, uint64_t unix_ms) {
  std::atomic<uint64_t>& next = Find(number)->sweep_at_ms[section - sections_.first];
  uint64_t at = next.load(std::memory_order_relaxed);
  while (unix_ms < at && !next.compare_exchange_weak(at, unix_ms, std::memory_order_release)) {
  }
}

void Store::Survey(int number) {
  Database* const database = Find(number);
  database->surveyed = true;
  // What becomes visible from here on says so again.
  for (std::atomic<uint64_t>& next : database->sweep_at_ms) {
    next.store(UINT64_MAX, std::memory_order_release);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::unique_ptr<Iterator> iterator = db_->NewIterator({}, database->family);
  for (uint32_t section = sections_.first; section < sections_.behind; ++section) {
    iterator->Seek(names_.Kind(section, kGarbageRow));
    if (!iterator->Valid()) break;
    section = names_.SectionOfRow(iterator->key().ToStringView());
    if (names_.KindOf(iterator->key().ToStringView()) == kGarbageRow) {
      SweepBy(number, section, 0);
      continue;
    }
    const std::string first = names_.Kind(section, kExpiryRow);
    iterator->Seek(first);
    uint64_t expires_at_ms = 0;
    Slice key;
    if (iterator->Valid() && iterator->key().starts_with(first) &&
        names_.DecodeExpiry(iterator->key(), &expires_at_ms, &key)) {
      SweepBy(number, section, expires_at_ms);
    }
  }
  if (iterator->status().ok()) return;
  for (uint32_t section = sections_.first; section < sections_.behind; ++section) {
    SweepBy(number, section, 0);
  }
}

Status Store::Announce(const std::string& address, bool first) {
  const MutexLock lock(&mutex_);
  if (server_family_ == nullptr) {
    if (!first) return Status::OK();
    NACRE_RETURN_IF_ERROR(db_->CreateColumnFamily(family_options_, kServerFamily, &server_family_));
  }
  WriteOptions durable;
  durable.sync = true;
  return db_->Put(durable, server_family_, kAddressRow, address);
}

Status Store::CheckOwned() const {
  // A read needs the owner's lease, whatever it finds.
  PinnableSlice value;
  const Status status = db_->Get({}, db_->DefaultColumnFamily(), Slice(), &value);
  return status.IsFenced() ? status : Status::OK();
}

AnnouncedAddress::~AnnouncedAddress() {
  for (ColumnFamilyHandle* const handle : handles_) {
    follower_->DestroyColumnFamilyHandle(handle).IgnoreError();
  }
}

Status AnnouncedAddress::Read(std::string* address) {
  if (follower_ == nullptr) {
    const std::vector<ColumnFamilyDescriptor> families = {{kDefaultColumnFamilyName, options_},
                                                          {kServerFamily, options_}};
    NACRE_RETURN_IF_ERROR(DB::OpenAsSecondary(options_, name_, families, &handles_, &follower_));
  }
  return follower_->Get({}, handles_[1], kAddressRow, address);
}

Status Store::Make(int number) {
  if (Find(number) != nullptr) return Status::OK();
  ColumnFamilyHandle* family = nullptr;
  const Status made = db_->CreateColumnFamily(family_options_, FamilyName(number), &family);
  if (made.ok()) return Adopt(number, family);
  // Another loop may have been faster.
  return Find(number) != nullptr ? Status::OK() : made;
}

}  // namespace nacre::server
