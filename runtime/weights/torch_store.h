// A store of keys and values as PyTorch's TCPStore serves it, as far as process groups of others
// ask for one: SGLang's ranks meet there before they take weights by NCCL. This side needs no
// PyTorch.
//
// The wire was read off PyTorch 2.13 (torch/csrc/distributed/c10d, TCPStore): a request is one byte
// that says what it is, and its arguments; integers are little endian, a text is its length (u64)
// and its bytes.
//
//   VALIDATE 0    u32 0x3C85F7CE, first of all; no answer
//   SET      1    key, value; no answer
//   GET      3    key; the value, once there is one
//   ADD      4    key, i64; the sum as i64, which is also the key's value as a decimal text
//   CHECK    5    u64 count, keys; 0: all are there, 1: not
//   WAIT     6    u64 count, keys; 0, once all are there
//   PING     13   u32; the same
//
// A client that sends anything else, or more than the limits below, is cut off. There is no secret
// on this wire: listen at the loopback address, unless a network is trusted.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/link/endpoint.h"
#include "runtime/link/port_range.h"

namespace tandem::weights {

inline constexpr std::size_t kTorchStoreClientsMax = 1024;
inline constexpr std::size_t kTorchStoreKeysMax = 16384;        // also of one WAIT or CHECK
inline constexpr std::size_t kTorchStoreTextMax = 64u << 10;    // of a key or a value
inline constexpr std::size_t kTorchStoreRequestMax = 1u << 20;  // of a request's texts
inline constexpr std::size_t kTorchStoreBytesMax = 64u << 20;   // of all keys and values

// Any thread may call.
class TorchStore {
 public:
  // Listens at any free port of `host`. Errors: kFailed.
  static Result<std::unique_ptr<TorchStore>> listen(const std::string& host = link::kLoopback,
                                                    const link::PortRange& ports = {});
  ~TorchStore();  // cuts all clients off

  const link::Endpoint& endpoint() const;
  void set(const std::string& key, const std::string& value);

 private:
  struct State;
  explicit TorchStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tandem::weights
