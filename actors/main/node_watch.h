// A node that no controller keeps has a parent, which kills it when it hangs and starts another in
// its place when it dies of a signal: the next one finds its ranks (runtime/node/kept_ranks.h). A
// node that ends by itself has a reason to, and is not started again.
#pragma once

#include <functional>

#include "actors/cli/console.h"
#include "runtime/node/watched_child.h"

namespace tandem::app {

// Runs `node` in child processes, one after the other, until one ends by itself or this process is
// told to end by SIGINT or SIGTERM, which it passes on. Returns the exit code. To be called before
// the process has a second thread.
int watch_node(const node::WatchedChild::Work& node, const cli::Console& console);

}  // namespace tandem::app
