// How an actor stores and fetches payloads, whatever carries them: BulkClient (bulk.h), or memory
// in a simulation. Results come in the order of what was asked for; `done` is called once, on any
// thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/wire/payload_ref.h"

namespace tandem::runtime {

using WriteDone = std::function<void(Result<std::vector<PayloadRef>>)>;
using PayloadWriter = std::function<void(std::vector<std::string> payloads, WriteDone done)>;
using ReadDone = std::function<void(Result<std::vector<std::string>>)>;
using PayloadReader = std::function<void(std::vector<PayloadRef> refs, ReadDone done)>;

}  // namespace tandem::runtime
