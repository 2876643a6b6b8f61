// Evaluations of a run: which version is evaluated when, which rollouts generate the prompts, which
// rewards score the completions, and which figures stay. Evaluations are outside the ledger: no
// group of theirs is admitted, leased or trained.
//
//   EX-3  An evaluation is pinned to one version, which stays published until every prompt is
//         generated: training waits for it only where the publisher's K + 2 places are taken. A
//         rollout generates groups of the same version beside it (work_queue.h, WQ-5).
#pragma once

#include "actors/exchange/turn.h"

namespace tandem::exchange {

// Begins an evaluation; nothing where the job has no validation prompts, or where the run has had
// its one evaluation of this kind.
void start_evaluation(Turn& turn, EvaluationKind kind, PolicyVersion version);
// Announces new versions to rollouts and hands evaluations out.
void run_evaluations(Turn& turn);

void take(Turn& turn, messages::Evaluated evaluated);
void take(Turn& turn, const messages::TextsScored& scored);

}  // namespace tandem::exchange
