#include "actors/controller/durable.h"

#include <algorithm>
#include <span>

#include "runtime/base/digest.h"
#include "runtime/wire/codec.h"

namespace tandem::controller {

std::pair<std::string, std::string> names_below(const std::string& prefix) {
  return {prefix + "/", prefix + "0"};  // '0' follows '/'
}

std::string job_of_actor(const std::string& actor) { return actor.substr(0, actor.find('/')); }

void DurableState::apply(const DurableEvent& event) {
  std::visit([this](const auto& e) { on(e); }, event);
}

const JobTaken* DurableState::job(const std::string& id) const {
  if (!known_.contains(id)) return nullptr;
  const auto it = std::ranges::find(jobs_, id, &JobTaken::job);
  return it == jobs_.end() ? nullptr : &*it;
}

const JobOver* DurableState::outcome(const std::string& job) const {
  const auto it = over_.find(job);
  return it == over_.end() ? nullptr : &it->second;
}

const AllocationKept* DurableState::allocation(const std::string& job) const {
  const auto it = allocations_.find(job);
  return it == allocations_.end() ? nullptr : &it->second;
}

std::vector<std::string> DurableState::endpoints_of(const std::string& job) const {
  const auto it = serves_.find(job);
  return it == serves_.end() ? std::vector<std::string>{} : it->second;
}

DurableState::Actors DurableState::actors_of(const std::string& job) const {
  const auto [from, behind] = names_below(job);
  return {actors_.lower_bound(from), actors_.lower_bound(behind)};
}

std::vector<ActorEnded> DurableState::deaths_of(const std::string& job) const {
  const auto it = deaths_.find(job);
  if (it == deaths_.end()) return {};
  return {it->second.begin(), it->second.end()};
}

// A job that is taken up again keeps its place.
void DurableState::on(const JobTaken& event) {
  const auto it = std::ranges::find(jobs_, event.job, &JobTaken::job);
  if (it == jobs_.end())
    jobs_.push_back(event), known_.insert(event.job);
  else
    *it = event;
}

void DurableState::on(const RoleScaled& event) {
  const auto it = std::ranges::find(jobs_, event.job, &JobTaken::job);
  if (it != jobs_.end()) it->wanted[name(event.role)] = event.replicas;
}

void DurableState::on(const AllocationKept& event) {
  if (known_.contains(event.job)) allocations_[event.job] = event;
}

void DurableState::on(const JobLeft& event) {
  if (known_.erase(event.job) > 0)
    std::erase_if(jobs_, [&](const JobTaken& job) { return job.job == event.job; });
  over_.erase(event.job);
  allocations_.erase(event.job);
  serves_.erase(event.job);
  const auto [from, behind] = names_below(event.job);
  actors_.erase(actors_.lower_bound(from), actors_.lower_bound(behind));
  deaths_.erase(event.job);
}

void DurableState::on(const JobOver& event) {
  if (known_.contains(event.job)) over_[event.job] = event;
}

void DurableState::on(const JobServes& event) {
  if (known_.contains(event.job)) serves_[event.job] = event.endpoints;
}

void DurableState::on(const ActorStarted& event) {
  const std::string job = job_of_actor(event.actor);
  if (job == event.actor) return;  // the name of a job would not go with the job's actors
  if (known_.contains(job)) actors_[event.actor] = {.started = event};
}

void DurableState::on(const ActorLeaves& event) {
  const auto it = actors_.find(event.actor);
  if (it != actors_.end() && it->second.started.incarnation == event.incarnation)
    it->second.leaves = event;
}

void DurableState::on(const ActorEnded& event) {
  const std::string of = job_of_actor(event.actor);
  if (!known_.contains(of)) return;
  const auto it = actors_.find(event.actor);
  const bool known = it != actors_.end() && it->second.started.incarnation == event.incarnation;
  // No death is kept of an actor that has finished: a state that is written anew would lack it.
  if (!known && it != actors_.end() && it->second.finished) return;
  if (known && event.how == ActorEnd::kFinished)
    it->second.finished = true;
  else if (known)
    actors_.erase(it);
  if (event.how == ActorEnd::kDied) {
    auto& deaths = deaths_[of];
    deaths.insert(event);
    if (deaths.size() > kDeathsMax) deaths.erase(deaths.begin());
  } else if (known && event.how != ActorEnd::kReplaced) {
    forget_deaths(event.actor);
  }
}

void DurableState::forget_deaths(const std::string& actor) {
  const auto of_job = deaths_.find(job_of_actor(actor));
  if (of_job == deaths_.end()) return;
  std::erase_if(of_job->second, [&](const ActorEnded& death) { return death.actor == actor; });
  if (of_job->second.empty()) deaths_.erase(of_job);
}

void DurableState::on(const IncarnationsReserved& event) {
  incarnation_last_ = std::max(incarnation_last_, event.last);
}

void DurableState::on(const NodeJoined& event) { nodes_.insert(event.node); }
void DurableState::on(const NodeLeft& event) { nodes_.erase(event.node); }
void DurableState::on(const NodeCordoned& event) { cordoned_[event.node] = event.why; }
void DurableState::on(const NodeUncordoned& event) {
  cordoned_.erase(event.node);
  cordoned_gpus_.erase(event.node);
}
void DurableState::on(const GpuCordoned& event) {
  auto& gpus = cordoned_gpus_[event.node];
  if (gpus.size() < kCordonedGpusMax || gpus.contains(event.gpu)) gpus[event.gpu] = event.why;
}
void DurableState::on(const GpuUncordoned& event) {
  const auto of_node = cordoned_gpus_.find(event.node);
  if (of_node == cordoned_gpus_.end()) return;
  of_node->second.erase(event.gpu);
  if (of_node->second.empty()) cordoned_gpus_.erase(of_node);
}

std::vector<DurableEvent> DurableState::events() const {
  std::vector<DurableEvent> events(jobs_.begin(), jobs_.end());
  for (const auto& [job, over] : over_) events.emplace_back(over);
  for (const auto& [job, kept] : allocations_) events.emplace_back(kept);
  for (const auto& [job, endpoints] : serves_) events.emplace_back(JobServes{job, endpoints});
  // Deaths come before the incarnations that live: none of them is the end of one.
  for (const auto& [job, deaths] : deaths_)
    events.insert(events.end(), deaths.begin(), deaths.end());
  for (const auto& [name, actor] : actors_) {
    events.emplace_back(actor.started);
    const Incarnation incarnation = actor.started.incarnation;
    if (actor.leaves) events.emplace_back(*actor.leaves);
    if (actor.finished)
      events.emplace_back(
          ActorEnded{.actor = name, .incarnation = incarnation, .how = ActorEnd::kFinished});
  }
  for (const std::string& node : nodes_) events.emplace_back(NodeJoined{node});
  for (const auto& [node, why] : cordoned_) events.emplace_back(NodeCordoned{node, why});
  for (const auto& [node, gpus] : cordoned_gpus_)
    for (const auto& [gpu, why] : gpus) events.emplace_back(GpuCordoned{node, gpu, why});
  if (incarnation_last_ > 0) events.emplace_back(IncarnationsReserved{incarnation_last_});
  return events;
}

std::uint64_t DurableState::hash() const {
  Checksum64 sum;
  for (const DurableEvent& event : events()) {
    const std::string bytes = wire::encode(event);
    sum.update(std::as_bytes(std::span(bytes)));
  }
  return sum.value();
}

}  // namespace tandem::controller
