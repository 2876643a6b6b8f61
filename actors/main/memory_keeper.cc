#include "actors/main/memory_keeper.h"

#include <malloc.h>

#include <memory>

#include "runtime/base/check.h"

namespace tandem::app {
namespace {

constexpr Duration kLookEvery = std::chrono::seconds(2);

}  // namespace

void MemoryKeeper::handle(actor::Context& cx, LookAtMemory) {
  if (rule_.due(::mallinfo2().fordblks)) ::malloc_trim(0);  // trims all arenas
  // Repeats for ever; the system's end stops it.
  cx.after(kLookEvery, [this](actor::Context& then) { handle(then, LookAtMemory{}); });
}

void keep_memory(actor::System& system) {
  const auto memory =
      system.spawn<MemoryKeeper>("memory", [] { return std::make_unique<MemoryKeeper>(); });
  CHECK(memory.tell(LookAtMemory{}) == actor::Delivery::kAccepted);
}

}  // namespace tandem::app
