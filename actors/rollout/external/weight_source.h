// Where a server takes a version's tensors from: what a rollout offers before it tells its server
// that there is a version. A way of transfer is one source.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "actors/rollout/engine_name.h"
#include "runtime/base/result.h"
#include "runtime/device/manifest.h"
#include "runtime/link/endpoint.h"

namespace tandem::rollout {

// What the server is told of it. Of each way its own fields.
struct OfferedWeights {
  link::Endpoint feed = {};           // tcp: where a TensorFeed serves the version
  std::string feed_token = {};        // and the word that it asks for
  std::filesystem::path folder = {};  // disk: a folder with model.safetensors
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
};

struct SourceSpec {
  device::Manifest manifest;
  // disk: this rollout's own folder, which is emptied first and made where it is missing.
  std::filesystem::path folder;
};
// Errors: no address to listen at, or a folder that cannot be made.
Result<std::unique_ptr<WeightSource>> make_weight_source(WeightTransfer transfer, SourceSpec spec);

}  // namespace tandem::rollout
