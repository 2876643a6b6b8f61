// The table of all verbs of the command line: the client's (actors/cli/verbs.h), and those that
// start processes or load models, which are carried out in this folder.
#pragma once

#include <vector>

#include "actors/cli/verb.h"

namespace tandem::app {

// The verbs with the defaults of their options, in the order of the help.
std::vector<cli::Verb> all_verbs();

}  // namespace tandem::app
