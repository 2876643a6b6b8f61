// The parts of evaluations that actors have, and for how long a rollout may have one without any
// progress. It has lost its prompts if it neither generates a token nor answers for as long as a
// lease lasts: it is then ended, and its prompts are asked of others (end_idle_holders, workers.h).
// That must be seen kPartLooks times, so that a clock that jumps, as of a machine that was asleep,
// ends nobody. A reward actor has no such limit: each score has a timeout of its own. Pure.
#pragma once

#include <optional>
#include <string>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

inline constexpr int kPartLooks = 10;  // during a lease

// Whether the actor generates or scores a part of an evaluation.
bool has_part(const RunView& view, const std::string& actor);
// When a rollout that has prompts of evaluations counts as having lost them, at the latest; nothing
// where it has no prompts.
std::optional<Time> part_deadline(const RunView& view, const std::string& rollout);
// The rollout cannot be heard, or waits for something else than its engine: a version that it
// installs first, or room. Those waits have limits of their own.
bool is_held_up(const RunView& view, const WorkerFacts& rollout);

}  // namespace tandem::exchange
