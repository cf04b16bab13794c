#pragma once

#include <array>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/lane.h"
#include "pool/read/point_lane.h"
#include "pool/read/point_reader.h"
#include "rdma/transport.h"

namespace nacre::pool {

/// What one thread reads point by point with, and waits for.
///
/// Thread safety: none; it belongs to one thread at a time.
class ClientSession final : private PointLane {
 public:
  static Status Create(Fabric* fabric, std::unique_ptr<ClientSession>* session);
  ~ClientSession() { lane_.reset(); }  // Before the memory where late reads land.

  /// These three: see PointReader.
  void ReadAll(std::span<PointRead> reads) {
    if (reads.size() == 1 && ReadOne(&reads[0])) [[likely]]
      return;
    ReadMany(reads);
  }
  void StartReads(std::span<PointRead> reads);
  void FinishReads();

 private:
  using ReadSet = std::bitset<PointReader::kMaxReadsAtOnce>;
  /// Reads that were started together.
  struct Window {
    std::span<PointRead> reads;
    size_t bytes = 0;     ///< That they need to land in.
    bool posted = false;  ///< Else they wait for FinishReads.
    ReadSet last_of;      ///< Those that report for their node.
    std::array<uint64_t, PointReader::kMaxReadsAtOnce> numbers;  ///< Read by read; 0: not posted.
  };
  /// More than a pipeline of them needs.
  static constexpr uint64_t kWindows = PointReader::kMaxStarted;
  static_assert(2 * PointReader::kMaxReadsAtOnce <= Lane::kDepth);  // One may straddle two pieces.
  static constexpr size_t kLandingBytes = 64 << 10;
  /// Landing memory beyond this is given back by the next call that needs less.
  static constexpr size_t kMaxKeptLandingBytes = 4 << 20;
  /// Memory in which late reads may still land, at most; then their connection is given up.
  static constexpr size_t kMaxLeft = 8;

  /// Where reads land that were left behind.
  struct Left {
    std::unique_ptr<rdma::MemoryRegion> landing;
    std::vector<std::pair<NodeId, uint64_t>> last;  ///< By node, the number of the last of them.
  };

  using PointLane::PointLane;

  /// The one read that most calls are. False: nothing has happened, go the long way.
  bool ReadOne(PointRead* read);
  void ReadMany(std::span<PointRead> reads);
  Window* BeginWindow(std::span<PointRead> reads);
  Window* WindowAt(uint64_t count) { return &windows_[count % kWindows]; }
  /// Posts the window's reads to land one after the other from `landing` on.
  void PostWindow(Window* window, char* landing);
  void Await(const Window& window);
  /// Whether the reads of the window from this node may be left behind: all are late, and may be
  /// asked of others. Counts in `*late_looks` how often they were found late.
  bool MayLeave(const Window& window, NodeId node, std::chrono::nanoseconds waited,
                int* late_looks);
  /// Ends them as late. The memory where they will land stays as it is until they have.
  void LeaveBehind(const Window& window, NodeId node);
  /// Frees the memory of reads that were left behind and have ended since.
  void ForgetEnded();
  void FailReads(NodeId node, uint64_t first, const Status& why) override;
  Status EnsureLanding(size_t bytes);

  char* landing_data_ = nullptr;
  size_t landing_bytes_ = 0;
  uint64_t started_ = 0;  ///< Windows so far; those from finished_ on are under way.
  uint64_t finished_ = 0;
  uint64_t posted_ = 0;         ///< Windows so far, in another order.
  size_t landing_used_ = 0;     ///< By windows under way.
  size_t pipeline_bytes_ = 0;   ///< Started since nothing was under way.
  size_t reads_under_way_ = 0;  ///< Reads in posted windows.
  std::array<Window, kWindows> windows_;
  /// By node: the last window that had reads of it, as posted_ was then.
  std::vector<uint64_t> window_of_;
  std::vector<Left> left_;
};

}  // namespace nacre::pool
