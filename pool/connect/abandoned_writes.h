#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "table/format/placement.h"
#include "util/mutex.h"

namespace nacre::pool {

/// The data connections that this client gave up while writes were under way on them. Such a write
/// may still be stored, whatever this client does: over tcp its bytes may wait in the socket of a
/// node that is stopped, for hours. It is stored no more once the node has closed its end of the
/// connection, and said so (control::EndConnections), or is lost.
///
/// Invariant: a connection is added before the space that was written over it is freed, so space on
/// a node that has none here can be used again.
///
/// Thread safety: all methods may be called from many threads at once.
class AbandonedWrites {
 public:
  /// `connection`: see Hello::connection.
  void Add(NodeId node, uint32_t connection) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    connections_[node].push_back(connection);
    // Release: pairs with Any. A thread that frees the space has heard of the failure from this
    // one.
    nodes_.store(connections_.size(), std::memory_order_release);
  }
  /// Whether there is one to the node. One load as long as there is none to any node.
  bool Any(NodeId node) const EXCLUDES(mutex_) {
    if (nodes_.load(std::memory_order_acquire) == 0) return false;
    MutexLock lock(&mutex_);
    return connections_.contains(node);
  }
  std::map<NodeId, std::vector<uint32_t>> All() const EXCLUDES(mutex_) {
    if (nodes_.load(std::memory_order_acquire) == 0) return {};
    MutexLock lock(&mutex_);
    return connections_;
  }
  /// The node has closed these.
  void Ended(NodeId node, const std::vector<uint32_t>& connections) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    const auto of_node = connections_.find(node);
    if (of_node == connections_.end()) return;
    for (const uint32_t connection : connections) std::erase(of_node->second, connection);
    if (of_node->second.empty()) connections_.erase(of_node);
    nodes_.store(connections_.size(), std::memory_order_release);
  }

 private:
  mutable Mutex mutex_;
  std::map<NodeId, std::vector<uint32_t>> connections_ GUARDED_BY(mutex_);
  std::atomic<size_t> nodes_{0};  ///< Size of connections_. Release and acquire: see Add.
};

}  // namespace nacre::pool
