#include "db/manifest_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "util/log.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

constexpr uint32_t kMinImageSlots = 256;
constexpr uint64_t kMinRingBytes = 4 << 10;
/// A node that dies while a manifest is made is found out, and the next try is made on others.
constexpr int kTries = 5;

ManifestLogOptions Checked(ManifestLogOptions options) {
  constexpr uint64_t kAlignment = ManifestRing::kAlignment;
  options.ring_bytes = std::max(options.ring_bytes, kMinRingBytes);
  options.ring_bytes = (options.ring_bytes + kAlignment - 1) / kAlignment * kAlignment;
  return options;
}

}  // namespace

ManifestLog::ManifestLog(const ManifestLogOptions& options, ManifestState initial,
                         ManifestSpace* space)
    : options_(Checked(options)), space_(space), state_(std::move(initial)) {
  state_.database_id = options.database_id;
}

Status ManifestLog::Create(const ManifestLogOptions& options, ManifestState initial,
                           ManifestSpace* space, std::unique_ptr<ManifestLog>* log) {
  std::unique_ptr<ManifestLog> made(new ManifestLog(options, std::move(initial), space));
  {
    MutexLock lock(&made->mutex_);
    NACRE_RETURN_IF_ERROR(made->RenewLocked(nullptr));
    made->counters_.renewals = 0;
  }
  made->thread_ = Thread("nacre-manifest", [log_made = made.get()] { log_made->Run(); });
  *log = std::move(made);
  return Status::OK();
}

ManifestLog::~ManifestLog() { Close(); }

void ManifestLog::Close() {
  {
    MutexLock lock(&mutex_);
    if (closing_) return;
    closing_ = true;
    wake_.SignalAll();
  }
  if (!thread_.joinable()) return;  // Create failed.
  thread_.Join();
  MutexLock lock(&mutex_);
  if (!broken_.ok() || !fenced_.ok()) return;
  if (const Status s = CheckpointLocked(); !s.ok()) {
    Log(options_.log, LogLevel::kWarn, "manifest: the last checkpoint failed: {}", s.ToString());
  }
}

void ManifestLog::Run() {
  MutexLock lock(&mutex_);
  while (!closing_) {
    wake_.WaitFor(options_.checkpoint_interval);
    if (closing_ || !broken_.ok() || !fenced_.ok()) continue;
    if (const Status s = CheckpointLocked(); !s.ok()) {
      Log(options_.log, LogLevel::kWarn, "manifest: no checkpoint: {}", s.ToString());
    }
  }
}

Status ManifestLog::Usable() const {
  if (!fenced_.ok()) return fenced_;
  return broken_;
}

bool ManifestLog::ImageFits(const ManifestEdit& edit, size_t encoded_bytes) const {
  const size_t items = edit.added.size() + edit.segments_added.size() + edit.nodes.size();
  const size_t most = ManifestSlots::MostSlots(items, encoded_bytes);
  return slots_->used() + most <= writer_->root().image_slots + slots_->free();
}

Status ManifestLog::Commit(ManifestEdit* edit) {
  std::string encoded;
  EncodeManifestEdit(*edit, &encoded);
  MutexLock lock(&mutex_);
  for (;;) {
    NACRE_RETURN_IF_ERROR(Usable());
    if (closing_) return Status::ShutdownInProgress("the manifest is closed");
    edit->version = state_.version + 1;
    NACRE_RETURN_IF_ERROR(state_.Check(*edit));
    if (!writer_->FitsEver(encoded.size()) || !ImageFits(*edit, encoded.size())) {
      return CommitByRenewal(*edit, encoded.size(), Status::OK());
    }
    if (writer_->Fits(encoded.size())) break;
    // Others may commit meanwhile.
    NACRE_RETURN_IF_ERROR(CheckpointLocked());
  }
  NACRE_POINT("edit.encoded");
  const Status written = writer_->Append(edit->version, encoded);
  if (!written.ok()) return CommitByRenewal(*edit, encoded.size(), written);
  NACRE_POINT("edit.acknowledged");
  Applied(*edit, encoded.size());
  if (edit->version - image_version_ >= options_.checkpoint_edits || writer_->half_full()) {
    wake_.Signal();
  }
  return Status::OK();
}

void ManifestLog::Applied(const ManifestEdit& edit, size_t encoded_bytes) {
  state_.ApplyChecked(edit);
  slots_->Apply(edit);
  ++counters_.edits;
  counters_.edit_bytes += encoded_bytes;
}

