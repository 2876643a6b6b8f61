// One operation of a fake communicator on the sockets between its ranks: blocks go out and come in,
// all at once, and each is acknowledged by who receives it. Where two ranks have different things
// in mind the operation never ends, as with NCCL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/runtime/collective/fake_nccl/faults.h"
#include "tests/runtime/collective/fake_nccl/meeting.h"

namespace fake_nccl {

// The facts about a block on which both sides must agree.
struct Label {
  std::uint32_t operation = 0;  // 1: broadcast, 2: send to receive, 3: sum of all
  std::int32_t root = 0;        // the root of a broadcast
  std::uint64_t bytes = 0;
  std::uint64_t registered = 0;  // 1: the memory is

  bool operator==(const Label&) const = default;
};

struct Block {
  int peer = 0;
  bool out = false;
  void* memory = nullptr;  // a device's
  Label label;
};

enum class Exchanged {
  kDone,
  kStopped,     // by an abort
  kGone,        // a peer has gone
  kMismatched,  // a peer sends something else
};

// `stop` becomes readable when the communicator is aborted.
Exchanged exchange(const std::vector<Block>& blocks, const std::vector<Fd>& peers,
                   const Mischief& mischief, int stop);

}  // namespace fake_nccl
