#include "db/manifest/manifest_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "pool/connect/fabric.h"
#include "pool/databases.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

constexpr uint32_t kMinImageSlots = 256;
/// A larger place for an image is due when this part of it is left.
constexpr uint32_t kRoomPart = 8;
constexpr uint64_t kMinRingBytes = 4 << 10;
/// A node that dies while a manifest is made is found out, and the next try is made on others.
constexpr int kReplaceTries = 5;
/// After so many, nodes that are late are waited for: where all are by turns, none would do.
constexpr int kHastyTries = 3;
/// Image updates to the replicas of a new manifest while others commit; one more runs while no
/// thread does.
constexpr int kCatchUps = 8;

uint64_t RingBytes(uint64_t bytes) {
  constexpr uint64_t kAlignment = ManifestRing::kAlignment;
  return (std::max(bytes, kMinRingBytes) + kAlignment - 1) / kAlignment * kAlignment;
}

ManifestLogOptions Checked(ManifestLogOptions options) {
  options.ring_bytes = RingBytes(options.ring_bytes);
  return options;
}

}  // namespace

ManifestLog::ManifestLog(const ManifestLogOptions& options, ManifestState initial,
                         std::unique_ptr<ManifestSlots> slots, ManifestSpace* space)
    : options_(Checked(options)),
      space_(space),
      state_(std::move(initial)),
      slots_(std::move(slots)) {
  state_.database_id = options.database_id;
  if (slots_ == nullptr) slots_ = std::make_unique<ManifestSlots>(state_, /*ring_position=*/0);
}

Status ManifestLog::Create(const ManifestLogOptions& options, ManifestState initial,
                           std::unique_ptr<ManifestSlots> slots, ManifestSpace* space,
                           std::unique_ptr<ManifestLog>* log) {
  std::unique_ptr<ManifestLog> made(
      new ManifestLog(options, std::move(initial), std::move(slots), space));
  {
    MutexLock lock(&made->mutex_);
    NACRE_RETURN_IF_ERROR(made->RenewLocked({}, nullptr));
    made->counters_.renewals = 0;
  }
  made->task_.Start(options.client->PeriodicOn(&pool::Background::manifests), "nacre-manifest",
                    options.image_interval, PeriodicTask::Begin::kWithRest,
                    [log_made = made.get()]() noexcept { log_made->Look(); });
  *log = std::move(made);
  return Status::OK();
}

ManifestLog::~ManifestLog() { Close(); }

void ManifestLog::Close() {
  {
    MutexLock lock(&mutex_);
    if (closing_) return;
    closing_ = true;
  }
  task_.Stop();
  MutexLock lock(&mutex_);
  if (writer_ == nullptr) return;  // Create failed.
  AwaitRenewal();
  if (!broken_.ok() || !fenced_.ok()) return;
  if (const Status s = UpdateImagesLocked(); !s.ok()) {
    Log(options_.log, LogLevel::kWarn, "manifest: the last image update failed: {}", s.ToString());
  }
}

void ManifestLog::Look() {
  MutexLock lock(&mutex_);
  if (closing_ || !Usable().ok()) return;
  if (const Status s = UpdateImagesLocked(); !s.ok()) {
    Log(options_.log, LogLevel::kWarn, "manifest: no image update: {}", s.ToString());
  }
  if (closing_ || !RenewalIsDue()) return;
  const std::chrono::nanoseconds pause = options_.image_interval;
  next_renewal_nanos_ = options_.clock->NowNanos() + static_cast<uint64_t>(pause.count());
  if (const Status s = RenewLocked({}, nullptr); !s.ok()) {
    Log(options_.log, LogLevel::kWarn, "manifest: not renewed yet: {}", s.ToString());
  }
}

Status ManifestLog::Usable() const {
  if (!fenced_.ok()) return fenced_;
  return broken_;
}

uint64_t ManifestLog::FreeSlots() const {
  return writer_->root().image_slots - slots_->used() + slots_->free();
}

bool ManifestLog::RenewalIsDue() const {
  const ManifestRoot& root = writer_->root();
  // A ring that was made for one edit is much to read at the next opening. Features that were
  // turned on in the pool are recorded (see ManifestRoot).
  const bool due = FreeSlots() < root.image_slots / kRoomPart ||
                   root.ring_bytes > options_.ring_bytes ||
                   root.features != options_.client->features_on();
  return due && !renewing_ && Usable().ok() && options_.clock->NowNanos() >= next_renewal_nanos_;
}