Status ManifestLog::CommitByRenewal(const ManifestEdit& edit, size_t encoded_bytes,
                                    const Status& written) {
  if (!written.ok()) {
    Log(options_.log, LogLevel::kWarn, "manifest: {}; it is renewed", written.ToString());
  }
  const Status s = RenewLocked(&edit);
  if (s.ok()) {
    ++counters_.edits;
    counters_.edit_bytes += encoded_bytes;
    return s;
  }
  if (!written.ok() && fenced_.ok() && broken_.ok()) {
    broken_ = Status::TimedOut(
        fmt::format("manifest: whether edit {} is durable is unknown ({}), and the manifest "
                    "cannot be renewed: {}",
                    edit.version, written.ToString(), s.ToString()));
  }
  return Usable().ok() ? s : Usable();
}

// ---- Checkpoints ------------------------------------------------------------------------------

Status ManifestLog::Checkpoint() {
  MutexLock lock(&mutex_);
  return CheckpointLocked();
}

Status ManifestLog::CheckpointLocked() {
  while (sending_) idle_.Wait();
  NACRE_RETURN_IF_ERROR(Usable());
  if (images_lost_) return RenewLocked(nullptr);
  if (image_version_ == state_.version) return Status::OK();
  Sending sending;
  PrepareCheckpoint(&sending);
  NACRE_POINT("checkpoint.prepared");
  sending_ = true;
  Status sent;
  {
    MutexUnlock unlock(&mutex_);
    sent = Send(&sending);
  }
  sending_ = false;
  idle_.SignalAll();
  return FinishCheckpoint(sending, sent);
}

void ManifestLog::PrepareCheckpoint(Sending* sending) {
  slots_->Seal(state_, NACRE_PLANTED_BUG("manifest.edits-sought-in-the-wrong-place")
                           ? 0
                           : writer_->tail_in_ring());
  sending->changes = slots_->TakeChanges();
  sending->delta.identity = writer_->root().identity;
  sending->delta.base_version = image_version_;
  sending->delta.version = state_.version;
  sending->delta.slots_used = slots_->used();
  sending->ring_tail = writer_->tail();
  sending->copies = current_;
  image_version_ = state_.version;
}

Status ManifestLog::Send(Sending* sending) const {
  NACRE_RETURN_IF_ERROR(
      memnode::PackChanges(sending->changes, ManifestSlots::kSlotBytes, &sending->delta));
  Status failure;
  for (Retired& retired : sending->copies) {
    const Status s = options_.client->ApplyCheckpoint(retired.copy, sending->delta);
    retired.uncertain = retired.uncertain || s.IsTimedOut();
    if (!s.ok() && failure.ok()) failure = s;
    NACRE_POINT("checkpoint.applied-to-a-copy");
  }
  return failure;
}

Status ManifestLog::FinishCheckpoint(const Sending& sending, const Status& sent) {
  const bool renewed = writer_->root().identity != sending.delta.identity;
  for (const Retired& copy : sending.copies) {
    for (Retired& here : renewed ? retired_ : current_) {
      if (here.copy == copy.copy) here.uncertain = here.uncertain || copy.uncertain;
    }
  }
  if (renewed) {
    FreeRetired();
    return Status::OK();
  }
  if (sent.ok()) {
    writer_->FreeUpTo(sending.ring_tail);
    ++counters_.checkpoints;
    counters_.delta_bytes += sending.delta.compressed.size();
    NACRE_POINT("checkpoint.recorded");
    return Status::OK();
  }
  Log(options_.log, LogLevel::kWarn, "manifest: {}; it is renewed", sent.ToString());
  images_lost_ = true;
  return RenewLocked(nullptr);
}

// ---- Renewals ---------------------------------------------------------------------------------

Status ManifestLog::Renew() {
  MutexLock lock(&mutex_);
  if (!fenced_.ok()) return fenced_;
  if (closing_) return Status::ShutdownInProgress("the manifest is closed");
  return RenewLocked(nullptr);
}

Status ManifestLog::RenewLocked(const ManifestEdit* edit) {
  ManifestState next = state_;
  if (edit != nullptr) next.ApplyChecked(*edit);
  auto slots = std::make_unique<ManifestSlots>(next, /*ring_position=*/0);
  std::unique_ptr<ManifestWriter> writer;
  NACRE_POINT("renewal.begin");
  NACRE_RETURN_IF_ERROR(MakeManifest(*slots, next.version, &writer));
  NACRE_POINT("renewal.written");
  NACRE_RETURN_IF_ERROR(Publish(*writer));
  NACRE_POINT("renewal.published");

  retired_.insert(retired_.end(), current_.begin(), current_.end());
  retired_.insert(retired_.end(), limbo_.begin(), limbo_.end());
  limbo_.clear();
  current_.clear();
  for (const ExtentAddr& copy : writer->copies()) current_.push_back({.copy = copy});
  writer_ = std::move(writer);
  slots_ = std::move(slots);
  state_ = std::move(next);
  image_version_ = state_.version;
  images_lost_ = false;
  broken_ = Status::OK();
  ++counters_.renewals;
  FreeRetired();
  NACRE_POINT("renewal.last-one-freed");
  return Status::OK();
}

