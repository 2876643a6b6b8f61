// Sends the tensors of a version to programs of others by NCCL, as vLLM's weight transfer receives
// them (docs of vLLM, "Weight transfer", nccl; wire as read from vllm/distributed/weight_transfer
// of 0.30), and as SGLang's update_weights_from_distributed does: they meet by a unique id, at
// vLLM's sum one float, and then take broadcasts from rank 0, either one for each tensor or,
// packed, one for each chunk of whole tensors without gaps. Nothing else is
// on the wire: both sides know names, types and shapes, and where chunks end. Tensors are sent as
// bytes: NCCL's broadcast does not look at their type.
//
// Not responsible for telling the others any of this.
//
//   TX-1  No call lasts longer than its deadline and the grace of NCCL's thread, also where a peer
//         never comes or has died; cut() ends it within the grace.
//   TX-2  After any error the peers have to meet anew: connected() is false.
//
// The library of NCCL has to be of the others' version. cut() may be called by any thread, all
// else by one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/collective/nccl_communicator.h"
#include "runtime/device/stream.h"

namespace tandem::weights {

struct TensorBroadcastConfig {
  const collective::NcclProcess* nccl = nullptr;  // outlives the object
  // Where the bytes are staged. kCpu is for tests with the fake library.
  device::DeviceKind device = device::DeviceKind::kCuda;
  std::string name;  // for errors and records: "job/rollout/0"
  // vLLM's ranks sum one float before the first tensor, SGLang's do not.
  bool first_sum = true;
  bool packed = true;
  std::size_t chunk_bytes = std::size_t{64} << 20;
  Duration timeout = std::chrono::minutes(10);  // of a meeting, a start, and each broadcast
};

using TensorBytes = std::span<const std::span<const std::byte>>;

// Where chunks end. Each chunk has whole tensors, and ends with the one that makes it larger than
// `chunk_bytes`; the last chunk ends with the last tensor. Ascending: one behind each last tensor.
std::vector<std::size_t> chunk_ends(TensorBytes tensors, std::size_t chunk_bytes);

class TensorBroadcast {
 public:
  explicit TensorBroadcast(TensorBroadcastConfig config);
  ~TensorBroadcast();  // cuts

  // Makes the id by which the peers of the next connect() meet.
  Result<collective::NcclUniqueId> meet();
  // Waits for ranks 1 … `others`, and sums the float with them. `wanted` is asked once cut() can
  // end the wait: false where a cut came before.
  Result<void> connect(int others, const std::function<bool()>& wanted = {});
  // `tensors`: in host memory, none empty. Returns once every peer has them all.
  Result<void> send(TensorBytes tensors);
  // Ends what is under way, with `why` in its error, and the connection.
  void cut(const std::string& why);
  bool connected() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace tandem::weights
