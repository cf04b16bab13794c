#include <cstdlib>
#include <deque>
#include <utility>
#include <vector>

#include "adapters/c/c_error.h"
#include "adapters/c/c_types.h"
#include "adapters/common/c_memory.h"
#include "nacre/c_callbacks.h"

using nacre::Slice;
using nacre::Succeeded;

namespace {

using Destructor = void (*)(void* state);
using NameFunction = const char* (*)(void* state);

/// What an object that C has made of functions always has.
class Callbacks {
 public:
  Callbacks(void* state, Destructor destructor, NameFunction name)
      : state_(state), destructor_(destructor), name_(name) {}
  ~Callbacks() {
    if (destructor_ != nullptr) destructor_(state_);
  }
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;

  void* state() const { return state_; }
  const char* Name() const { return name_(state_); }

 private:
  void* const state_;
  const Destructor destructor_;
  const NameFunction name_;
};

class CallbackMerge final : public nacre::MergeOperator {
 public:
  using FullMerge = char* (*)(void* state, const char* key, size_t key_size,
                              const char* existing_value, size_t existing_value_size,
                              const char* const* operands, const size_t* operand_sizes,
                              int num_operands, unsigned char* success, size_t* new_value_size);
  using PartialMergeOf = char* (*)(void* state, const char* key, size_t key_size,
                                   const char* const* operands, const size_t* operand_sizes,
                                   int num_operands, unsigned char* success,
                                   size_t* new_value_size);
  using DeleteValue = void (*)(void* state, const char* value, size_t value_size);

  CallbackMerge(void* state, Destructor destructor, FullMerge full, PartialMergeOf partial,
                DeleteValue delete_value, NameFunction name)
      : callbacks_(state, destructor, name),
        full_(full),
        partial_(partial),
        delete_value_(delete_value) {}

  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override {
    const Operands operands(in.operand_list);
    // No bytes are something else than no value.
    const char* existing = nullptr;
    size_t existing_size = 0;
    if (in.existing_value != nullptr) {
      existing = in.existing_value->empty() ? "" : in.existing_value->data();
      existing_size = in.existing_value->size();
    }
    unsigned char success = 0;
    size_t size = 0;
    char* const value =
        full_(callbacks_.state(), in.key.data(), in.key.size(), existing, existing_size,
              operands.data(), operands.sizes(), operands.count(), &success, &size);
    return Take(value, size, success, &out->new_value);
  }
  bool PartialMerge(const Slice& key, const Slice& left, const Slice& right, std::string* new_value,
                    nacre::Logger* logger) const override {
    return PartialMergeMulti(key, {left, right}, new_value, logger);
  }
  bool PartialMergeMulti(const Slice& key, const std::deque<Slice>& list, std::string* new_value,
                         nacre::Logger* /*logger*/) const override {
    const Operands operands(list);
    unsigned char success = 0;
    size_t size = 0;
    char* const value = partial_(callbacks_.state(), key.data(), key.size(), operands.data(),
                                 operands.sizes(), operands.count(), &success, &size);
    return Take(value, size, success, new_value);
  }
  const char* Name() const override { return callbacks_.Name(); }

 private:
  /// As C has a list of slices.
  class Operands {
   public:
    template <typename List>
    explicit Operands(const List& list) {
      for (const Slice& operand : list) {
        data_.push_back(operand.data());
        sizes_.push_back(operand.size());
      }
    }
    const char* const* data() const { return data_.data(); }
    const size_t* sizes() const { return sizes_.data(); }
    int count() const { return static_cast<int>(data_.size()); }

   private:
    std::vector<const char*> data_;
    std::vector<size_t> sizes_;
  };

  /// Copies what was answered, and gives it back.
  bool Take(char* value, size_t size, unsigned char success, std::string* result) const {
    const bool made = success != 0 && value != nullptr;
    if (made) result->assign(value, size);
    if (value == nullptr) return false;
    if (delete_value_ != nullptr) {
      delete_value_(callbacks_.state(), value, size);
    } else {
      std::free(value);
    }
    return made;
  }

