// The module by which vLLM gets weights over TCP or CUDA IPC (tandem_vllm.py), and the server
// around TensorRT-LLM (tandem_trtllm.py). They are compiled into this program, so that they are
// there wherever the program is and never of another version.
#pragma once

#include <map>
#include <string>

#include "runtime/base/result.h"

namespace tandem::rollout {

// Writes the modules into `folder`, which is made where it is missing, and adds what makes a server
// find them to the variables of its environment. Several processes may call at once.
Result<void> place_plugin(const std::string& folder,
                          std::map<std::string, std::string>& environment);

}  // namespace tandem::rollout
