// The part of the controller's state that a later controller needs to take its jobs up again, and
// the one function that changes it. Each change is an event, which the controller journals
// (Remember, controller_events.h). Pure, one thread.
//
//   CC-5  What a reader of these events has is what the living controller knows: its jobs that have
//         not ended, what users want of them, where each of their actors runs, how often those have
//         died, its nodes, and an incarnation that no actor has had.
//   CC-7  Equal states have one hash(), which depends on every fact.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/controller/durable_events.h"

namespace tandem::controller {

// Names that begin with "JOB/": from the first to the second, which is behind the last.
std::pair<std::string, std::string> names_below(const std::string& prefix);
std::string job_of_actor(const std::string& actor);  // "JOB" of "JOB/counter/0"

class DurableState {
 public:
  // An actor that runs or has finished.
  struct Actor {
    ActorStarted started;
    std::optional<ActorLeaves> leaves = {};
    bool finished = false;
    bool operator==(const Actor&) const = default;
  };
  using Actors = std::map<std::string, Actor>;  // by name
  // Deaths of a job's actors that are kept: the newest, more than any restart budget looks at.
  static constexpr std::size_t kDeathsMax = 256;
  // Marks of GPUs of a node, also of such as it has no more; a further one is not kept.
  static constexpr std::size_t kCordonedGpusMax = 1024;

  // An event that does not fit, as one about a job that has left, changes nothing: a file may have
  // been damaged.
  void apply(const DurableEvent& event);

  // The jobs that have not left, in the order in which they were submitted.
  const std::vector<JobTaken>& jobs() const { return jobs_; }
  const JobTaken* job(const std::string& id) const;  // null where it has left
  bool knows(const std::string& job) const { return known_.contains(job); }
  const JobOver* outcome(const std::string& job) const;            // null where it has none yet
  const AllocationKept* allocation(const std::string& job) const;  // null where none was kept
  std::vector<std::string> endpoints_of(const std::string& job) const;  // JobServes
  const Actors& actors() const { return actors_; }
  Actors actors_of(const std::string& job) const;
  std::vector<ActorEnded> deaths_of(const std::string& job) const;  // in their order
  const std::set<std::string>& nodes() const { return nodes_; }
  const std::map<std::string, std::string>& cordoned() const { return cordoned_; }  // and why
  // Of each node the uuids of its cordoned GPUs, and why.
  using CordonedGpus = std::map<std::string, std::map<std::string, std::string>>;
  const CordonedGpus& cordoned_gpus() const { return cordoned_gpus_; }
  std::uint64_t incarnation_last() const { return incarnation_last_; }

  // The fewest events that give this state.
  std::vector<DurableEvent> events() const;
  std::uint64_t hash() const;  // of events(), in time proportional to them

  bool operator==(const DurableState&) const = default;

 private:
  void on(const JobTaken& event);
  void on(const RoleScaled& event);
  void on(const AllocationKept& event);
  void on(const JobLeft& event);
  void on(const IncarnationsReserved& event);
  void on(const JobOver& event);
  void on(const JobServes& event);
  void on(const ActorStarted& event);
  void on(const ActorLeaves& event);
  void on(const ActorEnded& event);
  void on(const NodeJoined& event);
  void on(const NodeLeft& event);
  void on(const NodeCordoned& event);
  void on(const NodeUncordoned& event);
  void on(const GpuCordoned& event);
  void on(const GpuUncordoned& event);
  void on(const StateHashed&) {}  // whoever reads a journal compares it

  void forget_deaths(const std::string& actor);

  struct InTime {
    bool operator()(const ActorEnded& a, const ActorEnded& b) const {
      return std::tie(a.died, a.actor, a.incarnation) < std::tie(b.died, b.actor, b.incarnation);
    }
  };
  std::vector<JobTaken> jobs_;
  std::set<std::string> known_;                             // their ids
  std::map<std::string, JobOver> over_;                     // by job
  std::map<std::string, AllocationKept> allocations_;       // by job
  std::map<std::string, std::vector<std::string>> serves_;  // endpoints, by job
  Actors actors_;
  std::map<std::string, std::set<ActorEnded, InTime>> deaths_;  // by job; none is empty
  std::set<std::string> nodes_;
  std::map<std::string, std::string> cordoned_;
  CordonedGpus cordoned_gpus_;  // no map in it is empty
  std::uint64_t incarnation_last_ = 0;
};

}  // namespace tandem::controller
