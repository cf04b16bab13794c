#include <memory>
#include <string_view>
#include <utility>

#include "adapters/c/c_types.h"
#include "adapters/common/callback_comparator.h"

namespace {

/// A logger that is a function of C.
class CallbackLogger final : public nacre::Logger {
 public:
  using Destructor = void (*)(void* state);
  using LogFunction = void (*)(void* state, int level, const char* message, size_t size);

  CallbackLogger(void* state, Destructor destructor, LogFunction log)
      : state_(state), destructor_(destructor), log_(log) {}
  ~CallbackLogger() override {
    if (destructor_ != nullptr) destructor_(state_);
  }
  CallbackLogger(const CallbackLogger&) = delete;
  CallbackLogger& operator=(const CallbackLogger&) = delete;

  void Log(nacre::LogLevel level, std::string_view message) override {
    log_(state_, static_cast<int>(level), message.data(), message.size());
  }

 private:
  void* const state_;
  const Destructor destructor_;
  const LogFunction log_;
};

static_assert(static_cast<int>(nacre::LogLevel::kDebug) == nacre_log_debug);
static_assert(static_cast<int>(nacre::LogLevel::kError) == nacre_log_error);

nacre_comparator_t* WrapComparator(const nacre::Comparator* comparator) {
  return std::make_unique<nacre_comparator_t>(nacre_comparator_t{comparator, nullptr}).release();
}

}  // namespace

nacre_comparator_t* nacre_comparator_create(void* state, void (*destructor)(void* state),
                                            int (*compare)(void* state, const char* a,
                                                           size_t a_size, const char* b,
                                                           size_t b_size),
                                            const char* (*name)(void* state)) {
  auto comparator = std::make_unique<nacre_comparator_t>();
  comparator->owned = std::make_unique<nacre::CallbackComparator>(state, destructor, compare, name);
  comparator->rep = comparator->owned.get();
  return comparator.release();
}

nacre_comparator_t* nacre_comparator_bytewise(void) {
  return WrapComparator(nacre::BytewiseComparator());
}

nacre_comparator_t* nacre_comparator_reverse_bytewise(void) {
  return WrapComparator(nacre::ReverseBytewiseComparator());
}

void nacre_comparator_destroy(nacre_comparator_t* comparator) {
  std::unique_ptr<nacre_comparator_t> destroyed(comparator);
}

nacre_logger_t* nacre_logger_create(void* state, void (*destructor)(void* state),
                                    void (*log)(void* state, int level, const char* message,
                                                size_t size)) {
  auto logger = std::make_shared<CallbackLogger>(state, destructor, log);
  return std::make_unique<nacre_logger_t>(nacre_logger_t{std::move(logger)}).release();
}

void nacre_logger_destroy(nacre_logger_t* logger) {
  std::unique_ptr<nacre_logger_t> destroyed(logger);
}
