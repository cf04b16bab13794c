#include "db/manifest/manifest_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "db/manifest/manifest_ring.h"
#include "pool/databases.h"
#include "pool/read/point_reader.h"
#include "pool/wire/manifest_image.h"
#include "util/coding.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

/// What is read at least: some edits, as a rule all that are new.
constexpr uint64_t kWindowBytes = 4 << 10;

/// Manifests that are replaced while they are read, one after the other.
constexpr int kLoadTries = 5;

}  // namespace

Status ManifestFollower::Open() {
  Status status;
  for (int i = 0; i < kLoadTries; ++i) {
    pool::DatabaseRoot root;
    NACRE_RETURN_IF_ERROR(client_->databases()->Find(name_, &root));
    root_.identity.database_id = root.database_id;
    const std::string tried = root.value;
    status = Load(tried);
    if (status.ok() || status.IsNotSupported()) return status;
    // Its owner may have made another one meanwhile, in memory that this one had.
    NACRE_RETURN_IF_ERROR(client_->databases()->Find(name_, &root));
    if (root.value == tried) return status;
  }
  return ChangesTooFast();
}

Status ManifestFollower::ChangesTooFast() const {
  return Status::TimedOut(
      fmt::format("database '{}': its manifest is replaced faster than it can be read", name_));
}

Status ManifestFollower::Load(const std::string& value) {
  ManifestRecovered recovered;
  tried_value_ = value;
  const Status s = RecoverManifest(client_, value, database_id(), &recovered);
  const size_t all = recovered.root.replicas.size();
  if (s.IsCorruption() && recovered.copies_read < all) {
    // The others may be sound, on nodes that have joined and were not met yet.
    return Status::Unavailable(fmt::format("{}; only {} of its {} copies can be reached",
                                           s.message(), recovered.copies_read, all));
  }
  NACRE_RETURN_IF_ERROR(s);
  root_value_ = value;
  root_ = recovered.root;
  state_ = std::move(recovered.state);
  copies_ = std::move(recovered.copies);
  ring_position_ = recovered.ring_position;
  ring_ = std::make_unique<char[]>(root_.ring_bytes);
  bytes_read_ += root_.bytes();
  ++reloads_;
  return Status::OK();
}

Status ManifestFollower::CatchUp(Look look, News* news) {
  *news = News::kNone;
  NACRE_RETURN_IF_ERROR(destroyed_);
  Status status;
  for (int i = 0; i < kLoadTries; ++i) {
    status = ReadEdits(news);
    const bool sound = !status.IsCorruption() && !status.IsUnavailable();
    if (sound && (look == Look::kEdits || !status.ok())) return status;
    // A manifest that the root names after its edits were read had its memory until then.
    bool loaded = false;
    Status followed = FollowRoot(/*reload=*/!sound, &loaded, news);
    if (!followed.ok() && !followed.IsCorruption()) return followed;
    if (sound && followed.ok() && !loaded) return status;
    // All of it was read just now: the place of the next edit may have what was there before.
    if (!sound && followed.ok()) return Status::OK();
    if (!followed.ok()) status = std::move(followed);  // It was replaced while it was read.
  }
  if (!status.IsCorruption()) return status;
  // It is damaged if the root names it still.
  pool::DatabaseRoot root;
  const bool stays = client_->databases()->Find(name_, &root).ok() && root.value == tried_value_;
  return stays ? status : ChangesTooFast();
}

Status ManifestFollower::FollowRoot(bool reload, bool* loaded, News* news) {
  *loaded = false;
  pool::DatabaseRoot root;
  Status status = client_->databases()->Find(name_, &root);
  if (status.IsNotFound() || (status.ok() && root.database_id != database_id())) {
    destroyed_ = Status::Aborted(fmt::format("database '{}' was destroyed", name_));
    return destroyed_;
  }
  NACRE_RETURN_IF_ERROR(std::move(status));
  if (!reload && root.value == root_value_) return Status::OK();
  const pool::ManifestIdentity before = root_.identity;
  NACRE_RETURN_IF_ERROR(Load(root.value));
  *loaded = true;
  *news = std::max(*news, root_.identity == before ? News::kEdits : News::kReplaced);
  return Status::OK();
}

