// The engines that a job can name (rollout.name), and the ways in which weights reach one that is a
// server of its own. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/base/enum_names.h"

namespace tandem::rollout {

enum class EngineName : std::uint8_t {
  kNative,       // in the rollout's own process (native_engine.h)
  kVllm,         // a server of vLLM (external/served_engine.h)
  kSglang,       // a server of SGLang
  kTensorrtLlm,  // TensorRT-LLM, in a server of ours (external/tandem_trtllm.py)
};
constexpr auto enum_names(EngineName) {
  using enum EngineName;
  return enum_name_rows<EngineName>(
      {{kNative, "native"}, {kVllm, "vllm"}, {kSglang, "sglang"}, {kTensorrtLlm, "tensorrt_llm"}});
}

// How a version goes from a rollout to its server.
enum class WeightTransfer : std::uint8_t {
  kAuto,  // the first that the engine has
  kTcp,   // the server reads the tensors from the rollout (runtime/weights/tensor_feed.h)
  kDisk,  // the server reads a folder that the rollout has written
  kNccl,  // the rollout broadcasts the tensors to the server's ranks
  kIpc,   // the server opens a block of GPU memory of the rollout's, which shares its GPU
};
constexpr auto enum_names(WeightTransfer) {
  using enum WeightTransfer;
  return enum_name_rows<WeightTransfer>(
      {{kAuto, "auto"}, {kTcp, "tcp"}, {kDisk, "disk"}, {kNccl, "nccl"}, {kIpc, "ipc"}});
}

inline constexpr std::array kVllmTransfers{WeightTransfer::kTcp, WeightTransfer::kDisk,
                                           WeightTransfer::kNccl, WeightTransfer::kIpc};
inline constexpr std::array kSglangTransfers{WeightTransfer::kDisk, WeightTransfer::kNccl};
inline constexpr std::array kTensorrtLlmTransfers{WeightTransfer::kTcp};

// The ways that lead to an engine's server, the usual one first; none for the native engine.
constexpr std::span<const WeightTransfer> transfers_to(EngineName name) {
  switch (name) {
    case EngineName::kNative:
      break;
    case EngineName::kVllm:
      return kVllmTransfers;
    case EngineName::kSglang:
      return kSglangTransfers;
    case EngineName::kTensorrtLlm:
      return kTensorrtLlmTransfers;
  }
  return {};
}

}  // namespace tandem::rollout