  const Callbacks callbacks_;
  const FullMerge full_;
  const PartialMergeOf partial_;
  const DeleteValue delete_value_;
};

class CallbackFilter final : public nacre::CompactionFilter {
 public:
  using FilterFunction = unsigned char (*)(void* state, int level, const char* key, size_t key_size,
                                           const char* existing_value, size_t existing_value_size,
                                           char** new_value, size_t* new_value_size,
                                           unsigned char* value_changed);

  CallbackFilter(void* state, Destructor destructor, FilterFunction filter, NameFunction name)
      : callbacks_(state, destructor, name), filter_(filter) {}

  bool Filter(int level, const Slice& key, const Slice& existing_value, std::string* new_value,
              bool* value_changed) const override {
    char* changed = nullptr;
    size_t size = 0;
    unsigned char is_changed = 0;
    const bool removed =
        filter_(callbacks_.state(), level, key.data(), key.size(), existing_value.data(),
                existing_value.size(), &changed, &size, &is_changed) != 0;
    *value_changed = is_changed != 0;
    if (*value_changed) new_value->assign(changed, size);
    return removed;
  }
  const char* Name() const override { return callbacks_.Name(); }

 private:
  const Callbacks callbacks_;
  const FilterFunction filter_;
};

class CallbackFilterFactory final : public nacre::CompactionFilterFactory {
 public:
  using CreateFilter = nacre_compactionfilter_t* (*)(void* state,
                                                     const nacre_compactionfiltercontext_t*);

  CallbackFilterFactory(void* state, Destructor destructor, CreateFilter create, NameFunction name)
      : callbacks_(state, destructor, name), create_(create) {}

  std::unique_ptr<nacre::CompactionFilter> CreateCompactionFilter(
      const nacre::CompactionFilter::Context& context) override {
    const nacre_compactionfiltercontext_t wrapped{context};
    const std::unique_ptr<nacre_compactionfilter_t> made(create_(callbacks_.state(), &wrapped));
    return made == nullptr ? nullptr : std::move(made->rep);
  }
  const char* Name() const override { return callbacks_.Name(); }

 private:
  const Callbacks callbacks_;
  const CreateFilter create_;
};

class CallbackTransform final : public nacre::SliceTransform {
 public:
  using TransformFunction = char* (*)(void* state, const char* key, size_t key_size,
                                      size_t* prefix_size);
  using InDomainFunction = unsigned char (*)(void* state, const char* key, size_t key_size);

  CallbackTransform(void* state, Destructor destructor, TransformFunction transform,
                    InDomainFunction in_domain, NameFunction name)
      : callbacks_(state, destructor, name), transform_(transform), in_domain_(in_domain) {}

  Slice Transform(const Slice& key) const override {
    size_t size = 0;
    const char* const prefix = transform_(callbacks_.state(), key.data(), key.size(), &size);
    return {prefix, size};
  }
  bool InDomain(const Slice& key) const override {
    return in_domain_(callbacks_.state(), key.data(), key.size()) != 0;
  }
  const char* Name() const override { return callbacks_.Name(); }

 private:
  const Callbacks callbacks_;
  const TransformFunction transform_;
  const InDomainFunction in_domain_;
};

nacre_slicetransform_t* Wrap(std::shared_ptr<const nacre::SliceTransform> transform) {
  return std::make_unique<nacre_slicetransform_t>(nacre_slicetransform_t{std::move(transform)})
      .release();
}

}  // namespace

nacre_mergeoperator_t* nacre_mergeoperator_create_by_name(const char* name, char** errptr) {
  auto made = std::make_unique<nacre_mergeoperator_t>();
  if (!Succeeded(nacre::MergeOperator::CreateFromString(name, &made->rep), errptr)) return nullptr;
  return made.release();
}

