// Where a server takes a version's tensors from: what a rollout offers before it tells its server
// that there is a version, and what it does at the same time as its server. A way of transfer is
// one source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "actors/rollout/engine_name.h"
#include "actors/rollout/external/weight_push.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/collective/nccl_process.h"
#include "runtime/device/manifest.h"
#include "runtime/device/stream.h"
#include "runtime/link/endpoint.h"
#include "runtime/link/port_range.h"

namespace tandem::rollout {

// How the rollout and the ranks of its server find each other by NCCL.
enum class NcclMeeting : std::uint8_t {
  // vLLM: the server is told NCCL's unique id. Then all connect, and sum a float.
  kUniqueId,
  // SGLang: its ranks make a process group of PyTorch at a store of ours, which has NCCL's unique
  // id where PyTorch's rank 0 puts it. They connect with the first tensor.
  kTorchStore,
};

// Where a server finds a version. Each way of transfer uses the fields that name it.
struct OfferedWeights {
  link::Endpoint feed = {};           // tcp: where a TensorFeed serves the version
  std::string feed_token = {};        // and the word that it asks for
  std::filesystem::path folder = {};  // disk: a folder with model.safetensors
  // nccl: the id by which the rollout, as rank 0, and the server's ranks find each other, and
  // whether tensors come in chunks of so many bytes.
  std::string unique_id = {};
  bool packed = true;
  std::size_t chunk_bytes = 0;
  // nccl by a store: where they find it, and the name of their group, another one at each meeting.
  link::Endpoint store = {};
  std::string group = {};
  // ipc: the bytes of the block's name (device::BlockName), and how many the block has. Tensors lie
  // in it as the manifest says.
  std::string block = {};
  std::size_t block_bytes = 0;
};

// One thread calls.
class WeightSource {
 public:
  virtual ~WeightSource() = default;  // as withdraw()

  // Offers the tensors of `arena`, whose bytes stay as they are until withdraw(), in place of those
  // before. `done` is called at most once, on any thread, and never after withdraw(). An error: the
  // version cannot be offered, as on a full disk. `name` is one that no version had before.
  using Done = std::function<void(Result<OfferedWeights>)>;
  virtual void offer(std::span<const std::byte> arena, const std::string& name, Done done) = 0;
  // Ends the offer; returns once no byte of the arena is read any more.
  virtual void withdraw() = 0;

  // This side's part of a phase, which goes on beside the call to the server: begin() starts it,
  // and outcome() says how it ended, or nothing while it lasts, and may add to what the server is
  // told in later phases. cut() ends it early, because the server's part has failed. `ranks`: how
  // many the server has.
  virtual void begin(PushPhase, int /*ranks*/) {}
  virtual std::optional<Result<void>> outcome(OfferedWeights&) { return Result<void>(); }
  virtual void cut(const std::string& /*why*/) {}
  // Whether the last push has left a connection that the next one may use.
  virtual bool connected() const { return false; }
};

// The folder of a job's rollouts in one that jobs share begins with this, so that what rollouts of
// other jobs have left can be told from everything else there.
inline constexpr const char* kJobFolderPrefix = "tandem-";

struct SourceSpec {
  device::Manifest manifest;
  // disk: this rollout's own folder JOB/rollout-N@HOST, which is emptied first and made where it is
  // missing. Beside it is its lock. The folders of rollouts of this job that have died on this host
  // are removed, and of other jobs beside this one where they have the prefix above.
  std::filesystem::path folder;
  // tcp, and nccl by a store: where this side listens, at a port of the range.
  std::string host = link::kLoopback;
  link::PortRange ports = {};
  // nccl: of this process; outlives the source.
  const collective::NcclProcess* nccl = nullptr;
  device::DeviceKind device = device::DeviceKind::kCpu;  // ipc: kCuda
  NcclMeeting meeting = NcclMeeting::kUniqueId;
  std::string name;  // of the rollout, for errors
  bool packed = true;
  Duration timeout = std::chrono::minutes(10);  // of each step
};
// Errors: no address to listen at, or a folder that cannot be made.
Result<std::unique_ptr<WeightSource>> make_weight_source(WeightTransfer transfer, SourceSpec spec);

}  // namespace tandem::rollout
