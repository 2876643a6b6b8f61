// How a rank reports the error that keeps it from working: in words, and by the code with which
// scheduler/fleet/restart_budget.h decides whether another start may mend it.
#pragma once

#include "actors/messages/rank.h"
#include "runtime/base/result.h"
#include "runtime/node/agent_messages.h"

namespace tandem::rank {

// Classifies an error that was met while reading files of the job. Wrong content becomes kInvalid
// and a missing file kNotFound; a disk that fails keeps its code, since it may work again.
Error of_input(Error error);

// The report for an error before RankReady. A refusal of the operating system that only a person
// can lift, such as a full disk, becomes kInvalid; other codes stay.
messages::RankFailed rank_failed(const node::RankId& id, const Error& why);

// The report for an actor that failed at work. Only a fault of the job is permanent then: a thing
// that was there at the start and is missing now may come back.
messages::RankFailed rank_failed_at_work(const node::RankId& id, Error why);

}  // namespace tandem::rank