nacre_mergeoperator_t* nacre_mergeoperator_create(
    void* state, void (*destructor)(void* state),
    char* (*full_merge)(void* state, const char* key, size_t key_size, const char* existing_value,
                        size_t existing_value_size, const char* const* operands,
                        const size_t* operand_sizes, int num_operands, unsigned char* success,
                        size_t* new_value_size),
    char* (*partial_merge)(void* state, const char* key, size_t key_size,
                           const char* const* operands, const size_t* operand_sizes,
                           int num_operands, unsigned char* success, size_t* new_value_size),
    void (*delete_value)(void* state, const char* value, size_t value_size),
    const char* (*name)(void* state)) {
  auto made = std::make_unique<nacre_mergeoperator_t>();
  made->rep = std::make_shared<CallbackMerge>(state, destructor, full_merge, partial_merge,
                                              delete_value, name);
  return made.release();
}

void nacre_mergeoperator_destroy(nacre_mergeoperator_t* merge_operator) {
  std::unique_ptr<nacre_mergeoperator_t> destroyed(merge_operator);
}

nacre_compactionfilter_t* nacre_compactionfilter_create(
    void* state, void (*destructor)(void* state),
    unsigned char (*filter)(void* state, int level, const char* key, size_t key_size,
                            const char* existing_value, size_t existing_value_size,
                            char** new_value, size_t* new_value_size, unsigned char* value_changed),
    const char* (*name)(void* state)) {
  auto made = std::make_unique<nacre_compactionfilter_t>();
  made->rep = std::make_unique<CallbackFilter>(state, destructor, filter, name);
  return made.release();
}

void nacre_compactionfilter_destroy(nacre_compactionfilter_t* filter) {
  std::unique_ptr<nacre_compactionfilter_t> destroyed(filter);
}

nacre_compactionfilterfactory_t* nacre_compactionfilterfactory_create(
    void* state, void (*destructor)(void* state),
    nacre_compactionfilter_t* (*create_filter)(void* state,
                                               const nacre_compactionfiltercontext_t* context),
    const char* (*name)(void* state)) {
  auto made = std::make_unique<nacre_compactionfilterfactory_t>();
  made->rep = std::make_shared<CallbackFilterFactory>(state, destructor, create_filter, name);
  return made.release();
}

void nacre_compactionfilterfactory_destroy(nacre_compactionfilterfactory_t* factory) {
  std::unique_ptr<nacre_compactionfilterfactory_t> destroyed(factory);
}

unsigned char nacre_compactionfiltercontext_is_full_compaction(
    const nacre_compactionfiltercontext_t* context) {
  return context->rep.is_full_compaction ? 1 : 0;
}

unsigned char nacre_compactionfiltercontext_is_manual_compaction(
    const nacre_compactionfiltercontext_t* context) {
  return context->rep.is_manual_compaction ? 1 : 0;
}

uint32_t nacre_compactionfiltercontext_column_family_id(
    const nacre_compactionfiltercontext_t* context) {
  return context->rep.column_family_id;
}

nacre_slicetransform_t* nacre_slicetransform_create_fixed_prefix(size_t prefix_size) {
  return Wrap(nacre::NewFixedPrefixTransform(prefix_size));
}

nacre_slicetransform_t* nacre_slicetransform_create_capped_prefix(size_t prefix_size) {
  return Wrap(nacre::NewCappedPrefixTransform(prefix_size));
}

nacre_slicetransform_t* nacre_slicetransform_create_noop(void) {
  return Wrap(nacre::NewNoopTransform());
}

nacre_slicetransform_t* nacre_slicetransform_create(
    void* state, void (*destructor)(void* state),
    char* (*transform)(void* state, const char* key, size_t key_size, size_t* prefix_size),
    unsigned char (*in_domain)(void* state, const char* key, size_t key_size),
    const char* (*name)(void* state)) {
  return Wrap(std::make_shared<CallbackTransform>(state, destructor, transform, in_domain, name));
}

void nacre_slicetransform_destroy(nacre_slicetransform_t* transform) {
  std::unique_ptr<nacre_slicetransform_t> destroyed(transform);
}
