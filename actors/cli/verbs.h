// The table of the client's verbs: those that need HTTP and the file system, but no actors, engine
// or learner. actors/main/verbs.h adds the others.
#pragma once

#include <vector>

#include "actors/cli/verb.h"

namespace tandem::cli {

// The verbs with the defaults of their options, in the order of the help.
std::vector<Verb> client_verbs();

}  // namespace tandem::cli