Status ManifestLog::MakeManifest(const ManifestSlots& slots, uint64_t version,
                                 std::unique_ptr<ManifestWriter>* writer) {
  ManifestRoot sizes;
  sizes.slot_bytes = ManifestSlots::kSlotBytes;
  sizes.image_slots = std::max(kMinImageSlots, 2 * slots.used());
  sizes.ring_bytes = options_.ring_bytes;
  Status s;
  for (int i = 0; i < kTries; ++i) {
    sizes.identity = {
        .database_id = options_.database_id, .epoch = options_.epoch, .generation = ++generation_};
    std::vector<ExtentAddr> copies;
    NACRE_RETURN_IF_ERROR(space_->ReserveCopies(sizes.bytes(), &copies));
    s = ManifestWriter::Create(options_.client, sizes, copies, slots, version, writer);
    if (s.ok()) return s;
    space_->FreeCopies(copies);
    Log(options_.log, LogLevel::kWarn, "manifest: not on these nodes: {}", s.ToString());
  }
  return s;
}

Status ManifestLog::Publish(const ManifestWriter& writer) {
  const Status s = space_->PublishRoot(EncodeManifestRoot(writer.root()));
  if (s.ok()) return s;
  // A node that answers Fenced does not say what others have taken: a successor may go on from it.
  for (const ExtentAddr& copy : writer.copies()) limbo_.push_back({.copy = copy});
  if (s.IsFenced()) {
    fenced_ = s;
    return s;
  }
  broken_ = Status::TimedOut(
      fmt::format("manifest: whether the root was set to generation {} is unknown: {}",
                  writer.root().identity.generation, s.ToString()));
  return broken_;
}

bool ManifestLog::IsQuiet(const Retired& retired) const {
  const auto node = static_cast<NodeId>(retired.copy.start.node);
  memnode::PoolClient* const client = options_.client;
  if (!retired.uncertain || !client->alive(node)) return true;
  // Without its head the copy is none, so the node refuses the checkpoint if it comes to it now. A
  // node carries out one request at a time: when it answers, it is not in the middle of one.
  std::unique_ptr<rdma::MemoryRegion> zeros;  // Outlives the write.
  std::unique_ptr<memnode::MirroredExtent> extent;
  uint64_t ticket = 0;
  const Deadline deadline = Deadline::After(client->clock(), client->options().operation_timeout);
  constexpr uint32_t kBytes = memnode::CheckpointHeader::kBytes;
  if (!memnode::AllocateBuffer(client, kBytes, &zeros).ok()) return false;
  std::fill_n(zeros->data(), kBytes, '\0');
  return memnode::MirroredExtent::Open(client, {retired.copy}, &extent).ok() &&
         extent->Write(0, {.data = zeros->data(), .size = kBytes, .region = zeros.get()}, &ticket)
             .ok() &&
         extent->Await(ticket, deadline).ok() && client->Ping(node).ok();
}

void ManifestLog::FreeRetired() {
  if (sending_) return;  // To one of them, perhaps.
  std::vector<ExtentAddr> quiet;
  std::erase_if(retired_, [&](const Retired& retired) {
    if (!IsQuiet(retired)) return false;
    quiet.push_back(retired.copy);
    return true;
  });
  if (!quiet.empty()) space_->FreeCopies(quiet);
}

// ---- Views ------------------------------------------------------------------------------------

ManifestState ManifestLog::Snapshot() const {
  MutexLock lock(&mutex_);
  return state_;
}

uint64_t ManifestLog::version() const {
  MutexLock lock(&mutex_);
  return state_.version;
}

std::vector<ExtentAddr> ManifestLog::copies() const {
  MutexLock lock(&mutex_);
  return writer_->copies();
}

ManifestCounters ManifestLog::counters() const {
  MutexLock lock(&mutex_);
  ManifestCounters counters = counters_;
  counters.image_bytes = slots_->bytes().size();
  return counters;
}

Status ManifestLog::status() const {
  MutexLock lock(&mutex_);
  return Usable();
}

}  // namespace nacre
