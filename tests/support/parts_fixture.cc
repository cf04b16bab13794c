#include "tests/support/parts_fixture.h"

#include <utility>

#include "pool/databases.h"
#include "table/format/write_batch_format.h"
#include "tests/support/status_assert.h"

namespace nacre {

PartsFixture::PartsFixture(const TestPoolOptions& pool) : pool_(OpenTestPool(pool)) {}

PartsFixture::~PartsFixture() {
  if (parts_ == nullptr) return;
  EmptyPool();
  StopWork();
  if (parts_->writes.log() != nullptr) parts_->writes.log()->Close();
  if (parts_->committer.manifest() != nullptr) parts_->committer.manifest()->Close();
}

void PartsFixture::Open(const std::string& redundancy, bool manifest) {
  pool::PoolClient* const client = pool_->client();
  pool::DatabaseLease lease;
  ASSERT_TRUE(IsOk(client->databases()->Open("parts", {.create_if_missing = true}, &lease)));
  ManifestState initial;
  initial.comparator = options_.comparator->Name();
  initial.num_levels = static_cast<uint32_t>(options_.num_levels);
  initial.slab_bytes = client->options().slab_bytes;
  initial.database_id = lease.database_id;
  for (const auto& [node, slabs] : lease.slabs) initial.nodes[node] = client->instance_id(node);
  RedundancyPolicy policy;
  ASSERT_TRUE(IsOk(RedundancyPolicy::Parse(redundancy, &policy)));
  const CheckedOptions checked{.options = options_, .families = {}, .redundancy = policy};
  parts_ = std::make_unique<DatabaseParts>(/*db=*/nullptr, checked, "parts", pool_, lease, initial,
                                           /*first_table_id=*/1);
  auto families = std::make_shared<ColumnFamilySet>();
  families->by_id[kDefaultFamily] = parts_->state.default_family;
  {
    MutexLock lock(&parts_->state.mutex);
    parts_->state.InstallView(
        family(), {}, std::make_shared<Version>(&family()->comparator(), options_.num_levels));
    parts_->state.InstallFamilies(std::move(families));
  }
  if (!manifest) return;
  ASSERT_TRUE(IsOk(parts_->committer.Open(std::move(initial), /*image=*/nullptr, /*previous=*/{})));
}

void PartsFixture::StopWork() {
  {
    MutexLock lock(&parts_->state.mutex);
    parts_->state.closing.store(true, std::memory_order_release);
    parts_->write_controller.Update();
    parts_->state.changed.SignalAll();
    while (parts_->state.work.flush_running || parts_->state.work.compactions_running > 0) {
      parts_->state.changed.Wait();
    }
  }
  if (parts_->redundancy_keeper != nullptr) parts_->redundancy_keeper->Stop();
  parts_->flushes.Stop();
  parts_->compactions.Stop();
  parts_->context.space.EndQuarantine();
  parts_->context.events.Stop();
}

Status PartsFixture::Put(const std::string& key, const std::string& value) {
  return parts_->writes.WriteOne({}, family(), ValueType::kValue, key, value);
}

std::string PartsFixture::Get(const std::string& key) {
  PinnableSlice value;
  const Status status = parts_->reads.Get({}, *family(), key, &value);
  return status.ok() ? value.ToString() : "(" + status.ToString() + ")";
}

Status PartsFixture::FlushKeys(const std::string& prefix, int keys) {
  for (int i = 0; i < keys; ++i) {
    const std::string key = prefix + std::to_string(i);
    NACRE_RETURN_IF_ERROR(Put(key, TestValue(static_cast<uint64_t>(i), 100)));
  }
  return parts_->flushes.Flush({}, /*only=*/nullptr);
}

std::shared_ptr<const Version> PartsFixture::version() {
  MutexLock lock(&parts_->state.mutex);
  return family()->current_view()->version;
}

size_t PartsFixture::ended_generations() {
  MutexLock lock(&parts_->state.mutex);
  return parts_->state.work.ended_generations.size();
}

void PartsFixture::FillWith(uint64_t bytes) {
  Status status;
  while (status.ok()) {
    Placement placement;
    status = parts_->context.space.Reserve(Redundancy::Copies(1), bytes, kNoNode, &placement);
    if (status.ok()) filling_.push_back(std::move(placement));
  }
  ASSERT_TRUE(IsFailure(status, Status::Code::kNoSpace));
}

void PartsFixture::FillPool(uint64_t bytes, size_t left) {
  ASSERT_TRUE(filling_.empty());
  ASSERT_NO_FATAL_FAILURE(FillWith(bytes));
  ASSERT_GE(filling_.size(), left);
  ASSERT_NO_FATAL_FAILURE(FillWith(/*bytes=*/1 << 10));
  // The first ones, which lie on all nodes.
  for (size_t i = 0; i < left; ++i) parts_->context.space.Free(filling_[i]);
  filling_.erase(filling_.begin(), filling_.begin() + static_cast<ptrdiff_t>(left));
}

void PartsFixture::EmptyPool() {
  for (const Placement& placement : filling_) parts_->context.space.Free(placement);
  filling_.clear();
}

}  // namespace nacre
