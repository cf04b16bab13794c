#pragma once

#include "util/mutex.h"

namespace nacre::pool {

/// Marks a node's slabs as being leased or returned until the end of the scope, also if memory runs
/// out in it: one such call runs at a time. The allocator's mutex is held except during the call.
class SlabExchange {
 public:
  SlabExchange(bool* exchanging, CondVar* changed) : exchanging_(exchanging), changed_(changed) {
    *exchanging_ = true;
  }
  ~SlabExchange() {
    *exchanging_ = false;
    changed_->SignalAll();
  }
  SlabExchange(const SlabExchange&) = delete;
  SlabExchange& operator=(const SlabExchange&) = delete;

 private:
  bool* const exchanging_;
  CondVar* const changed_;
};

}  // namespace nacre::pool
