// Published versions, as rollouts are told of them, and the conversation with the ranks that
// broadcast them. Nothing here waits for a broadcast: a rollout whose NewVersion names no broadcast
// fetches the version.
//
// A version that somebody needs and that the publisher has lost is published again: at once if the
// learner holds it, else when the learner has trained up to it again (scheduler/fleet/
// version_supply.h).
//
// A version that a rollout finds damaged counts as lost.
//
//   EX-4  A version's place in a broadcast is told once to each rollout that the broadcast reaches.
#pragma once

#include "actors/exchange/turn.h"

namespace tandem::exchange {

void take(Turn& turn, const messages::BroadcastEvents& event);

// Sends what the broadcast groups want sent now.
void order_broadcasts(Turn& turn);
// Counts a publication, and keeps its place in a broadcast and its probe.
void note_publication(Turn& turn, const messages::Publication& publication,
                      const std::vector<float>& probe);
// Keeps the probe alone, of an answer that comes once more.
void note_probe(Turn& turn, PolicyVersion version, const std::vector<float>& probe);
// The learner's epochs ended with the learner. The versions that it had published are still
// published, with the same content; those that its publisher has lost are published again.
void end_broadcasts_of_learner(Turn& turn);
// Whether groups that are still to be generated, an evaluation or a rollout's next install need a
// version that was published.
bool needs(const RunView& view, PolicyVersion version);
// While the run starts, this is the oldest version that the learner keeps when it first publishes.
PolicyVersion oldest_needed(const RunView& view);
// Whether the learner publishes the version that the step makes.
bool publishes(const RunView& view, StepId step);
// The step may not be sent yet: its version would take the place of one that is being evaluated.
bool evaluation_in_the_way(const RunView& view, StepId step);
// Asks the learner, which is up, to publish what it holds.
void ask_to_publish(Turn& turn);
// Asks for it where the publisher has lost a version that the learner still holds.
void publish_lost(Turn& turn);
// Tells the rollouts once more of the version that each knows, since its place or the oldest
// version that is left has changed.
void announce_again(Turn& turn);
// Tells a rollout that is up of a version.
void announce(Turn& turn, const ActorId& rollout, PolicyVersion version);

}  // namespace tandem::exchange
