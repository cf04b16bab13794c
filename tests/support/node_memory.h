#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace nacre {

/// The region of a memory node that runs as a process of this host, behind the node's back: what a
/// test uses to damage what lies there. One thread at a time.
class NodeMemory {
 public:
  /// Reads process `pid`, whose region has at least `least_bytes`.
  NodeMemory(pid_t pid, uint64_t least_bytes);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  /// Whether the process has a region and lets its memory be reached.
  bool found() const { return begin_ != 0 && fd_ >= 0; }
  uint64_t size() const { return size_; }

  /// False if some of the bytes could not be read or written.
  [[nodiscard]] bool Read(uint64_t offset, size_t n, std::string* bytes) const;
  [[nodiscard]] bool FlipBit(uint64_t offset, int bit);

 private:
  uint64_t begin_ = 0;  ///< In the process; 0 if there is none.
  uint64_t size_ = 0;
  int fd_ = -1;
};

}  // namespace nacre
