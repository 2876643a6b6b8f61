// How a rank reports what keeps it from working: the error in words, and the code by which
// scheduler/fleet/failure.h decides whether another start may mend it.
#pragma once

#include "actors/messages/rank.h"
#include "runtime/base/result.h"
#include "runtime/node/agent_messages.h"

namespace tandem::cli {

// An error met while reading what the job names. Wrong content is kInvalid and a file that is not
// there kNotFound; a disk that fails keeps its code: it may work again.
Error of_input(Error error);

// A refusal of the operating system that only a person can lift, a full disk for instance, is
// kInvalid. Other codes stay.
actors::RankFailed rank_failed(const runtime::RankId& id, const Error& why);

// A failure of an actor at work. Only a fault of the job is permanent there: what was there at the
// start and is missing now may come back.
actors::RankFailed rank_failed_at_work(const runtime::RankId& id, Error why);

}  // namespace tandem::cli
