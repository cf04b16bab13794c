#include "pool/wire/root_register.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "pool/wire/control.pb.h"
#include "util/planted_bug.h"

namespace nacre::pool {
namespace {

using Members = google::protobuf::RepeatedField<uint64_t>;

size_t CountOf(const Members& members, const std::set<uint64_t>& instances) {
  return static_cast<size_t>(std::count_if(members.begin(), members.end(), [&](uint64_t instance) {
    return instances.contains(instance);
  }));
}

std::set<uint64_t> InstancesOf(const std::vector<RootAnswer>& answers) {
  std::set<uint64_t> instances;
  for (const RootAnswer& answer : answers) instances.insert(answer.instance_id);
  return instances;
}

Status MoreThanHalf(size_t have, size_t all, const char* what) {
  if (2 * have > all) return Status::OK();
  if (NACRE_PLANTED_BUG("root.half-is-enough-to-open") && 2 * have == all) return Status::OK();
  return Status::Unavailable(
      fmt::format("{} of {} {} answer, more than half are needed", have, all, what));
}

}  // namespace

const RootAnswer* NewestRoot(const std::vector<RootAnswer>& answers) {
  const auto age = [](const RootAnswer& answer) {
    return std::tuple(answer.state.root().epoch(), answer.state.root().version());
  };
  const RootAnswer* newest = nullptr;
  for (const RootAnswer& answer : answers) {
    if (answer.state.root().epoch() == 0) continue;
    if (newest == nullptr ||
        (age(answer) > age(*newest) && !NACRE_PLANTED_BUG("root.first-value-preferred"))) {
      newest = &answer;
    }
  }
  return newest;
}

Status LeaveOneDatabase(int pool_nodes, std::vector<RootAnswer>* answers) {
  std::set<uint64_t> ids;
  for (const RootAnswer& answer : *answers) {
    if (answer.state.root().epoch() != 0) ids.insert(answer.state.database_id());
  }
  if (ids.size() <= 1) return Status::OK();
  std::set<uint64_t> destroyed;
  std::set<uint64_t> exist;
  for (const uint64_t id : ids) {
    std::vector<RootAnswer> of_it = *answers;
    for (RootAnswer& answer : of_it) {
      if (answer.state.database_id() != id) answer.state.clear_root();
    }
    const control::Root& root = NewestRoot(of_it)->state.root();
    if (IsDestroyed(root, of_it)) {
      destroyed.insert(id);
    } else if (CheckReadQuorum(&root, of_it, pool_nodes).ok()) {
      exist.insert(id);
    }
  }
  if (exist.size() > 1) {
    return Status::Corruption(fmt::format("the pool has {} databases of this name", exist.size()));
  }
  if (exist.empty() && destroyed.size() < ids.size()) return Status::OK();  // Too few answer.
  const uint64_t chosen =
      exist.empty() ? NewestRoot(*answers)->state.database_id() : *exist.begin();
  std::erase_if(*answers, [&](const RootAnswer& answer) {
    const uint64_t id = answer.state.database_id();
    return ids.contains(id) && id != chosen && !destroyed.contains(id);
  });
  for (RootAnswer& answer : *answers) {
    if (answer.state.database_id() != chosen) answer.state.clear_root();
  }
  return Status::OK();
}

Status CheckReadQuorum(const control::Root* root, const std::vector<RootAnswer>& answers,
                       int pool_nodes) {
  const std::set<uint64_t> instances = InstancesOf(answers);
  const size_t founders =
      root == nullptr ? static_cast<size_t>(pool_nodes) : root->founding_nodes();
  if (root == nullptr || founders > 0) {
    NACRE_RETURN_IF_ERROR(MoreThanHalf(instances.size(), founders, "nodes of the pool"));
  }
  if (root == nullptr) return Status::OK();
  for (const Members* members : {&root->members(), &root->old_members()}) {
    if (members->empty()) continue;
    NACRE_RETURN_IF_ERROR(MoreThanHalf(CountOf(*members, instances),
                                       static_cast<size_t>(members->size()),
                                       "nodes that keep the root"));
  }
  return Status::OK();
}

bool IsDestroyed(const control::Root& root, const std::vector<RootAnswer>& answers) {
  if (root.founding_nodes() > 0) return false;  // Few know of it because it is so new.
  std::set<uint64_t> without;
  for (const RootAnswer& answer : answers) {
    if (answer.state.root().epoch() == 0) without.insert(answer.instance_id);
  }
  const Members& members = root.old_members().empty() ? root.members() : root.old_members();
  return 2 * CountOf(members, without) > static_cast<size_t>(members.size());
}

bool IsWritten(const control::Root& root, const std::set<uint64_t>& acknowledged) {
  if (2 * acknowledged.size() < root.founding_nodes()) return false;
  const size_t spare = NACRE_PLANTED_BUG("root.one-node-too-few-to-write") ? 1 : 0;
  const auto half_of = [&](const Members& members) {
    return 2 * (CountOf(members, acknowledged) + spare) >= static_cast<size_t>(members.size());
  };
  return half_of(root.members()) && half_of(root.old_members());
}

}  // namespace nacre::pool
