// How an actor stores and fetches payloads, whatever carries them: BulkClient (bulk.h), or memory
// in a simulation. Results come in the order of the payloads or refs; `done` is called once, on any
// thread, and must not block.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/wire/payload_ref.h"

namespace tandem::payload {

// Stores payloads and passes on their refs; one Error for the whole request.
using WriteDone = std::function<void(Result<std::vector<wire::PayloadRef>>)>;
using PayloadWriter = std::function<void(std::vector<std::string> payloads, WriteDone done)>;
// Fetches the payloads of refs; one Error for the whole request.
using ReadDone = std::function<void(Result<std::vector<std::string>>)>;
using PayloadReader = std::function<void(std::vector<wire::PayloadRef> refs, ReadDone done)>;

// How long the requests of an actor may go without an answer.
inline constexpr Duration kUnansweredMax = std::chrono::hours(1);

// Whether a request that has failed is waited for: it had no answer, as while the network is cut,
// and such failures, one after another since `since`, do not last too long yet. `since` is the
// caller's to keep. Before that limit a process without a controller ends by itself
// (actors/rank/rank_session.h).
inline bool is_waited_for(const Error& error, std::optional<Time>& since, Time now) {
  if (error.code != ErrorCode::kTimedOut && error.code != ErrorCode::kUnreachable) {
    since.reset();
    return false;
  }
  if (!since) since = now;
  return now - *since < kUnansweredMax;
}

}  // namespace tandem::payload
