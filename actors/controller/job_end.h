// The end of a job. A job that trains ends through its exchange: EndJob to it, JobEnded from it,
// and only then do the actors stop. The job is final when its last process is gone (CC-4).
#pragma once

#include <string>

#include "actors/controller/turn.h"

namespace tandem::controller {

// Asks the exchange to end the job; its JobEnded then stops the actors. A job without an exchange
// ends at once.
void end_job(Turn& turn, JobRecord& job, messages::JobOutcome outcome, const std::string& why);
void fail_job(Turn& turn, JobRecord& job, const std::string& why);
// The job has this outcome: its actors stop.
void conclude(Turn& turn, JobRecord& job, messages::JobEnded outcome);
// Makes the state of a job that has ended final when its last process is gone.
void finish_job_if_gone(Turn& turn, JobRecord& job);

void take(Turn& turn, const messages::JobEnded& ended);

}  // namespace tandem::controller
