#include "adapters/rocksdb/callbacks.h"

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/rocksdb/convert.h"

namespace nacre::rocksdb_api {
namespace {

std::string PrefixedName(const char* theirs) { return std::string("rocksdb.") + theirs; }

class MergeAdapter final : public nacre::MergeOperator {
 public:
  MergeAdapter(std::shared_ptr<rocksdb::MergeOperator> theirs,
               std::shared_ptr<rocksdb::Logger> logger)
      : theirs_(std::move(theirs)),
        logger_(std::move(logger)),
        name_(PrefixedName(theirs_->Name())) {}

  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override {
    const rocksdb::Slice key = ToRocksdb(in.key);
    rocksdb::Slice existing;
    if (in.existing_value != nullptr) existing = ToRocksdb(*in.existing_value);
    std::vector<rocksdb::Slice> operands;
    operands.reserve(in.operand_list.size());
    for (const nacre::Slice& operand : in.operand_list) operands.push_back(ToRocksdb(operand));
    // A null address says that an operand was not chosen; an empty operand has another one.
    rocksdb::Slice chosen(nullptr, 0);
    rocksdb::MergeOperator::MergeOperationOutput result(out->new_value, chosen);
    const rocksdb::MergeOperator::MergeOperationInput input(
        key, in.existing_value == nullptr ? nullptr : &existing, operands, logger_.get());
    if (!theirs_->FullMergeV2(input, &result)) return false;
    if (chosen.data() != nullptr) out->existing_operand = ToNacre(chosen);
    return true;
  }
  bool PartialMerge(const nacre::Slice& key, const nacre::Slice& left, const nacre::Slice& right,
                    std::string* new_value, nacre::Logger* /*logger*/) const override {
    return theirs_->PartialMerge(ToRocksdb(key), ToRocksdb(left), ToRocksdb(right), new_value,
                                 logger_.get());
  }
  bool PartialMergeMulti(const nacre::Slice& key, const std::deque<nacre::Slice>& operands,
                         std::string* new_value, nacre::Logger* /*logger*/) const override {
    std::deque<rocksdb::Slice> list;
    for (const nacre::Slice& operand : operands) list.push_back(ToRocksdb(operand));
    return theirs_->PartialMergeMulti(ToRocksdb(key), list, new_value, logger_.get());
  }
  const char* Name() const override { return name_.c_str(); }

 private:
  const std::shared_ptr<rocksdb::MergeOperator> theirs_;
  const std::shared_ptr<rocksdb::Logger> logger_;
  const std::string name_;
};

class FilterAdapter final : public nacre::CompactionFilter {
 public:
  /// `made` (may be null) is `theirs`, if this is to own it.
  FilterAdapter(const rocksdb::CompactionFilter* theirs,
                std::unique_ptr<rocksdb::CompactionFilter> made)
      : theirs_(theirs), made_(std::move(made)), name_(PrefixedName(theirs_->Name())) {}

  Decision FilterV2(int level, const nacre::Slice& key, ValueType /*value_type*/,
                    const nacre::Slice& existing_value, std::string* new_value,
                    std::string* skip_until) const override {
    using Theirs = rocksdb::CompactionFilter;
    switch (theirs_->FilterV2(level, ToRocksdb(key), Theirs::ValueType::kValue,
                              ToRocksdb(existing_value), new_value, skip_until)) {
      case Theirs::Decision::kRemove:
      case Theirs::Decision::kPurge:
        return Decision::kRemove;
      case Theirs::Decision::kRemoveAndSkipUntil:
        // RocksDB keeps a key that is not before `skip_until`. Those after it are asked for.
        return ToRocksdb(key).compare(*skip_until) < 0 ? Decision::kRemove : Decision::kKeep;
      case Theirs::Decision::kChangeValue:
        return Decision::kChangeValue;
      default:
        return Decision::kKeep;
    }
  }
  const char* Name() const override { return name_.c_str(); }

 private:
  const rocksdb::CompactionFilter* const theirs_;
  const std::unique_ptr<rocksdb::CompactionFilter> made_;
  const std::string name_;
};

class FilterFactoryAdapter final : public nacre::CompactionFilterFactory {
 public:
  /// One of the two is null.
  FilterFactoryAdapter(const rocksdb::CompactionFilter* filter,
                       std::shared_ptr<rocksdb::CompactionFilterFactory> factory)
      : filter_(filter),
        factory_(std::move(factory)),
        name_(PrefixedName(filter_ != nullptr ? filter_->Name() : factory_->Name())) {}

