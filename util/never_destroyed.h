#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace nacre {

/// An object of static storage whose destructor never runs. `exit` destroys statics while threads
/// of open databases still run, so what these may use is either `constexpr` or one of these:
///
///     static const NeverDestroyed<std::string> kName("...");
///
/// A repo rule refuses other statics that have a destructor. Thread safety: that of T.
template <typename T>
class NeverDestroyed {
 public:
  template <typename... Args>
  explicit NeverDestroyed(Args&&... args)
      : object_(std::construct_at(static_cast<T*>(static_cast<void*>(storage_)),
                                  std::forward<Args>(args)...)) {}
  NeverDestroyed(const NeverDestroyed&) = delete;
  NeverDestroyed& operator=(const NeverDestroyed&) = delete;

  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }

 private:
  alignas(T) std::byte storage_[sizeof(T)];
  T* const object_;
};

}  // namespace nacre
