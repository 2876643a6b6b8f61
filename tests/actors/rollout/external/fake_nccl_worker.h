// The NCCL side of a fake server with one rank, as vLLM's workers have it: joins by a unique id,
// sums one float, and takes broadcasts of tensors, packed or one by one. On the fake library.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "tests/runtime/collective/nccl_rank.h"

namespace tandem::rollout {

// One thread at a time may call. Each function returns why it failed.
class FakeNcclWorker {
 public:
  FakeNcclWorker();

  std::optional<std::string> join(const nlohmann::json& init_info);
  // As SGLang's do: rank 1 of 2, without a sum, and each tensor by itself.
  std::optional<std::string> join_late(std::string_view unique_id);
  void leave() { communicator_.reset(); }
  bool joined() const { return communicator_ != nullptr; }
  // In the order given; `breaks`: leaves after the first broadcast.
  std::optional<std::string> receive(const std::vector<std::span<std::byte>>& tensors,
                                     bool breaks = false);

 private:
  std::optional<std::string> start(std::string_view unique_id, int rank, int size);
  std::optional<std::string> perform(collective::NcclKind kind, std::span<std::byte> bytes);

  const collective::FakeNccl fake_;
  collective::NcclThread thread_;
  const collective::NcclProcess process_;
  std::uint64_t joins_ = 0;
  bool packed_ = true;
  std::size_t chunk_bytes_ = 0;
  std::unique_ptr<collective::NcclCommunicator> communicator_;
};

}  // namespace tandem::rollout
