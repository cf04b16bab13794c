#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

namespace nacre {

/// How much is lost with an event that no listener is told of.
enum class EventWeight : uint8_t {
  kDetail,     ///< There are others like it, and the database can be asked.
  kImportant,  ///< Something has ended, failed or changed.
};

/// What listeners are still to be told, in order. There is room for `most` events of each weight:
/// one that finds none takes the place of the oldest of its weight, which is dropped
/// and counted. So details never displace what is important, and no thread waits for a slow
/// listener.
///
/// Thread safety: none.
template <typename Event>
class EventQueue {
 public:
  explicit EventQueue(size_t most) : most_(most) {}

  void Push(Event event, EventWeight weight) {
    std::deque<Numbered>& queue = weight == EventWeight::kDetail ? details_ : important_;
    if (queue.size() >= most_) {
      queue.pop_front();
      ++dropped_;
    }
    queue.push_back({next_++, std::move(event)});
  }
  bool empty() const { return details_.empty() && important_.empty(); }
  /// The oldest. There is one.
  Event Pop() {
    const bool detail = important_.empty() ||
                        (!details_.empty() && details_.front().number < important_.front().number);
    std::deque<Numbered>& queue = detail ? details_ : important_;
    Event event = std::move(queue.front().event);
    queue.pop_front();
    return event;
  }
  /// Events that were dropped so far.
  uint64_t dropped() const { return dropped_; }

 private:
  struct Numbered {
    uint64_t number;
    Event event;
  };

  const size_t most_;
  uint64_t next_ = 0;
  uint64_t dropped_ = 0;
  std::deque<Numbered> details_;
  std::deque<Numbered> important_;
};

}  // namespace nacre
