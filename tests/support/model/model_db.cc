#include "tests/support/model/model_db.h"

namespace nacre {

void ModelDB::Put(const std::string& key, std::string value) {
  keys_[key].push_back({++now_, std::make_shared<const std::string>(std::move(value))});
}

void ModelDB::Delete(const std::string& key) {
  ++now_;
  // A key that never existed needs no entry.
  const auto found = keys_.find(key);
  if (found != keys_.end()) found->second.push_back({now_, nullptr});
}

void ModelDB::Merge(const std::string& key, const std::string& operand) {
  const Value before = Get(key, now_);
  Put(key, before == nullptr ? operand : *before + "," + operand);
}

void ModelDB::DeleteRange(const std::string& begin, const std::string& end) {
  ++now_;
  if (!keys_.key_comp()(begin, end)) return;
  for (auto at = keys_.lower_bound(begin); at != keys_.lower_bound(end); ++at) {
    at->second.push_back({now_, nullptr});
  }
}

ModelDB::Value ModelDB::At(const Versions& versions, uint64_t time) {
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    if (version->time <= time) return version->value;
  }
  return nullptr;
}

ModelDB::Value ModelDB::Get(const std::string& key, uint64_t time) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? nullptr : At(found->second, time);
}

ModelDB::Pairs ModelDB::Visible(uint64_t time, const std::optional<std::string>& lower,
                                const std::optional<std::string>& upper) const {
  Pairs pairs;
  const auto end = upper ? keys_.lower_bound(*upper) : keys_.end();
  auto at = lower ? keys_.lower_bound(*lower) : keys_.begin();
  if (lower && upper && !keys_.key_comp()(*lower, *upper)) return pairs;
  for (; at != end; ++at) {
    if (Value value = At(at->second, time)) pairs.emplace_back(at->first, std::move(value));
  }
  return pairs;
}

void ModelDB::Forget(const std::set<uint64_t>& times) {
  for (auto key = keys_.begin(); key != keys_.end();) {
    Versions& versions = key->second;
    Versions kept;
    for (size_t i = 0; i < versions.size(); ++i) {
      // Version i is visible from its time until the next one's.
      const bool last = i + 1 == versions.size();
      const auto seen = times.lower_bound(versions[i].time);
      if (last || (seen != times.end() && *seen < versions[i + 1].time)) {
        kept.push_back(std::move(versions[i]));
      }
    }
    const bool gone = kept.size() == 1 && kept[0].value == nullptr;
    versions = std::move(kept);
    key = gone ? keys_.erase(key) : std::next(key);
  }
}

}  // namespace nacre
