// Whether what a wish of a user asks for survives the controller (CC-6), by what a reader of its
// journal has. Other questions change nothing that must survive.
#pragma once

#include <variant>

#include "actors/controller/controller.h"

namespace tandem::controller {

template <class Question>
bool is_kept(const DurableState&, const Question&, const typename Question::Reply&) {
  return true;
}
inline bool is_kept(const DurableState& reader, const Submit&, const std::string& job) {
  return reader.knows(job);
}
inline bool is_kept(const DurableState& reader, const Scale& wish, const Nothing&) {
  const JobTaken* const job = reader.job(wish.scale.job);
  if (wish.scale.automatic) {
    const AllocationKept* const kept = reader.allocation(wish.scale.job);
    return !kept || kept->automatic;  // null: the job is as it was submitted, or has left
  }
  return !job || job->wanted.at(name(wish.scale.role)) == wish.scale.replicas;  // null: it has left
}
inline bool is_kept(const DurableState& reader, const Cancel& wish, const Nothing&) {
  return !reader.knows(wish.job);
}
inline bool is_kept(const DurableState& reader, const Cordon& wish, const Nothing&) {
  if (const auto* const uncordon = std::get_if<UncordonNode>(&wish.request))
    return !reader.cordoned().contains(uncordon->node);
  return reader.cordoned().contains(std::get<CordonNode>(wish.request).node);
}

}  // namespace tandem::controller
