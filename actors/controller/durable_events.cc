#include "actors/controller/durable_events.h"

namespace tandem::controller {
namespace {

struct Kind {
  std::string_view operator()(const JobTaken&) const { return "job_taken"; }
  std::string_view operator()(const RoleScaled&) const { return "role_scaled"; }
  std::string_view operator()(const AllocationKept&) const { return "allocation_kept"; }
  std::string_view operator()(const JobLeft&) const { return "job_left"; }
  std::string_view operator()(const IncarnationsReserved&) const { return "incarnations_reserved"; }
  std::string_view operator()(const NodeJoined&) const { return "node_joined"; }
  std::string_view operator()(const NodeLeft&) const { return "node_left"; }
  std::string_view operator()(const NodeCordoned&) const { return "node_cordoned"; }
  std::string_view operator()(const NodeUncordoned&) const { return "node_uncordoned"; }
  std::string_view operator()(const GpuCordoned&) const { return "gpu_cordoned"; }
  std::string_view operator()(const GpuUncordoned&) const { return "gpu_uncordoned"; }
  std::string_view operator()(const StateHashed&) const { return "state_hash"; }
  std::string_view operator()(const JobOver&) const { return "job_over"; }
  std::string_view operator()(const JobServes&) const { return "job_serves"; }
  std::string_view operator()(const ActorStarted&) const { return "actor_started"; }
  std::string_view operator()(const ActorLeaves&) const { return "actor_leaves"; }
  std::string_view operator()(const ActorEnded&) const { return "actor_ended"; }
};

struct Subject {
  std::string operator()(const JobTaken& e) const { return e.job; }
  std::string operator()(const RoleScaled& e) const { return e.job; }
  std::string operator()(const AllocationKept& e) const { return e.job; }
  std::string operator()(const JobLeft& e) const { return e.job; }
  std::string operator()(const IncarnationsReserved&) const { return ""; }
  std::string operator()(const NodeJoined& e) const { return e.node; }
  std::string operator()(const NodeLeft& e) const { return e.node; }
  std::string operator()(const NodeCordoned& e) const { return e.node; }
  std::string operator()(const NodeUncordoned& e) const { return e.node; }
  std::string operator()(const GpuCordoned& e) const { return e.node; }
  std::string operator()(const GpuUncordoned& e) const { return e.node; }
  std::string operator()(const StateHashed&) const { return ""; }
  std::string operator()(const JobOver& e) const { return e.job; }
  std::string operator()(const JobServes& e) const { return e.job; }
  std::string operator()(const ActorStarted& e) const { return e.actor; }
  std::string operator()(const ActorLeaves& e) const { return e.actor; }
  std::string operator()(const ActorEnded& e) const { return e.actor; }
};

}  // namespace

std::string_view kind_of(const DurableEvent& event) { return std::visit(Kind{}, event); }
std::string subject_of(const DurableEvent& event) { return std::visit(Subject{}, event); }

}  // namespace tandem::controller
