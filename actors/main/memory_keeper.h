// Gives memory that the controller's process no longer uses back to the system. The C library keeps
// what was freed for later use, in an arena for each few threads; after hundreds of watches that
// can be several times the memory in use.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <variant>

#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/actor/system.h"

namespace tandem::app {

// Less is not worth the time in which the C library looks for it.
inline constexpr std::uint64_t kFreeBytesWorthGiving = 8u << 20;

// Freed memory counts as free also after it was given back, until it is used again. So the rule
// goes by how much has become free since there was least.
class GiveBackRule {
 public:
  // Whether memory should be given back now, given the bytes that are free in the C library.
  bool due(std::uint64_t free_bytes) {
    least_ = std::min(least_, free_bytes);
    if (free_bytes - least_ < kFreeBytesWorthGiving) return false;
    least_ = free_bytes;
    return true;
  }

 private:
  std::uint64_t least_ = std::numeric_limits<std::uint64_t>::max();
};

struct LookAtMemory {};  // sent once; the keeper repeats it

class MemoryKeeper {
 public:
  using Inbox = std::variant<LookAtMemory>;
  void handle(actor::Context& cx, LookAtMemory);

 private:
  GiveBackRule rule_;
};

static_assert(actor::Actor<MemoryKeeper>);

void keep_memory(actor::System& system);  // spawns the keeper, and has it look

}  // namespace tandem::app
