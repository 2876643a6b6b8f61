// Gives the tensors of one version to inference servers that ask for them, over plain TCP: any
// program can read them, without ZeroMQ, CURVE or NCCL. Not responsible for telling a server that
// there is a version, nor for the tensors' names and shapes.
//
//   reader   "TANDEMW1", the feed's token (64 characters), its rank (u32)
//   feed     "TANDEMW1", the number of bytes (u64), the bytes of all tensors in their order without
//            gaps, their CRC-32 (u32, as zlib computes it)
//
// Integers are little endian. A reader with another token, and one that comes while nothing is
// served, is cut off. The bytes travel as they are, so that a feed listens at the loopback address,
// unless a network is trusted (SECURITY.md).
//
//   TF-1  A reader gets one version whole with its sum, or its connection ends before the sum.
//   TF-2  No byte of a version is read after stop() has returned.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/link/endpoint.h"
#include "runtime/link/port_range.h"

namespace tandem::weights {

// Any thread may call, one at a time.
class TensorFeed {
 public:
  // Listens at any free port of `host`. Errors: kFailed.
  static Result<std::unique_ptr<TensorFeed>> listen(const std::string& host = link::kLoopback,
                                                    const link::PortRange& ports = {});
  ~TensorFeed();

  const link::Endpoint& endpoint() const;
  const std::string& token() const;

  // Serves these tensors from now on, in place of the ones before. The bytes are borrowed until
  // stop().
  void serve(std::vector<std::span<const std::byte>> tensors);
  void stop();

 private:
  struct State;
  explicit TensorFeed(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tandem::weights
