// A ShardExchange between threads of one process, for tests of the code that uses one. Memory may
// be the host's or a GPU's; sums are made on the host.
//
// It is not for speed: the rank that comes to a call last does the work of all in its own thread,
// and hold_back() waits for it as wait() does.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "runtime/collective/shard_exchange.h"

namespace tandem::collective {

// Each member for a thread of its own. A rank that has not come to a call `timeout` after another
// waits for it breaks the exchange, and so does one whose member is destroyed while others need it.
// Errors: kTimedOut and kFailed name that rank, kInvalid the ranks whose calls differ.
std::vector<std::unique_ptr<ShardExchange>> make_local_shards(
    int size, Duration timeout = std::chrono::minutes(1));

}  // namespace tandem::collective
