// The stages of a run, and its end: why it ends, and what is saved before it does.
//
//   EX-5  A cancelled job ends once what it has trained is saved, or at that save's deadline.
#pragma once

#include <string>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

void enter(Turn& turn, RunStage stage, std::string message);

void take(Turn& turn, const messages::EndJob& end);
void take(Turn& turn, const RecordFailed& failed);
void take(Turn& turn, const SendFailed& failed);
// The run will end for this reason.
void fail(Turn& turn, std::string reason);
// The run will end, since none of its completions has ever been scored; `reason` is that of the
// last.
void fail_for_reward(Turn& turn, const std::string& reason);

// True while the end that was asked for waits for a checkpoint. Asks for it at the first call.
bool saves_first(Turn& turn);
// Ends the run now.
void end(Turn& turn, messages::JobOutcome outcome, const std::string& reason);
// The result of the run, which has ended so, is to be written, and the controller told.
void send_end(Turn& turn, const RunEnded& ended);

}  // namespace tandem::exchange