Status ManifestLog::Commit(ManifestEdit* edit) {
  std::string encoded;
  EncodeManifestEdit(*edit, &encoded);
  const size_t items = edit->added.size() + edit->segments_added.size() + edit->nodes.size() +
                       edit->families_added.size();
  const Room room = {.edit_bytes = encoded.size(),
                     .slots = ManifestSlots::MostSlots(items, encoded.size())};
  MutexLock lock(&mutex_);
  for (;;) {
    while (in_doubt_) idle_.Wait();
    NACRE_RETURN_IF_ERROR(Usable());
    if (closing_) return Status::ShutdownInProgress("the manifest is closed");
    edit->version = state_.version + 1;
    NACRE_RETURN_IF_ERROR(state_.Check(*edit));
    // Others may commit meanwhile.
    if (!writer_->FitsEver(encoded.size()) || room.slots > FreeSlots()) {
      if (AwaitRenewal()) continue;
      NACRE_RETURN_IF_ERROR(RenewLocked(room, nullptr));
    } else if (!writer_->Fits(encoded.size())) {
      NACRE_RETURN_IF_ERROR(UpdateImagesLocked());
    } else {
      break;
    }
  }
  NACRE_POINT("edit.encoded");
  const Status written = writer_->Append(edit->version, encoded);
  if (!written.ok()) NACRE_RETURN_IF_ERROR(CommitByRenewal({edit->version, encoded}, written));
  NACRE_POINT("edit.acknowledged");
  Applied(*edit, encoded.size());
  if (!written.ok()) FreeRetired();
  if (edit->version - image_version_ >= options_.image_edits || writer_->half_full() ||
      RenewalIsDue()) {
    task_.Wake();
  }
  return Status::OK();
}

void ManifestLog::Applied(const ManifestEdit& edit, size_t encoded_bytes) {
  state_.ApplyChecked(edit);
  slots_->Apply(edit);
  ++counters_.edits;
  counters_.edit_bytes += encoded_bytes;
}

Status ManifestLog::CommitByRenewal(const DoubtfulEdit& edit, const Status& written) {
  Log(options_.log, LogLevel::kWarn, "manifest: {}; it is renewed", written.ToString());
  in_doubt_ = true;
  const Status s = AppendToAnother(edit);
  in_doubt_ = false;
  idle_.SignalAll();
  if (s.ok()) return s;
  if (fenced_.ok() && broken_.ok()) {
    broken_ = Status::TimedOut(
        fmt::format("manifest: whether edit {} is durable is unknown ({}), and the manifest "
                    "cannot be renewed: {}",
                    edit.version, written.ToString(), s.ToString()));
  }
  return Usable();
}

Status ManifestLog::AppendToAnother(const DoubtfulEdit& edit) {
  // One that is being made may do; what was written into the last one counts for nothing then.
  const pool::ManifestIdentity failed = writer_->root().identity;
  AwaitRenewal();
  if (writer_->root().identity != failed && Usable().ok() && writer_->Fits(edit.encoded.size())) {
    if (writer_->Append(edit.version, edit.encoded).ok()) return Status::OK();
  }
  return RenewLocked({.edit_bytes = edit.encoded.size()}, &edit);
}

// ---- Image updates ----------------------------------------------------------------------------

Status ManifestLog::UpdateImages() {
  MutexLock lock(&mutex_);
  return UpdateImagesLocked();
}

Status ManifestLog::UpdateImagesLocked() {
  for (;;) {
    while (sending_) idle_.Wait();
    NACRE_RETURN_IF_ERROR(Usable());
    if (!images_lost_) break;
    if (!AwaitRenewal()) return RenewLocked({}, nullptr);
  }
  if (image_version_ == state_.version) return Status::OK();
  Sending sending;
  PrepareUpdate(&sending);
  NACRE_POINT("image.prepared");
  sending_ = true;
  Status sent;
  {
    MutexUnlock unlock(&mutex_);
    sent = Send(&sending);
  }
  sending_ = false;
  idle_.SignalAll();
  return FinishUpdate(sending, sent);
}

void ManifestLog::PrepareUpdate(Sending* sending) {
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
      pool::PackChanges(sending->changes, ManifestSlots::kSlotBytes, &sending->delta));
  Status failure;
  for (Retired& retired : sending->copies) {
    const Status s = options_.client->databases()->ApplyImageUpdate(retired.copy, sending->delta);
    retired.uncertain = retired.uncertain || s.IsTimedOut();
    if (!s.ok() && failure.ok()) failure = s;
    NACRE_POINT("image.applied-to-a-replica");
  }
  return failure;
}

