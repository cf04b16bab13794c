#include "tests/support/manifest_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pool/databases.h"
#include "pool/read/pool_reader.h"
#include "tests/support/status_assert.h"
#include "util/coding.h"

namespace nacre {

ManifestPool::ManifestPool(int copies, const TestPoolOptions& options)
    : ManifestPool(copies, OpenTestPool(options), options.slab_bytes) {}

ManifestPool::ManifestPool(int copies, std::shared_ptr<pool::PoolImpl> pool, uint64_t slab_bytes)
    : copies_(copies), pool_(std::move(pool)) {
  pool::DatabaseLease lease;
  EXPECT_TRUE(IsOk(client()->databases()->Open("manifest", {.create_if_missing = true}, &lease)));
  database_id_ = lease.database_id;
  constexpr uint64_t kChunkBytes = 16 << 10;
  space_ = std::make_unique<pool::SpaceAllocator>(client(), database_id_, slab_bytes, kChunkBytes);
}

Status ManifestPool::ReserveReplicas(uint64_t bytes, std::vector<ExtentAddr>* copies) {
  if (on_reserve != nullptr) on_reserve();
  if (const Status s = std::exchange(next_reserve, Status::OK()); !s.ok()) return s;
  Placement placement;
  Status s;
  for (int n = std::min(copies_, client()->alive_count()); n > 0; --n) {
    placement = Placement();
    s = space_->Reserve(Redundancy::Copies(n), bytes, kNoNode, &placement);
    if (s.ok()) break;
  }
  NACRE_RETURN_IF_ERROR(s);
  *copies = placement.fragments;
  copies_in_use_ += copies->size();
  return Status::OK();
}

void ManifestPool::FreeReplicas(const std::vector<ExtentAddr>& copies) {
  copies_in_use_ -= copies.size();
  for (const ExtentAddr& copy : copies) space_->Free(copy);
}

Status ManifestPool::PublishRoot(const std::string& value) {
  const Status s = std::exchange(next_publish, Status::OK());
  if (s.ok() || publish_though_failed) root_ = value;
  publish_though_failed = false;
  return s;
}

ManifestLogOptions ManifestPool::LogOptions() {
  ManifestLogOptions options;
  options.client = client();
  options.clock = Clock::System();
  options.database_id = database_id_;
  options.epoch = ++epoch_;
  options.image_interval = std::chrono::hours(1);
  options.image_edits = UINT64_MAX;
  return options;
}

ManifestState ManifestPool::InitialState() const {
  ManifestState state;
  state.comparator = "leveldb.BytewiseComparator";
  state.num_levels = 7;
  state.slab_bytes = 1 << 20;
  state.database_id = database_id_;
  for (int i = 0; i < client()->node_count(); ++i) {
    state.nodes[static_cast<NodeId>(i)] = client()->instance_id(static_cast<NodeId>(i));
  }
  return state;
}

std::string ManifestPool::ReadCopy(const ExtentAddr& copy, uint64_t offset, size_t n) {
  std::string bytes(n, '\0');
  std::unique_ptr<pool::PoolReader> reader;
  EXPECT_TRUE(IsOk(pool::PoolReader::Open(client()->fabric(), &reader)));
  EXPECT_TRUE(IsOk(reader->Read(copy, offset, n, bytes.data())));
  return bytes;
}

void ManifestPool::WriteCopy(const ExtentAddr& copy, uint64_t offset, const std::string& bytes) {
  constexpr uint64_t kMostBytes = 1 << 20;
  if (buffer_ == nullptr) {
    ASSERT_TRUE(IsOk(pool::AllocateBuffer(client()->fabric(), kMostBytes, &buffer_)));
  }
  const uint64_t key = uint64_t{copy.start.node} << 48 | copy.start.offset;
  std::unique_ptr<pool::MirroredExtent>& extent = extents_[key];
  if (extent == nullptr) {
    ASSERT_TRUE(IsOk(pool::MirroredExtent::Open(client()->fabric(), {copy}, &extent)));
  }
  ASSERT_LE(bytes.size(), kMostBytes);
  std::memcpy(buffer_->data(), bytes.data(), bytes.size());
  uint64_t ticket = 0;
  ASSERT_TRUE(IsOk(extent->Write(offset,
                                 {.data = buffer_->data(),
                                  .size = static_cast<uint32_t>(bytes.size()),
                                  .region = buffer_.get()},
                                 &ticket)));
  ASSERT_TRUE(
      IsOk(extent->Await(ticket, Deadline::After(Clock::System(), std::chrono::seconds(10)))));
}

void ManifestPool::Flip(const ExtentAddr& copy, uint64_t offset, char mask) {
  std::string byte = ReadCopy(copy, offset, 1);
  byte[0] = static_cast<char>(byte[0] ^ mask);
  WriteCopy(copy, offset, byte);
}

TableMeta RandomTableMeta(Random* random, uint64_t id, size_t key_bytes, int fragments) {
  TableMeta meta;
  meta.id = id;
  meta.database_id = random->Next();
  meta.level = static_cast<uint32_t>(random->Uniform(7));
  meta.manifest_version = random->Skewed(40);
  meta.placement.redundancy = Redundancy::Copies(fragments);
  for (int i = 0; i < fragments; ++i) {
    ExtentAddr& extent = meta.placement.fragments.emplace_back();
    extent.start.node = random->Uniform(10);
    extent.start.offset = random->Uniform(uint64_t{1} << 40);
    extent.length = 1 + random->Skewed(40);
  }
  meta.comparator = "leveldb.BytewiseComparator";
  std::string key(random->Uniform(key_bytes + 1), '\0');
  for (char& byte : key) byte = static_cast<char>(random->Next());
  AppendInternalKey(&meta.smallest, key, PackTag(random->Skewed(40), ValueType::kValue));
  AppendInternalKey(&meta.largest, key + "z", PackTag(random->Skewed(40), ValueType::kDeletion));
  meta.entries = 3 + random->Skewed(40);
  meta.chunk_size = 256 << 10;
  meta.placement.chunk_size = meta.chunk_size;
  meta.records.length = 64 + random->Skewed(30);
  meta.size = meta.records.length + 4096;
  return meta;
}

LogSegment RandomLogSegment(Random* random, uint64_t number) {
  LogSegment segment;
  segment.number = number;
  segment.kept = random->OneIn(2);
  segment.copies.resize(1 + random->Uniform(4));
  for (ExtentAddr& copy : segment.copies) {
    copy.start.node = random->Uniform(10);
    copy.start.offset = random->Uniform(uint64_t{1} << 40);
    copy.length = 1 << 20;
  }
  return segment;
}

namespace {

/// A family of `state`, or one made by `edit`; never `but`.
uint32_t RandomFamily(Random* random, const ManifestState& state, const ManifestEdit& edit,
                      uint32_t but) {
  std::vector<uint32_t> ids = {0};
  for (const auto& [id, family] : state.families) ids.push_back(id);
  for (const auto& [id, family] : edit.families_added) ids.push_back(id);
  std::erase(ids, but);
  return ids.empty() ? 0 : ids[random->Uniform(ids.size())];
}

/// Has the edit make a family, and drop another one with all its tables. Answers which; 0: none.
uint32_t ChangeFamilies(Random* random, const ManifestState& state, ManifestEdit* edit) {
  if (random->OneIn(12)) {
    edit->families_added[state.next_family + static_cast<uint32_t>(random->Uniform(2))] = {
        .name = "family " + std::to_string(random->Next()),
        .comparator = "leveldb.BytewiseComparator",
        .num_levels = state.num_levels};
  }
  if (state.families.empty() || !random->OneIn(20)) return 0;
  auto it = state.families.begin();
  std::advance(it, random->Uniform(state.families.size()));
  edit->families_dropped.push_back(it->first);
  for (const auto& [id, table] : state.tables) {
    if (table.second.family == it->first) edit->removed.push_back(id);
  }
  return it->first;
}

}  // namespace

ManifestEdit RandomManifestEdit(Random* random, const ManifestState& state, size_t key_bytes) {
  ManifestEdit edit;
  const uint32_t dropped = ChangeFamilies(random, state, &edit);
  uint64_t next_id = state.next_table_id;
  std::set<uint64_t> taken(edit.removed.begin(), edit.removed.end());
  const auto any_table = [&]() -> uint64_t {
    if (state.tables.empty()) return 0;
    auto it = state.tables.lower_bound(random->Uniform(state.next_table_id));
    if (it == state.tables.end()) it = state.tables.begin();
    return taken.insert(it->first).second ? it->first : 0;
  };
  const auto level = [&] { return static_cast<uint32_t>(random->Uniform(state.num_levels)); };
  for (uint64_t n = random->Uniform(4); n > 0; --n) {
    edit.added.emplace_back(level(), RandomTableMeta(random, next_id++, key_bytes,
                                                     1 + static_cast<int>(random->Uniform(4))));
    edit.added.back().second.family =
        RandomFamily(random, state, edit, dropped == 0 ? UINT32_MAX : dropped);
  }
  if (const uint64_t id = any_table(); id != 0) edit.removed.push_back(id);
  if (const uint64_t id = any_table(); id != 0 && random->OneIn(2)) edit.removed.push_back(id);
  if (const uint64_t id = any_table(); id != 0) {
    edit.added.emplace_back(level(), RandomTableMeta(random, id, key_bytes));
    edit.added.back().second.family = state.tables.at(id).second.family;
  }
  if (random->OneIn(3)) edit.segments_added.push_back(RandomLogSegment(random, state.next_segment));
  if (random->OneIn(3) && !state.segments.empty()) {
    edit.segments_removed.push_back(state.segments.begin()->first);
  }
  if (next_id != state.next_table_id) edit.next_table_id = next_id;
  if (random->OneIn(2)) edit.last_sequence = state.last_sequence + random->Skewed(20);
  if (random->OneIn(100)) edit.restored = true;
  if (random->OneIn(10)) edit.nodes[static_cast<NodeId>(random->Uniform(200))] = random->Next();
  return edit;
}

std::string EncodeForComparison(const ManifestState& state) {
  std::string out;
  PutLengthPrefixedSlice(&out, state.comparator);
  for (const uint64_t number :
       {uint64_t{state.num_levels}, state.slab_bytes, state.database_id, state.next_table_id,
        state.last_sequence, state.next_segment, state.restoring, uint64_t{state.next_family}}) {
    PutVarint64(&out, number);
  }
  ManifestEdit all;
  all.nodes = state.nodes;
  all.families_added = state.families;
  for (const auto& [id, table] : state.tables) all.added.push_back(table);
  for (const auto& [number, segment] : state.segments) all.segments_added.push_back(segment);
  EncodeManifestEdit(all, &out);
  return out;
}

}  // namespace nacre
