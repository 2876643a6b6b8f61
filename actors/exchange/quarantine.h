// Groups that crash the rollout that generates them, or make it hang, which counts as a crash. A
// crash puts the groups that were held under suspicion, the suspects are tried alone
// (generation.h), and the guilty one is discarded with the reason poison_prompt, like any other
// group that is given up. What is evidence, and what is proof, is in scheduler/fleet/suspects.h.
// Prompts of evaluations are in evaluation_suspects.h.
#pragma once

#include <string>
#include <vector>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

// What a rollout held when it crashed.
struct Suspected {
  std::vector<GroupId> groups;
  std::vector<std::int32_t> prompts;  // of evaluations, by their index
};

// Suspects what a rollout holds that has crashed; its leases have not ended yet. Returns these
// groups and prompts; none where the actor is no rollout, or has ended in another way.
Suspected suspect(Turn& turn, const messages::ActorDown& down);
// Discards those of them that the crash has proved guilty, once their leases have ended.
void quarantine(Turn& turn, const Suspected& suspects, const std::string& cause);

// Takes over what an exchange that has died had found out.
void remember_quarantined(Turn& turn);
// Whether the group's prompt was quarantined before, in an earlier epoch.
bool is_quarantined(const RunView& view, GroupId group);

// Whether the rollout has no work at all, so that a group would be alone there.
bool is_idle(const RunView& view, const WorkerFacts& rollout);
// Whether it holds a group, or a prompt of an evaluation, that is tried alone.
bool tries_alone(const RunView& view, const WorkerFacts& rollout);

std::string suspects_text(const RunView& view);  // for people; empty where nothing is tried alone

}  // namespace tandem::exchange
