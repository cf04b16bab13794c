#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/wire/messages.h"
#include "pool/wire/versions.h"
#include "rdma/transport.h"

namespace nacre::pool {

// How a client and a memory node talk (docs/design.md, section 3).
//
// A connection starts with a Hello in the connection's private data, answered by a Welcome or a
// refusal. It serves one purpose:
//
//   lifeline   One per client and node. Carries nothing: its end tells the node that the client
//              is gone, and the client that the node is.
//   request    One request at a time. The request is one SEND of at most Device::kMaxSendBytes; a
//              larger one stays in the client's memory and the node fetches it by RDMA read. The
//              reply is written into the buffer that the request named.
//   data       One-sided reads and writes of the region; no SEND.
//
// A reply ends at the end of the buffer, so that its flag is at a place the client knows:
//
//     ... | body (control::Reply) | fixed32 length of body | fixed32 CRC32C | fixed64 request id
//
// A write becomes visible in address order, so the rest is there when the id is. The CRC covers
// the body, the length and the id.

inline constexpr uint32_t kHelloMagic = 0x4172634e;  // "NcrA"

/// How long an owner may answer reads after a node has confirmed that it owns the database. A
/// client that takes over from a live owner waits for as long.
inline constexpr std::chrono::milliseconds kOwnerLease{1000};

enum class ConnectionKind : uint8_t { kLifeline = 0, kRequest = 1, kData = 2 };

/// Sent by the side that connects. Little-endian, without padding:
///
///     offset size
///          0    4  magic
///          4    2  newest protocol version
///          6    1  kind
///          7    1  how many versions before that one are spoken, too
///          8    8  client id
///         16    4  kData: number of the connection; else the slab size in pages of 4 KiB
///         20    4  kData: start id; kLifeline: features; else 0
///         24    8  instance id
///
/// Up to version 8 there was one version instead of a range, a kind of two bytes, and no features.
/// A hello that offers nothing newer has that form, which is all that a node of that time takes: it
/// refuses others by naming its version (see IsFromBeforeRanges).
struct Hello {
  static constexpr size_t kBytes = 32;

  uint32_t magic = kHelloMagic;
  ProtocolRange range = kProtocols;
  ConnectionKind kind = ConnectionKind::kLifeline;
  uint64_t client_id = 0;  ///< The same for all connections of one client.
  /// The slab size that the client counts on; 0: any. A kData connection does not have it, as the
  /// client has said it with its lifeline.
  uint64_t slab_bytes = 0;
  /// For kData: its number among the client's, by which it can be ended (control::EndConnections).
  uint32_t connection = 0;
  /// Start of the process whose addresses and keys the client has; 0: any.
  uint32_t start_id = 0;
  uint64_t instance_id = 0;  ///< Instance that the client means to reach; 0: any.
  FeatureSet features = 0;   ///< For kLifeline: what the client knows.

  std::string Encode() const;
  /// False for anything but the encoding of a Hello of some version.
  static bool Decode(const Slice& bytes, Hello* hello);
};
static_assert(Hello::kBytes <= rdma::Device::kMaxPrivateData);

/// Answer to a Hello, of 16 bytes up to version 8.
struct Welcome {
  static constexpr size_t kBytes = 32;

  uint32_t magic = kHelloMagic;
  uint16_t version = kProtocols.newest;  ///< The highest that both ends speak.
  uint64_t instance_id = 0;    ///< Names the node's memory: drawn at random when that begins.
  FeatureSet features = 0;     ///< What the node knows.
  FeatureSet features_on = 0;  ///< Those that are on in the pool, as far as the node has heard.

  std::string Encode() const;
  static bool Decode(const Slice& bytes, Welcome* welcome);
};
static_assert(Welcome::kBytes <= rdma::Device::kMaxPrivateData);

/// Why a node of this kind refuses `hello`, in at most kMaxReasonBytes bytes; empty if it does not.
std::string RefusalReason(const Hello& hello, uint64_t slab_bytes, uint64_t instance_id,
                          uint32_t start_id, const ProtocolRange& range = kProtocols);
/// The same for a client that does not know all of `features_on`.
std::string MissingFeaturesReason(FeatureSet features, FeatureSet features_on);
/// Whether the refusal is that of a node of kVersionBeforeRanges, which wants to hear that version
/// and nothing else.
bool IsFromBeforeRanges(const Status& refusal);

/// The failure that a client reports for a refusal by `address`: another protocol version or
/// another instance is `Unavailable`, another slab size `InvalidArgument`.
Status StatusOfRefusal(const std::string& address, const Status& refusal);
/// True for the failure that a node answers which is there but was started anew, without the memory
/// that it had.
bool IsOtherInstance(const Status& status);

// ---- Replies --------------------------------------------------------------------------------

inline constexpr size_t kReplyTrailerBytes = 16;
/// A reply buffer is at least so large, and ends at a multiple of 8: any failure, and the notice
/// that a reply is larger than its buffer, fit.
inline constexpr size_t kMinReplyBytes = 2048;
/// Failure messages are cut to this.
inline constexpr size_t kMaxMessageBytes = 1024;
/// Bounds of what one side makes the other allocate.
inline constexpr uint64_t kMaxLargeRequestBytes = uint64_t{1} << 30;
inline constexpr uint64_t kMaxReplyBytes = uint64_t{1} << 30;

/// Body and trailer, as they are to lie at the end of the buffer.
std::string EncodeReplyFrame(const control::Reply& reply, uint64_t request_id);
/// `buffer` is the whole reply buffer, whose last 8 bytes were seen to be `request_id`.
/// `Corruption` if the frame or the message in it is malformed.
Status DecodeReplyFrame(const Slice& buffer, uint64_t request_id, control::Reply* reply);

void SetStatus(const Status& status, control::Reply* reply);
/// What the node answered, without its name.
Status GetStatus(const control::Reply& reply);

// ---- Requests -------------------------------------------------------------------------------

/// Safe on any bytes. `InvalidArgument` for what is no request, or one without id or reply buffer.
Status DecodeRequest(const Slice& bytes, control::Request* request);

/// True if the two requests are one: the fetched `large` belongs to `envelope`.
bool IsLargeBodyOf(const control::Request& large, const control::Request& envelope);

}  // namespace nacre::pool
