// How an actor stores and fetches payloads, whatever carries them: BulkClient (bulk.h), or memory
// in a simulation. Results come in the order of the payloads or refs; `done` is called once, on any
// thread, and must not block.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/wire/payload_ref.h"

namespace tandem::payload {

// Stores payloads and passes on their refs; one Error for the whole request.
using WriteDone = std::function<void(Result<std::vector<wire::PayloadRef>>)>;
using PayloadWriter = std::function<void(std::vector<std::string> payloads, WriteDone done)>;
// Fetches the payloads of refs; one Error for the whole request.
using ReadDone = std::function<void(Result<std::vector<std::string>>)>;
using PayloadReader = std::function<void(std::vector<wire::PayloadRef> refs, ReadDone done)>;

// Whether a request has failed for want of an answer, as while the network is cut. It may be made
// again for as long as the process has a controller (actors/rank/rank_session.h).
inline bool is_unanswered(const Error& error) {
  return error.code == ErrorCode::kTimedOut || error.code == ErrorCode::kUnreachable;
}

}  // namespace tandem::payload