Status ManifestLog::FinishUpdate(const Sending& sending, const Status& sent) {
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
    ring_version_ = sending.delta.version;
    ++counters_.image_updates;
    counters_.delta_bytes += sending.delta.compressed.size();
    NACRE_POINT("image.recorded");
    return Status::OK();
  }
  Log(options_.log, LogLevel::kWarn, "manifest: {}; it is renewed", sent.ToString());
  images_lost_ = true;
  AwaitRenewal();
  return images_lost_ ? RenewLocked({}, nullptr) : Usable();
}

// ---- Renewals ---------------------------------------------------------------------------------

Status ManifestLog::Renew() {
  MutexLock lock(&mutex_);
  if (!fenced_.ok()) return fenced_;
  if (closing_) return Status::ShutdownInProgress("the manifest is closed");
  return RenewLocked({}, nullptr);
}

bool ManifestLog::AwaitRenewal() {
  const bool renewing = renewing_;
  while (renewing_) idle_.Wait();
  return renewing;
}

Status ManifestLog::RenewLocked(const Room& room, const DoubtfulEdit* edit) {
  AwaitRenewal();
  NACRE_RETURN_IF_ERROR(fenced_);
  renewing_ = true;
  NACRE_POINT("renewal.begin");
  std::unique_ptr<ManifestWriter> writer;
  Status s;
  bool again = true;
  for (int i = 0; i < kReplaceTries && again; ++i) {
    s = MakeManifest(room, edit, /*waits_for_late=*/i >= kHastyTries, &writer, &again);
  }
  if (s.ok()) {
    NACRE_POINT("renewal.written");
    s = Publish(*writer);
  }
  if (s.ok()) {
    NACRE_POINT("renewal.published");
    Adopt(std::move(writer));
  } else {
    slots_->AbandonCopy();
  }
  renewing_ = false;
  idle_.SignalAll();
  // An edit has to be part of the state before another thread has the mutex.
  if (edit == nullptr) FreeRetired();
  return s;
}

ManifestRoot ManifestLog::SizesOf(const Room& room) {
  ManifestRoot sizes;
  sizes.identity = {
      .database_id = options_.database_id, .epoch = options_.epoch, .generation = ++generation_};
  sizes.slot_bytes = ManifestSlots::kSlotBytes;
  sizes.features = options_.client->features_on();
  // What is in use may double before a larger place is due.
  const uint64_t used = slots_->used();
  const uint64_t slots = std::max(2 * used + 2 * used / kRoomPart, used + room.slots);
  sizes.image_slots = static_cast<uint32_t>(std::max<uint64_t>(kMinImageSlots, slots));
  const uint64_t entry = ManifestRing::EntryBytes(room.edit_bytes) + ManifestRing::kTerminatorBytes;
  // One half of it is in one piece, wherever its end is.
  sizes.ring_bytes = RingBytes(std::max(options_.ring_bytes, 2 * entry));
  return sizes;
}

Status ManifestLog::MakeManifest(const Room& room, const DoubtfulEdit* edit, bool waits_for_late,
                                 std::unique_ptr<ManifestWriter>* writer, bool* again) {
  slots_->Seal(state_, /*ring_position=*/0);
  SlotImage image = slots_->BeginCopy();
  const uint64_t version = state_.version;
  const ManifestRoot sizes = SizesOf(room);
  std::vector<ExtentAddr> reserved;
  Status s;
  {
    MutexUnlock unlock(&mutex_);
    const uint64_t chosen = waits_for_late ? pool::MirroredExtent::kChosenNow
                                           : options_.client->fabric()->pace.changes();
    s = space_->ReserveReplicas(sizes.bytes(), &reserved);
    *again = s.ok();
    if (s.ok()) {
      s = ManifestWriter::Create(options_.client, sizes, reserved, image, version, chosen, writer);
    }
  }
  image = SlotImage();  // This needs the mutex: see there.
  std::vector<Retired> copies;
  for (const ExtentAddr& copy : reserved) copies.push_back({.copy = copy});
  if (s.ok()) s = CatchUp(**writer, version, &copies);
  if (s.ok() && edit != nullptr) s = (*writer)->Append(edit->version, edit->encoded);
  *again = *again && !s.ok();
  if (s.ok()) {
    (*writer)->WaitForLate(false);
    return s;
  }
  retired_.insert(retired_.end(), copies.begin(), copies.end());
  if (*again) {
    Log(options_.log, LogLevel::kWarn, "manifest: not on these nodes: {}", s.ToString());
  }
  return s;
}

