#pragma once

#include "util/mutex.h"

namespace nacre::pool {

/// A node's slabs are being leased or returned: one such call at a time, until the end of the
/// scope, also if memory runs out in it. Under the allocator's mutex, but for the call.
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
