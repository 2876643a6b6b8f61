// Prompts of an evaluation that crash the rollout that generates them. As with groups
// (quarantine.h), a crash puts the prompts that were held under suspicion, suspects are tried
// alone, and the prompt that is proved to crash engines is given up: its completions fail with the
// reason poison_prompt, in this evaluation and in the later ones of the run.
//
// Evaluations are outside the journal, and so is this: an exchange that follows another one begins
// its evaluations anew, and must learn anew which prompts crash engines.
//
//   PQ-4  A prompt of an evaluation is given up by the same rules as a group (PQ-1, PQ-2), and no
//         work is beside it in the engine while it is tried alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

// How many prompts of evaluations a rollout holds at most while any prompt is suspected: if one of
// them crashes it again, no more than these have to be tried alone.
inline constexpr std::size_t kSuspectsAtOnce = 8;

// Whether the rollout is here and can have the version of the evaluation.
bool can_evaluate(const RunView& view, const Evaluation& evaluation, const WorkerFacts& rollout);
// Whether its engine has generated anything in this incarnation.
bool has_worked(const RunView& view, const WorkerFacts& rollout);
// The prompts, by their index, that a rollout generates for evaluations.
std::vector<std::int32_t> prompts_held(const RunView& view, const std::string& rollout);
// Whether one of them is tried alone.
bool evaluates_alone(const RunView& view, const std::string& rollout);
// The rollout that gets no other work, until it is idle and can try a prompt alone. It is one whose
// engine has worked, so that its end would mean something.
std::optional<std::string> kept_for_trial(const RunView& view);
// Gives up those of them that the last crash has proved to crash engines.
void quarantine_prompts(Turn& turn, const std::vector<std::int32_t>& suspects,
                        const std::string& cause);

// For people. `cause` is that of the last crash.
std::string poison_text(const scheduler::Suspicion& suspicion, const std::string& cause);
std::string evaluation_prompt_text(std::int32_t index);
// The event, and what `why` says of it from now on. `what`: "group 7", for instance.
void tell_quarantined(Turn& turn, const std::string& what, const std::string& why,
                      const std::string& prompt);

}  // namespace tandem::exchange
