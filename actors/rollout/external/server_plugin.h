// The module that vLLM loads to get weights over TCP (tandem_vllm.py), which is compiled into this
// program, so that it is there wherever the program is and never of another version.
#pragma once

#include <map>
#include <string>

#include "runtime/base/result.h"

namespace tandem::rollout {

// Writes the module into `folder`, which is made where it is missing, and adds what makes a server
// load it to `added`, besides the user's variables, which win. Several processes may call at once.
Result<void> place_plugin(const std::string& folder,
                          const std::map<std::string, std::string>& users,
                          std::map<std::string, std::string>& added);

}  // namespace tandem::rollout
