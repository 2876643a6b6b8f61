#include "actors/controller/durable.h"

#include <algorithm>

namespace tandem::controller {

namespace {

struct Kind {
  std::string_view operator()(const JobTaken&) const { return "job_taken"; }
  std::string_view operator()(const RoleScaled&) const { return "role_scaled"; }
  std::string_view operator()(const JobLeft&) const { return "job_left"; }
  std::string_view operator()(const IncarnationsReserved&) const { return "incarnations_reserved"; }
  std::string_view operator()(const NodeJoined&) const { return "node_joined"; }
  std::string_view operator()(const NodeLeft&) const { return "node_left"; }
  std::string_view operator()(const NodeCordoned&) const { return "node_cordoned"; }
  std::string_view operator()(const NodeUncordoned&) const { return "node_uncordoned"; }
};

struct Subject {
  std::string operator()(const JobTaken& e) const { return e.job; }
  std::string operator()(const RoleScaled& e) const { return e.job; }
  std::string operator()(const JobLeft& e) const { return e.job; }
  std::string operator()(const IncarnationsReserved&) const { return ""; }
  std::string operator()(const NodeJoined& e) const { return e.node; }
  std::string operator()(const NodeLeft& e) const { return e.node; }
  std::string operator()(const NodeCordoned& e) const { return e.node; }
  std::string operator()(const NodeUncordoned& e) const { return e.node; }
};

}  // namespace

std::string_view kind_of(const DurableEvent& event) { return std::visit(Kind{}, event); }
std::string subject_of(const DurableEvent& event) { return std::visit(Subject{}, event); }

void DurableState::apply(const DurableEvent& event) {
  std::visit([this](const auto& e) { on(e); }, event);
}

const JobTaken* DurableState::job(const std::string& id) const {
  const auto it = std::ranges::find(jobs_, id, &JobTaken::job);
  return it == jobs_.end() ? nullptr : &*it;
}

// A job that is taken up again keeps its place.
void DurableState::on(const JobTaken& event) {
  const auto it = std::ranges::find(jobs_, event.job, &JobTaken::job);
  if (it == jobs_.end())
    jobs_.push_back(event);
  else
    *it = event;
}

void DurableState::on(const RoleScaled& event) {
  const auto it = std::ranges::find(jobs_, event.job, &JobTaken::job);
  if (it != jobs_.end()) it->wanted[name(event.role)] = event.replicas;
}

void DurableState::on(const JobLeft& event) {
  std::erase_if(jobs_, [&](const JobTaken& job) { return job.job == event.job; });
}

void DurableState::on(const IncarnationsReserved& event) {
  incarnation_last_ = std::max(incarnation_last_, event.last);
}

void DurableState::on(const NodeJoined& event) { nodes_.insert(event.node); }
void DurableState::on(const NodeLeft& event) { nodes_.erase(event.node); }
void DurableState::on(const NodeCordoned& event) { cordoned_[event.node] = event.why; }
void DurableState::on(const NodeUncordoned& event) { cordoned_.erase(event.node); }

std::vector<DurableEvent> DurableState::events() const {
  std::vector<DurableEvent> events(jobs_.begin(), jobs_.end());
  for (const std::string& node : nodes_) events.emplace_back(NodeJoined{node});
  for (const auto& [node, why] : cordoned_) events.emplace_back(NodeCordoned{node, why});
  if (incarnation_last_ > 0) events.emplace_back(IncarnationsReserved{incarnation_last_});
  return events;
}

}  // namespace tandem::controller
