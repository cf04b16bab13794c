#include "table/iterator/sequence_window.h"

#include <utility>
#include <vector>

namespace nacre {
namespace {

class WindowIterator final : public InternalIterator {
 public:
  WindowIterator(std::unique_ptr<InternalIterator> base, const SequenceWindow& window)
      : base_(std::move(base)), window_(window) {}

  void SeekToFirst() override {
    base_->SeekToFirst();
    SkipForward();
  }
  void SeekToLast() override {
    base_->SeekToLast();
    SkipBackward();
  }
  void PrepareSeek(const Slice& internal_key, const Slice* upper_bound) override {
    base_->PrepareSeek(internal_key, upper_bound);
  }
  void Seek(const Slice& internal_key) override {
    base_->Seek(internal_key);
    SkipForward();
  }
  void SeekForPrev(const Slice& internal_key) override {
    base_->SeekForPrev(internal_key);
    SkipBackward();
  }
  Status status() const override { return base_->status(); }

 private:
  bool Has(const InternalEntry& entry) const { return window_.Has(TagSequence(entry.tag)); }

  void NextRun() override {
    base_->MoveTo(at());
    base_->Next();
    SkipForward();
  }
  void PrevRun() override {
    base_->MoveTo(at());
    base_->Prev();
    SkipBackward();
  }
  void SkipForward() {
    while (base_->Valid() && !Has(*base_->at())) base_->Next();
    Show();
  }
  void SkipBackward() {
    while (base_->Valid() && !Has(*base_->at())) base_->Prev();
    Show();
  }
  /// As much of the base's run around its entry as the window has.
  void Show() {
    if (!base_->Valid()) return ShowNothing();
    const InternalEntry* begin = base_->at();
    const InternalEntry* end = begin + 1;
    while (begin != base_->run_begin() && Has(*(begin - 1))) --begin;
    while (end != base_->run_end() && Has(*end)) ++end;
    ShowRun(begin, base_->at(), end);
  }

  const std::unique_ptr<InternalIterator> base_;
  const SequenceWindow window_;
};

}  // namespace

std::unique_ptr<InternalIterator> NewWindowIterator(std::unique_ptr<InternalIterator> base,
                                                    const SequenceWindow& window) {
  return std::make_unique<WindowIterator>(std::move(base), window);
}

RangeTombstones TombstonesIn(const Comparator* comparator, const RangeTombstones& tombstones,
                             const SequenceWindow& window) {
  std::vector<RangeTombstone> found;
  for (const RangeTombstones::ListedFragment& fragment : tombstones.Listed()) {
    for (const SequenceNumber sequence : fragment.sequences) {
      if (window.Has(sequence)) found.push_back({fragment.begin, fragment.end, sequence});
    }
  }
  return {comparator, std::move(found)};
}

}  // namespace nacre