  std::unique_ptr<nacre::CompactionFilter> CreateCompactionFilter(
      const nacre::CompactionFilter::Context& context) override {
    if (filter_ != nullptr) return std::make_unique<FilterAdapter>(filter_, nullptr);
    constexpr auto kReason = rocksdb::TableFileCreationReason::kCompaction;
    if (!factory_->ShouldFilterTableFileCreation(kReason)) return nullptr;
    rocksdb::CompactionFilter::Context theirs;
    theirs.is_full_compaction = context.is_full_compaction;
    theirs.is_manual_compaction = context.is_manual_compaction;
    theirs.column_family_id = context.column_family_id;
    theirs.reason = kReason;
    std::unique_ptr<rocksdb::CompactionFilter> made = factory_->CreateCompactionFilter(theirs);
    if (made == nullptr) return nullptr;
    const rocksdb::CompactionFilter* const filter = made.get();
    return std::make_unique<FilterAdapter>(filter, std::move(made));
  }
  const char* Name() const override { return name_.c_str(); }

 private:
  const rocksdb::CompactionFilter* const filter_;
  const std::shared_ptr<rocksdb::CompactionFilterFactory> factory_;
  const std::string name_;
};

class LoggerAdapter final : public nacre::Logger {
 public:
  explicit LoggerAdapter(std::shared_ptr<rocksdb::Logger> theirs) : theirs_(std::move(theirs)) {}
  void Log(LogLevel level, std::string_view message) override {
    rocksdb::Log(ToRocksdb(level), theirs_.get(), "%.*s", static_cast<int>(message.size()),
                 message.data());
  }

 private:
  static rocksdb::InfoLogLevel ToRocksdb(LogLevel level) {
    switch (level) {
      case LogLevel::kDebug:
        return rocksdb::DEBUG_LEVEL;
      case LogLevel::kInfo:
        return rocksdb::INFO_LEVEL;
      case LogLevel::kWarn:
        return rocksdb::WARN_LEVEL;
      case LogLevel::kError:
        return rocksdb::ERROR_LEVEL;
    }
    return rocksdb::ERROR_LEVEL;
  }

  const std::shared_ptr<rocksdb::Logger> theirs_;
};

class PrefixAdapter final : public nacre::SliceTransform {
 public:
  explicit PrefixAdapter(std::shared_ptr<const rocksdb::SliceTransform> theirs)
      : theirs_(std::move(theirs)), name_(PrefixedName(theirs_->Name())) {}
  const char* Name() const override { return name_.c_str(); }
  nacre::Slice Transform(const nacre::Slice& key) const override {
    return ToNacre(theirs_->Transform(ToRocksdb(key)));
  }
  bool InDomain(const nacre::Slice& key) const override {
    return theirs_->InDomain(ToRocksdb(key));
  }

 private:
  const std::shared_ptr<const rocksdb::SliceTransform> theirs_;
  const std::string name_;
};

}  // namespace

std::shared_ptr<nacre::Logger> AdaptLogger(std::shared_ptr<rocksdb::Logger> theirs) {
  return std::make_shared<LoggerAdapter>(std::move(theirs));
}

std::shared_ptr<const nacre::SliceTransform> AdaptPrefixExtractor(
    std::shared_ptr<const rocksdb::SliceTransform> theirs) {
  return std::make_shared<PrefixAdapter>(std::move(theirs));
}

std::shared_ptr<nacre::MergeOperator> AdaptMergeOperator(
    std::shared_ptr<rocksdb::MergeOperator> theirs, std::shared_ptr<rocksdb::Logger> logger) {
  return std::make_shared<MergeAdapter>(std::move(theirs), std::move(logger));
}

std::shared_ptr<nacre::CompactionFilterFactory> AdaptCompactionFilter(
    const rocksdb::ColumnFamilyOptions& options) {
  if (options.compaction_filter != nullptr) {
    return std::make_shared<FilterFactoryAdapter>(options.compaction_filter, nullptr);
  }
  if (options.compaction_filter_factory == nullptr) return nullptr;
  return std::make_shared<FilterFactoryAdapter>(nullptr, options.compaction_filter_factory);
}

}  // namespace nacre::rocksdb_api
