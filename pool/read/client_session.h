#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/lane.h"
#include "pool/read/point_reader.h"
#include "rdma/transport.h"

namespace nacre::pool {

/// What one thread reads point by point with: a lane, and the registered memory that the bytes
/// land in.
///
/// Thread safety: none; it belongs to one thread at a time.
class ClientSession {
 public:
  static Status Create(Fabric* fabric, std::unique_ptr<ClientSession>* session);

  /// These three: see PointReader.
  void ReadAll(std::span<PointRead> reads) {
    if (reads.size() == 1 && ReadOne(&reads[0])) [[likely]]
      return;
    ReadMany(reads);
  }
  void StartReads(std::span<PointRead> reads);
  void FinishReads();

 private:
  /// What a read of a node that is connected needs, side by side. All zero: not connected, or of
  /// more than one piece; then the long way is taken.
  struct Target {
    rdma::QueuePair* queue_pair = nullptr;
    uint64_t address = 0;  ///< Address of the region's first byte.
    uint64_t limit = 0;    ///< Bytes of the region.
    uint32_t key = 0;
  };

  using ReadSet = std::bitset<PointReader::kMaxReadsAtOnce>;
  /// Reads that were started together.
  struct Window {
    std::span<PointRead> reads;
    size_t bytes = 0;     ///< That they need to land in.
    bool posted = false;  ///< Else they wait for FinishReads.
    uint64_t number = 0;  ///< Above the index in the ids of its requests.
    ReadSet pending;      ///< Reads that were posted.
    ReadSet waiting;      ///< Those that report for their node, and have not completed.
  };
  /// More than a pipeline of them needs.
  static constexpr uint64_t kWindows = PointReader::kMaxStarted;
  static_assert(2 * PointReader::kMaxReadsAtOnce <= Lane::kDepth);  // One may straddle two pieces.
  static constexpr size_t kLandingBytes = 64 << 10;
  /// Landing memory beyond this is given back by the next call that needs less.
  static constexpr size_t kMaxKeptLandingBytes = 4 << 20;
  static constexpr uint64_t kIndexBits = 16;

  explicit ClientSession(std::unique_ptr<Lane> lane) : lane_(std::move(lane)) {}

  /// The one read that most calls are. False: nothing has happened, go the long way.
  bool ReadOne(PointRead* read);
  void ReadMany(std::span<PointRead> reads);
  Window* BeginWindow(std::span<PointRead> reads);
  Window* WindowAt(uint64_t count) { return &windows_[count % kWindows]; }
  /// Posts the window's reads to land one after the other from `landing` on.
  void PostWindow(Window* window, char* landing);
  Status Prepare(const PointRead& read, NodeLink** link);
  Status Post(const PointRead& read, const NodeLink& link, uint64_t id, char* landing, bool last);
  void Await(Window* window);
  void TakeCompletion(const rdma::Completion& completion);
  /// Gives the node's connection up: ends its reads of `window` (may be null) from number `first`
  /// on, and those of all other windows that wait for it.
  void FailNode(Window* window, NodeId node, size_t first, const Status& why);
  /// Whether the window's reads of `node` have not all completed.
  static bool WaitsFor(const Window& window, NodeId node);
  static void FailReads(Window* window, NodeId node, size_t first, const Status& why);
  Status EnsureLanding(size_t bytes);

  std::unique_ptr<rdma::MemoryRegion> landing_;  ///< Outlives the lane's queue pairs.
  char* landing_data_ = nullptr;
  size_t landing_bytes_ = 0;
  rdma::CompletionQueue* queue_ = nullptr;
  uint64_t window_number_ = 0;  ///< In the ids of requests, above the read's index.
  uint64_t started_ = 0;        ///< Windows so far; those from finished_ on are under way.
  uint64_t finished_ = 0;
  size_t landing_used_ = 0;     ///< By windows under way.
  size_t pipeline_bytes_ = 0;   ///< Started since nothing was under way.
  size_t reads_under_way_ = 0;  ///< Reads in posted windows.
  std::array<Window, kWindows> windows_;
  std::unique_ptr<Lane> lane_;
  std::vector<Target> targets_;  ///< By node, as far as was needed.
  /// By node: the last window that has had reads of it.
  std::vector<uint64_t> window_of_;
};

}  // namespace nacre::pool
