#include "console/key_browser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nacre/iterator.h"
#include "util/json_text.h"

namespace nacre::console {
namespace {

std::string HexOf(const std::string& bytes) {
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Beginning(const Slice& bytes, size_t size_max) {
  return {bytes.data(), std::min(bytes.size(), size_max)};
}

}  // namespace

/// A database that is open, and when it was last looked into.
struct KeyBrowser::Open {
  ~Open() {
    for (ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle).IgnoreError();
  }
  std::unique_ptr<DB> db;
  std::vector<ColumnFamilyHandle*> handles;
  uint64_t used_nanos = 0;
};

std::string KeyPageJson(const KeyPage& page) {
  std::string families;
  for (const std::string& family : page.families) {
    families += (families.empty() ? "" : ", ") + JsonString(family);
  }
  std::string rows;
  for (const KeyRow& row : page.rows) {
    rows += fmt::format(
        "{}{{\"key\": \"{}\", \"key_bytes\": {}, \"value\": \"{}\", \"value_bytes\": {}}}",
        rows.empty() ? "" : ",\n", HexOf(row.key), row.key_bytes, HexOf(row.value),
        row.value_bytes);
  }
  const std::string next = page.next.has_value() ? '"' + HexOf(*page.next) + '"' : "null";
  return fmt::format("{{\"families\": [{}],\n\"rows\": [{}],\n\"next\": {}}}\n", families, rows,
                     next);
}

Status BytesOfHex(const std::string& hex, std::string* bytes) {
  bytes->clear();
  const Status malformed =
      Status::InvalidArgument(fmt::format("'{}' is no even number of hexadecimal digits", hex));
  if (hex.size() % 2 != 0) return malformed;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = DigitOf(hex[i]);
    const int low = DigitOf(hex[i + 1]);
    if (high < 0 || low < 0) return malformed;
    *bytes += static_cast<char>(high * 16 + low);
  }
  return Status::OK();
}

KeyBrowser::KeyBrowser(std::string pool_uri, Clock* clock)
    : pool_uri_(std::move(pool_uri)), clock_(clock) {}

KeyBrowser::~KeyBrowser() = default;

size_t KeyBrowser::open_count() const {
  MutexLock lock(&mutex_);
  return open_.size();
}

void KeyBrowser::CloseIdle() {
  if (!mutex_.TryLock()) return;
  const uint64_t idle_nanos = static_cast<uint64_t>(std::chrono::nanoseconds(kIdle).count());
  std::erase_if(open_, [&](const auto& each) {
    return clock_->NowNanos() - each.second->used_nanos >= idle_nanos;
  });
  if (open_.empty()) pool_.reset();
  mutex_.Unlock();
}

void KeyBrowser::CloseLeastUsedLocked() {
  const auto least = std::min_element(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
    return a.second->used_nanos < b.second->used_nanos;
  });
  if (least != open_.end()) open_.erase(least);
}

Status KeyBrowser::OpenLocked(const std::string& name, Open** open) {
  if (const auto known = open_.find(name); known != open_.end()) {
    // It sees what its owner has acknowledged until now, or else what there was.
    const Status caught_up = known->second->db->TryCatchUpWithPrimary();
    if (caught_up.ok()) {
      *open = known->second.get();
      return caught_up;
    }
    open_.erase(known);
    if (caught_up.IsAborted()) return Status::NotFound("there is no database '" + name + "'");
  }
  if (pool_ == nullptr) {
    // As few as there can be: its reads are few.
    PoolOptions options;
    options.max_queue_pairs_per_node = 2;
    NACRE_RETURN_IF_ERROR(Pool::Open(pool_uri_, options, &pool_));
  }
  Options options;
  options.pool = pool_;
  std::vector<std::string> families;
  NACRE_RETURN_IF_ERROR(DB::ListColumnFamilies(options, name, &families));
  std::vector<ColumnFamilyDescriptor> descriptors;
  for (const std::string& family : families) descriptors.emplace_back(family, options);
  auto opened = std::make_unique<Open>();
  NACRE_RETURN_IF_ERROR(
      DB::OpenAsSecondary(options, name, descriptors, &opened->handles, &opened->db));
  while (open_.size() >= kOpenMax) CloseLeastUsedLocked();
  *open = opened.get();
  open_[name] = std::move(opened);
  return Status::OK();
}

Status KeyBrowser::Look(const KeyQuery& query, KeyPage* page) {
  *page = KeyPage();
  if (query.limit < 1 || query.limit > kRowsMax) {
    return Status::InvalidArgument(fmt::format("limit must be 1 to {}", kRowsMax));
  }
  if (lookers_.fetch_add(1, std::memory_order_relaxed) >= kLookersMax) {
    lookers_.fetch_sub(1, std::memory_order_relaxed);
    return Status::Busy("too many look at keys already; try again in a moment");
  }
  Status status;
  {
    MutexLock lock(&mutex_);
    status = LookLocked(query, page);
  }
  lookers_.fetch_sub(1, std::memory_order_relaxed);
  return status;
}

Status KeyBrowser::LookLocked(const KeyQuery& query, KeyPage* page) {
  Open* open = nullptr;
  NACRE_RETURN_IF_ERROR(OpenLocked(query.database, &open));
  open->used_nanos = clock_->NowNanos();
  ColumnFamilyHandle* family = nullptr;
  for (ColumnFamilyHandle* handle : open->handles) {
    page->families.push_back(handle->GetName());
    if (handle->GetName() == query.family) family = handle;
  }
  if (family == nullptr) {
    return Status::NotFound(
        fmt::format("database '{}' has no family '{}'", query.database, query.family));
  }
  const std::unique_ptr<Iterator> keys(open->db->NewIterator({}, family));
  for (keys->Seek(std::max(query.from, query.prefix)); keys->Valid(); keys->Next()) {
    const Slice key = keys->key();
    if (!key.starts_with(query.prefix)) break;
    if (page->rows.size() == query.limit) {
      page->next = key.ToString();
      break;
    }
    page->rows.push_back({.key = Beginning(key, kKeyBytesMax),
                          .value = Beginning(keys->value(), kValueBytesMax),
                          .key_bytes = key.size(),
                          .value_bytes = keys->value().size()});
  }
  return keys->status();
}

}  // namespace nacre::console