Status ManifestFollower::ReadEdits(News* news) {
  Status failure = Status::Unavailable(
      fmt::format("database '{}': no copy of the manifest can be reached", name_));
  for (const ExtentAddr& copy : copies_) {
    if (!client_->alive(static_cast<NodeId>(copy.start.node))) continue;
    Status status;
    bool done = false;
    while (status.ok() && !done) status = ReadEditsOf(copy, news, &done);
    if (status.ok() || status.IsNotSupported()) return status;
    failure = std::move(status);
  }
  return failure;
}

Status ManifestFollower::ReadWindow(const ExtentAddr& copy, uint64_t bytes,
                                    uint64_t* image_version) {
  // Reads of a node take place in the order in which they were posted.
  pool::PointRead reads[2];
  for (pool::PointRead& read : reads) read.from = copy.start;
  reads[0].from.offset = copy.start.offset + root_.ring_offset() + ring_position_;
  reads[0].length = static_cast<uint32_t>(bytes);
  reads[1].length = pool::ImageHeader::kBytes;
  pool::PointReader reader(client_->point_sessions());
  reader.ReadAll(reads);
  for (const pool::PointRead& read : reads) {
    bytes_read_ += read.length;
    NACRE_RETURN_IF_ERROR(read.status);
  }
  std::memcpy(ring_.get() + ring_position_, reads[0].data, bytes);
  pool::ImageHeader header;
  NACRE_RETURN_IF_ERROR(
      pool::ImageHeader::Decode(Slice(reads[1].data, pool::ImageHeader::kBytes), &header));
  if (header.identity != root_.identity) return Status::Corruption("manifest: another one");
  *image_version = header.version;
  return Status::OK();
}

Status ManifestFollower::ReadEditsOf(const ExtentAddr& copy, News* news, bool* done) {
  const ManifestRing ring(root_.identity);
  const Slice bytes(ring_.get(), root_.ring_bytes);
  const uint64_t left = root_.ring_bytes - ring_position_;
  if (left < ManifestRing::kHeaderBytes) return Status::Corruption("manifest: no room for an edit");
  uint64_t window = std::min(left, kWindowBytes);
  for (;;) {
    // The same bytes may arrive in parts while they are written: what is not whole is read again.
    uint64_t image_version = 0;
    NACRE_RETURN_IF_ERROR(ReadWindow(copy, window, &image_version));
    const uint64_t end = ring_position_ + window;
    uint64_t needed = 0;
    for (;;) {
      const uint64_t version = state_.version + 1;
      const ManifestRing::Entry entry = ring.Read(bytes, ring_position_, version);
      if (entry.found == ManifestRing::Found::kEntry && entry.next <= end) {
        ManifestEdit edit;
        edit.version = version;
        NACRE_RETURN_IF_ERROR(DecodeManifestEdit(entry.edit, &edit));
        NACRE_RETURN_IF_ERROR(state_.Apply(edit));
        ring_position_ = entry.next;
        *news = std::max(*news, News::kEdits);
        if (end - ring_position_ >= ManifestRing::kHeaderBytes) continue;
        return Status::OK();  // Goes on with another window.
      }
      if (entry.found == ManifestRing::Found::kWrap) {
        if (ring_position_ == 0) return Status::Corruption("manifest: the next edit is nowhere");
        ring_position_ = 0;
        return Status::OK();
      }
      // Perhaps there is more of it than was read.
      const char* const header = ring_.get() + ring_position_;
      if (DecodeFixed64(header + 16) == version) {
        needed =
            ManifestRing::EntryBytes(DecodeFixed32(header + 24)) + ManifestRing::kTerminatorBytes;
      }
      needed = std::min(needed, root_.ring_bytes - ring_position_);
      if (ring_position_ + needed > end) break;
      // Space of edits is used again when the image has them; then anything may be here.
      const bool in_time =
          image_version <= state_.version ||
          NACRE_PLANTED_BUG("follower.ring-that-has-gone-around-taken-for-its-end");
      *done = entry.found == ManifestRing::Found::kNothing && in_time;
      return *done ? Status::OK()
                   : Status::Corruption(fmt::format("manifest: edit {} (at {} of the ring) is not "
                                                    "there any more",
                                                    version, ring_position_));
    }
    window = needed;
  }
}

}  // namespace nacre
