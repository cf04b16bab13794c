#include "adapters/python/core_iterator.h"

#include <utility>
#include <vector>

namespace nacre::python {

namespace py = pybind11;

Iterator::Iterator(std::shared_ptr<Database> database, const ReadFrom& from, Range range,
                   std::shared_ptr<Turn> turn, const Maker& make)
    : database_(std::move(database)), range_(std::move(range)), turn_(std::move(turn)) {
  ReadOptions options;
  options.linearizable = from.linearizable;
  if (range_.start.has_value()) {
    start_ = *range_.start;
    options.iterate_lower_bound = &start_;
  }
  if (range_.stop.has_value()) {
    stop_ = *range_.stop;
    options.iterate_upper_bound = &stop_;
  }
  database_->With([&](DB* db) {
    if (from.snapshot != nullptr) options.snapshot = from.snapshot->Get();
    const std::lock_guard<std::recursive_mutex> lock(turn_->mutex);
    iterator_ = make(db, options);
    if (range_.reverse) {
      iterator_->SeekToLast();
    } else {
      iterator_->SeekToFirst();
    }
    const Status status = iterator_->status();
    if (!status.ok()) {
      iterator_.reset();  // The destructor will not run.
      Check(status);
    }
    turn_->iterators.insert(this);
    database_->Add(this);
  });
}

Iterator::~Iterator() { Close(); }

void Turn::CutIterators() {
  for (Iterator* iterator : iterators) iterator->iterator_.reset();
  iterators.clear();
}

void Iterator::End(DB*) {
  const std::lock_guard<std::recursive_mutex> lock(turn_->mutex);
  turn_->iterators.erase(this);
  iterator_.reset();
}

void Iterator::Close() {
  database_->IfOpen([this](DB* db) {
    database_->Remove(this);
    End(db);
  });
}

template <typename Work>
void Iterator::With(const Work& work) {
  database_->With([&](DB*) {
    const std::lock_guard<std::recursive_mutex> lock(turn_->mutex);
    if (iterator_ == nullptr) throw StatusFailure(kClosed, "the iterator is closed");
    work(iterator_.get());
  });
}

py::list Iterator::Fetch(size_t count, Part part) {
  constexpr size_t kBytesMax = 1 << 20;  // The limit of one piece, which its last entry may exceed.
  std::vector<std::pair<std::string, std::string>> entries;
  With([&](nacre::Iterator* iterator) {
    for (size_t bytes = 0; entries.size() < count && bytes < kBytesMax && iterator->Valid();) {
      entries.emplace_back();
      auto& [key, value] = entries.back();
      if (part != Part::kValues) key = iterator->key().ToStringView();
      if (part != Part::kKeys) value = iterator->value().ToStringView();
      bytes += key.size() + value.size();
      range_.reverse ? iterator->Prev() : iterator->Next();
    }
    // What was read before a failure is handed out first; it is met again by the next call.
    if (entries.empty()) Check(iterator->status());
  });
  py::list list;
  for (const auto& [key, value] : entries) {
    switch (part) {
      case Part::kKeys:
        list.append(ToBytes(key));
        break;
      case Part::kValues:
        list.append(ToBytes(value));
        break;
      case Part::kItems:
        list.append(py::make_tuple(ToBytes(key), ToBytes(value)));
        break;
    }
  }
  return list;
}

void Iterator::Seek(const py::handle& key) {
  const ByteView bytes(key);
  With([&](nacre::Iterator* iterator) {
    range_.reverse ? iterator->SeekForPrev(bytes.slice()) : iterator->Seek(bytes.slice());
    Check(iterator->status());
  });
}

}  // namespace nacre::python
