// The part of the controller's state that a later controller needs to take its jobs up again, and
// the one function that changes it. Each change is an event, which the controller journals
// (Remember, controller_events.h). Pure, one thread.
//
//   CC-5  What a reader of these events has is what the living controller knows: its jobs that have
//         not ended, what users want of them, its nodes, and an incarnation that no actor has had.
//
// Actors and their ranks are not in it yet: they end with their controller, and their jobs go on
// from their journals and checkpoints.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/messages/roles.h"
#include "runtime/wire/fields.h"

namespace tandem::controller {

// The fields of the events below are a schema; a change of them takes another number.
inline constexpr std::int64_t kDurableSchema = 1;

// A user has submitted the job, or an earlier controller had it.
struct JobTaken {
  std::string job;
  std::string run_dir;
  std::string yaml;  // JobShape::yaml, since job.yaml is that of the last time the run went on
  std::int64_t submitted_ms = 0;               // since 1970; of the first submission
  std::map<std::string, std::int32_t> wanted;  // actors, by the name of their role
  auto operator<=>(const JobTaken&) const = default;
};
TANDEM_WIRE(JobTaken, job, run_dir, yaml, submitted_ms, wanted)
struct RoleScaled {
  std::string job;
  messages::Role role;
  std::int32_t replicas = 0;
};
TANDEM_WIRE(RoleScaled, job, role, replicas)
// The job has ended, or its user wants it to: no later controller takes it up.
struct JobLeft {
  std::string job;
};
TANDEM_WIRE(JobLeft, job)
// No incarnation up to `last` may be given to an actor by a later controller. They are reserved
// many at a time, so that a start of an actor is seldom a write.
struct IncarnationsReserved {
  std::uint64_t last = 0;
};
TANDEM_WIRE(IncarnationsReserved, last)
struct NodeJoined {
  std::string node;
};
TANDEM_WIRE(NodeJoined, node)
struct NodeLeft {
  std::string node;
};
TANDEM_WIRE(NodeLeft, node)
// The node takes no new actor until NodeUncordoned, also if it goes and comes back.
struct NodeCordoned {
  std::string node;
  std::string why;  // a clause for people
};
TANDEM_WIRE(NodeCordoned, node, why)
struct NodeUncordoned {
  std::string node;
};
TANDEM_WIRE(NodeUncordoned, node)

using DurableEvent = std::variant<JobTaken, RoleScaled, JobLeft, IncarnationsReserved, NodeJoined,
                                  NodeLeft, NodeCordoned, NodeUncordoned>;

// The name of the event's kind, and the job or node that it is about, for people who read the
// journal.
std::string_view kind_of(const DurableEvent& event);  // "job_taken"
std::string subject_of(const DurableEvent& event);    // empty where it is about neither

class DurableState {
 public:
  // An event that does not fit, as one about a job that has left, changes nothing: a file may have
  // been damaged.
  void apply(const DurableEvent& event);

  // The jobs that have not left, in the order in which they were submitted.
  const std::vector<JobTaken>& jobs() const { return jobs_; }
  const JobTaken* job(const std::string& id) const;  // null where it has left
  const std::set<std::string>& nodes() const { return nodes_; }
  const std::map<std::string, std::string>& cordoned() const { return cordoned_; }  // and why
  std::uint64_t incarnation_last() const { return incarnation_last_; }

  // The fewest events that give this state.
  std::vector<DurableEvent> events() const;

  bool operator==(const DurableState&) const = default;

 private:
  void on(const JobTaken& event);
  void on(const RoleScaled& event);
  void on(const JobLeft& event);
  void on(const IncarnationsReserved& event);
  void on(const NodeJoined& event);
  void on(const NodeLeft& event);
  void on(const NodeCordoned& event);
  void on(const NodeUncordoned& event);

  std::vector<JobTaken> jobs_;
  std::set<std::string> nodes_;
  std::map<std::string, std::string> cordoned_;
  std::uint64_t incarnation_last_ = 0;
};

}  // namespace tandem::controller
