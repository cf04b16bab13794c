#include "pool/connect/node_link.h"

#include <fmt/format.h>

#include <algorithm>

#include "pool/wire/control.pb.h"

namespace nacre::pool {
namespace {

/// More would be a hostile answer: a piece is at least this large, save the last one.
constexpr uint64_t kMinPieceBytes = 4096;
constexpr uint64_t kMaxRegionBytes = uint64_t{1} << 48;
constexpr uint64_t kMaxSlabs = uint64_t{1} << 22;
/// What a node of that time wants to hear.
constexpr ProtocolRange kEarlyRange = {.oldest = kVersionBeforeRanges,
                                       .newest = kVersionBeforeRanges};

}  // namespace

Status StatusOfCompletion(const std::string& address, rdma::CompletionCode code) {
  using rdma::CompletionCode;
  switch (code) {
    case CompletionCode::kSuccess:
      return Status::OK();
    case CompletionCode::kRemoteAccessError:
      return Status::InvalidArgument(address + ": access outside of the node's memory");
    case CompletionCode::kLocalError:
      return Status::InvalidArgument(address + ": request with a bad local buffer");
    case CompletionCode::kFlushed:
    case CompletionCode::kPeerGone:
    case CompletionCode::kReceiverNotReady:
      break;
  }
  return Status::Unavailable(
      fmt::format("{}: connection lost ({})", address, rdma::ToString(code)));
}

rdma::RemoteBuffer NodeLink::Translate(uint64_t offset, uint64_t* contiguous) const {
  const Place& where = *place();
  const uint64_t index = offset >> where.piece_shift;
  const Piece& piece = where.pieces[index];
  const uint64_t within = offset - (index << where.piece_shift);
  *contiguous = piece.length - within;
  return {.address = piece.address + within, .key = piece.key};
}

bool NodeLink::TranslateWrite(uint64_t offset, rdma::RemoteBuffer* to, uint64_t* contiguous) const {
  if (offset < slab_area_) return false;
  const uint64_t slab = (offset - slab_area_) / slab_bytes_;
  if (slab >= slab_count_) return false;
  const uint64_t key = write_keys_[slab].load(std::memory_order_relaxed);
  if ((key & kHasKey) == 0) return false;
  *to = Translate(offset, contiguous);
  to->key = static_cast<uint32_t>(key);
  *contiguous = std::min(*contiguous, slab_area_ + (slab + 1) * slab_bytes_ - offset);
  return true;
}

uint64_t NodeLink::SlabAt(uint64_t offset) const {
  if (offset < slab_area_ || (offset - slab_area_) % slab_bytes_ != 0) return slab_count_;
  return std::min(slab_count_, (offset - slab_area_) / slab_bytes_);
}

Status NodeLink::SetWriteKeys(const control::Slabs& slabs) {
  const auto malformed = [&] {
    return Status::Corruption(address_ + ": answers with slabs that it has not got");
  };
  if (slabs.offsets_size() != slabs.write_keys_size()) return malformed();
  for (const uint64_t offset : slabs.offsets()) {
    if (SlabAt(offset) == slab_count_) return malformed();
  }
  for (int i = 0; i < slabs.offsets_size(); ++i) {
    write_keys_[SlabAt(slabs.offsets(i))].store(kHasKey | slabs.write_keys(i),
                                                std::memory_order_relaxed);
  }
  return Status::OK();
}

control::Slabs NodeLink::TakeWriteKeys(const std::vector<uint64_t>& offsets) {
  control::Slabs taken;
  for (const uint64_t offset : offsets) {
    const uint64_t slab = SlabAt(offset);
    const uint64_t key =
        slab == slab_count_ ? 0 : write_keys_[slab].exchange(0, std::memory_order_relaxed);
    taken.add_offsets(offset);
    taken.add_write_keys(static_cast<uint32_t>(key));
  }
  return taken;
}

void NodeLink::GiveBackWriteKeys(const control::Slabs& taken) {
  for (int i = 0; i < taken.offsets_size(); ++i) {
    const uint64_t slab = SlabAt(taken.offsets(i));
    if (slab == slab_count_ || taken.write_keys(i) == 0) continue;
    uint64_t none = 0;
    write_keys_[slab].compare_exchange_strong(none, kHasKey | taken.write_keys(i),
                                              std::memory_order_relaxed);
  }
}

std::string NodeLink::domain() const {
  MutexLock lock(&mutex_);
  return domain_;
}

Status NodeLink::CheckUp() const {
  if (state() == State::kUp) return Status::OK();
  MutexLock lock(&mutex_);
  if (!why_.ok()) return why_;
  return Status::Unavailable(address_ + ": not connected");
}

void NodeLink::Suspect(const Status& why) {
  State expected = State::kUp;
  {
    MutexLock lock(&mutex_);
    if (!state_.compare_exchange_strong(expected, State::kDown, std::memory_order_acq_rel)) return;
    why_ = Status::Unavailable(why.message());
  }
  CloseChannels();
}

void NodeLink::SetUp() {
  MutexLock lock(&mutex_);
  if (state_.load(std::memory_order_relaxed) == State::kLost) return;
  why_ = Status::OK();
  cut_off_.store(false, std::memory_order_release);
  // Release: pairs with state().
  state_.store(State::kUp, std::memory_order_release);
}

void NodeLink::SetDown(const Status& why) { Leave(State::kDown, why); }

void NodeLink::SetCutOff(const Status& why) {
  cut_off_.store(true, std::memory_order_release);
  Leave(State::kDown, why);
}
void NodeLink::SetLost(const Status& why) { Leave(State::kLost, why); }

void NodeLink::Leave(State to, const Status& why) {
  {
    MutexLock lock(&mutex_);
    if (state_.load(std::memory_order_relaxed) == State::kLost) return;
    why_ = Status::Unavailable(why.message());
    state_.store(to, std::memory_order_release);
  }
  CloseChannels();
}

Status NodeLink::SetDescription(const control::Description& description) {
  const auto malformed = [&](const char* what) {
    return Status::Corruption(fmt::format("{}: describes its region with {}", address_, what));
  };
  const uint64_t known = instance_id();
  if (description.instance_id() == 0) return malformed("no instance");
  if (known != 0 && known != description.instance_id()) {
    return Status::Unavailable(address_ + ": restarted, its memory is lost");
  }
  {
    MutexLock lock(&mutex_);
    domain_ = description.domain();
  }
  if (description.start_id() == 0) return malformed("no start");
  const Place* const before = place();
  if (before != nullptr && before->start_id == description.start_id()) return Status::OK();

  const uint64_t region_bytes = description.region_bytes();
  const uint32_t shift = description.piece_shift();
  if (region_bytes == 0 || region_bytes > kMaxRegionBytes) return malformed("an absurd size");
  if (description.slab_bytes() == 0 || description.slab_bytes() > region_bytes) {
    return malformed("an absurd slab size");
  }
  const uint64_t slab_area = description.slab_area();
  if (slab_area > region_bytes ||
      (region_bytes - slab_area) / description.slab_bytes() > kMaxSlabs) {
    return malformed("an absurd number of slabs");
  }
  if (shift > 63 || (uint64_t{1} << shift) < kMinPieceBytes) return malformed("an absurd piece");
  const uint64_t piece_bytes = uint64_t{1} << shift;
  const uint64_t expected = (region_bytes - 1) / piece_bytes + 1;
  if (static_cast<uint64_t>(description.pieces_size()) != expected) {
    return malformed("pieces that do not add up");
  }
  auto where = std::make_unique<Place>();
  where->start_id = description.start_id();
  where->piece_shift = shift;
  uint64_t left = region_bytes;
  for (const control::RemoteMemory& piece : description.pieces()) {
    if (piece.length() != std::min(left, piece_bytes)) return malformed("a piece of odd size");
    left -= piece.length();
    where->pieces.push_back(
        {.address = piece.address(), .length = piece.length(), .key = piece.key()});
  }
  if (before == nullptr) {
    slab_bytes_ = description.slab_bytes();
    slab_area_ = slab_area;
    slab_count_ = (region_bytes - slab_area) / slab_bytes_;
    write_keys_ = std::make_unique<std::atomic<uint64_t>[]>(slab_count_);
    instance_id_.store(description.instance_id(), std::memory_order_relaxed);
    region_bytes_.store(region_bytes, std::memory_order_relaxed);
  } else if (this->region_bytes() != region_bytes || slab_bytes_ != description.slab_bytes() ||
             slab_area_ != slab_area) {
    return malformed("another size than before");
  }
  for (uint64_t slab = 0; slab < slab_count_; ++slab) {
    write_keys_[slab].store(0, std::memory_order_relaxed);
  }
  // Release: pairs with place().
  place_.store(where.get(), std::memory_order_release);
  places_.push_back(std::move(where));
  return Status::OK();
}

Status NodeLink::Connect(rdma::Device* device, ConnectionKind kind, rdma::QueueDepths depths,
                         rdma::CompletionQueue* queue, Deadline deadline,
                         std::unique_ptr<rdma::QueuePair>* queue_pair, uint32_t connection) const {
  Hello hello;
  hello.kind = kind;
  hello.connection = connection;
  // What the lifeline has found out spares the others a refusal.
  hello.range = protocol() == kVersionBeforeRanges ? kEarlyRange : context_->options.protocol.range;
  // Requests say themselves what they mean.
  if (const Place* const known = place(); known != nullptr && kind == ConnectionKind::kData) {
    hello.start_id = known->start_id;
  }
  Welcome welcome;
  return Greet(device, hello, depths, queue, deadline, queue_pair, &welcome);
}

Status NodeLink::ConnectLifeline(rdma::Device* device, rdma::QueueDepths depths,
                                 rdma::CompletionQueue* queue, Deadline deadline,
                                 std::unique_ptr<rdma::QueuePair>* queue_pair,
                                 FeatureSet* features_on) {
  Hello hello;
  hello.kind = ConnectionKind::kLifeline;
  // The node may have been upgraded since it was last reached.
  hello.range = context_->options.protocol.range;
  hello.features = context_->options.protocol.features;
  Welcome welcome;
  NACRE_RETURN_IF_ERROR(Greet(device, hello, depths, queue, deadline, queue_pair, &welcome));
  protocol_.store(welcome.version, std::memory_order_relaxed);
  features_.store(welcome.features, std::memory_order_relaxed);
  if (features_on != nullptr) *features_on = welcome.features_on;
  return Status::OK();
}

Status NodeLink::Greet(rdma::Device* device, Hello hello, rdma::QueueDepths depths,
                       rdma::CompletionQueue* queue, Deadline deadline,
                       std::unique_ptr<rdma::QueuePair>* queue_pair, Welcome* welcome) const {
  depths.control = hello.kind != ConnectionKind::kData;
  hello.client_id = context_->client_id;
  hello.slab_bytes = context_->options.slab_bytes;
  hello.instance_id = instance_id();
  const Deadline attempt = Deadline::After(
      context_->clock, std::min<std::chrono::nanoseconds>(kConnectTimeout, deadline.Remaining()));
  Status s = GreetOnce(device, hello, depths, queue, attempt, queue_pair, welcome);
  if (IsFromBeforeRanges(s) && hello.range != kEarlyRange &&
      hello.range.Contains(kVersionBeforeRanges)) {
    hello.range = kEarlyRange;
    s = GreetOnce(device, hello, depths, queue, attempt, queue_pair, welcome);
  }
  return s.ok() ? s : StatusOfRefusal(address_, s);
}

Status NodeLink::GreetOnce(rdma::Device* device, const Hello& hello, rdma::QueueDepths depths,
                           rdma::CompletionQueue* queue, Deadline deadline,
                           std::unique_ptr<rdma::QueuePair>* queue_pair, Welcome* welcome) const {
  std::string reply;
  NACRE_RETURN_IF_ERROR(device->Connect(address_, hello.Encode(), depths, queue, queue, deadline,
                                        &reply, queue_pair));
  if (Welcome::Decode(reply, welcome) && hello.range.Contains(welcome->version)) {
    return Status::OK();
  }
  queue_pair->reset();
  return Status::Unavailable(address_ + ": is no nacre-memnode, or of another version");
}

std::unique_ptr<RequestChannel> NodeLink::TakeIdleChannel() {
  MutexLock lock(&mutex_);
  while (!idle_channels_.empty()) {
    std::unique_ptr<RequestChannel> channel = std::move(idle_channels_.back());
    idle_channels_.pop_back();
    if (!channel->broken()) return channel;
  }
  return nullptr;
}

Status NodeLink::TakeChannel(Deadline deadline, std::unique_ptr<RequestChannel>* channel) {
  *channel = TakeIdleChannel();
  if (*channel != nullptr) return Status::OK();
  return RequestChannel::Open(context_, this, deadline, channel);
}

void NodeLink::GiveChannel(std::unique_ptr<RequestChannel> channel) {
  if (channel->broken()) return;
  MutexLock lock(&mutex_);
  if (state_.load(std::memory_order_relaxed) > State::kUp) return;
  if (idle_channels_.size() < kMaxIdleChannels) idle_channels_.push_back(std::move(channel));
}

void NodeLink::CloseChannels() {
  std::vector<std::unique_ptr<RequestChannel>> closed;
  MutexLock lock(&mutex_);
  closed.swap(idle_channels_);
}

}  // namespace nacre::pool
