// The engines that a job can name (rollout.name), and the ways in which weights reach one that is a
// server of its own. Plain values.
#pragma once

#include <cstdint>

#include "runtime/base/enum_names.h"

namespace tandem::rollout {

enum class EngineName : std::uint8_t {
  kNative,  // in the rollout's own process (native_engine.h)
  kVllm,    // a server of vLLM (external/served_engine.h)
};
constexpr auto enum_names(EngineName) {
  using enum EngineName;
  return enum_name_rows<EngineName>({{kNative, "native"}, {kVllm, "vllm"}});
}

// How a version goes from a rollout to its server.
enum class WeightTransfer : std::uint8_t {
  kTcp,  // the server reads the tensors from the rollout (runtime/weights/tensor_feed.h)
};
constexpr auto enum_names(WeightTransfer) {
  return enum_name_rows<WeightTransfer>({{WeightTransfer::kTcp, "tcp"}});
}

}  // namespace tandem::rollout