Status ManifestLog::CatchUp(const ManifestWriter& writer, uint64_t version,
                            std::vector<Retired>* copies) {
  for (int i = 0; version != state_.version; ++i) {
    slots_->Seal(state_, /*ring_position=*/0);
    Sending sending;
    sending.changes = slots_->TakeCopyChanges();
    sending.delta.identity = writer.root().identity;
    sending.delta.base_version = version;
    sending.delta.version = state_.version;
    sending.delta.slots_used = slots_->used();
    sending.copies = *copies;
    Status sent;
    if (i < kCatchUps) {
      MutexUnlock unlock(&mutex_);
      sent = Send(&sending);
    } else {
      sent = Send(&sending);
    }
    *copies = std::move(sending.copies);
    NACRE_RETURN_IF_ERROR(sent);
    version = sending.delta.version;
  }
  return Status::OK();
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

void ManifestLog::Adopt(std::unique_ptr<ManifestWriter> writer) {
  retired_.insert(retired_.end(), current_.begin(), current_.end());
  retired_.insert(retired_.end(), limbo_.begin(), limbo_.end());
  limbo_.clear();
  current_.clear();
  for (const ExtentAddr& copy : writer->copies()) current_.push_back({.copy = copy});
  writer_ = std::move(writer);
  slots_->SwitchToCopy();
  image_version_ = state_.version;
  ring_version_ = state_.version;
  images_lost_ = false;
  broken_ = Status::OK();
  ++counters_.renewals;
}

bool ManifestLog::IsQuiet(const Retired& retired) const {
  const auto node = static_cast<NodeId>(retired.copy.start.node);
  pool::PoolClient* const client = options_.client;
  if (!retired.uncertain || !client->alive(node)) return true;
  // A replica without its head is void, so the node refuses an update that arrives now. A node
  // carries out one request at a time: when it answers, it is not in the middle of one.
  std::unique_ptr<rdma::MemoryRegion> zeros;  // Outlives the write.
  std::unique_ptr<pool::MirroredExtent> extent;
  uint64_t ticket = 0;
  const Deadline deadline = Deadline::After(client->clock(), client->options().operation_timeout);
  constexpr uint32_t kBytes = pool::ImageHeader::kBytes;
  if (!pool::AllocateBuffer(client->fabric(), kBytes, &zeros).ok()) return false;
  std::fill_n(zeros->data(), kBytes, '\0');
  return pool::MirroredExtent::Open(client->fabric(), {retired.copy}, &extent).ok() &&
         extent->Write(0, {.data = zeros->data(), .size = kBytes, .region = zeros.get()}, &ticket)
             .ok() &&
         extent->Await(ticket, deadline).ok() && client->Ping(node).ok();
}

void ManifestLog::FreeRetired() {
  if (retired_.empty() || sending_) return;  // A message may be on its way to one of them.
  std::vector<Retired> retired = std::exchange(retired_, {});
  std::vector<ExtentAddr> quiet;
  {
    MutexUnlock unlock(&mutex_);
    std::erase_if(retired, [&](const Retired& each) {
      if (!IsQuiet(each)) return false;
      quiet.push_back(each.copy);
      return true;
    });
    if (!quiet.empty()) {
      space_->FreeReplicas(quiet);
      NACRE_POINT("renewal.last-one-freed");
    }
  }
  retired_.insert(retired_.end(), retired.begin(), retired.end());
}

// ---- Views ------------------------------------------------------------------------------------

ManifestState ManifestLog::Snapshot() const {
  MutexLock lock(&mutex_);
  return state_;
}

std::vector<LogSegment> ManifestLog::segments() const {
  MutexLock lock(&mutex_);
  std::vector<LogSegment> segments;
  segments.reserve(state_.segments.size());
  for (const auto& [number, segment] : state_.segments) segments.push_back(segment);
  return segments;
}

SequenceNumber ManifestLog::last_sequence() const {
  MutexLock lock(&mutex_);
  return state_.last_sequence;
}

uint64_t ManifestLog::version() const {
  MutexLock lock(&mutex_);
  return state_.version;
}

std::vector<ExtentAddr> ManifestLog::copies() const {
  MutexLock lock(&mutex_);
  return writer_->copies();
}

ManifestPlace ManifestLog::place() const {
  MutexLock lock(&mutex_);
  return {.root = writer_->root(),
          .copies = writer_->copies(),
          .first_edit = ring_version_ + 1,
          .ring_position = writer_->head_in_ring(),
          .version = state_.version};
}

ManifestCounters ManifestLog::counters() const {
  MutexLock lock(&mutex_);
  ManifestCounters counters = counters_;
  counters.image_bytes = uint64_t{slots_->used()} * ManifestSlots::kSlotBytes;
  return counters;
}

Status ManifestLog::status() const {
  MutexLock lock(&mutex_);
  return Usable();
}

}  // namespace nacre
