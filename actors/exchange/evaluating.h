// Evaluations of a run: which version is evaluated when, which rollouts generate the prompts, which
// rewards score the completions, and which figures stay. Evaluations are outside the ledger: no
// group of theirs is admitted, leased or trained.
//
//   EX-3  An evaluation is pinned to one version, which stays published until every prompt is
//         generated: training waits for it only where the publisher's K + 2 places are taken. A
//         rollout generates groups of the same version beside it (work_queue.h, WQ-5).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

inline constexpr std::size_t kEvaluationChunk = 256;  // completions or texts per message

// Begins an evaluation; nothing where the job has no validation prompts, or where the run has had
// its one evaluation of this kind.
void start_evaluation(Turn& turn, EvaluationKind kind, PolicyVersion version);
// Announces new versions to rollouts and hands evaluations out.
void run_evaluations(Turn& turn);

// Gives waiting prompts to the rollouts that can generate this version.
void evaluate_by_rollouts(Turn& turn, Evaluation& evaluation);
// Gives prompts that are to be tried alone to rollouts that are idle after all leases: those that
// were kept for them, and those for which there is nothing else.
void try_prompts_alone(Turn& turn);
// Takes the scores of completions that this actor was given, and writes samples of them.
void keep_scores(Turn& turn, messages::EvaluationId evaluation, const std::string& actor,
                 const std::vector<messages::TextScore>& scores);

void take(Turn& turn, messages::Evaluated evaluated);

}  // namespace tandem::exchange
