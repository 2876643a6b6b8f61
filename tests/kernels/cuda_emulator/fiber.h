// Fibers: stacks that one thread switches between. Written for x86-64, like the kernels; ucontext
// would do but enters the system at every switch, a hundred times slower.
#pragma once

#include <cstddef>

namespace tandem::emulator {

struct Fiber {
  void* stack_pointer = nullptr;  // while it does not run
  const void* stack = nullptr;    // its lowest address; null for the thread's own stack
  std::size_t stack_bytes = 0;
  void* shadow = nullptr;  // AddressSanitizer's
};

// A fiber that calls body() when first switched to; body must never return.
Fiber make_fiber(void* stack, std::size_t stack_bytes, void (*body)());

// Runs `to` until a fiber switches back. `from` must be the fiber that runs.
void switch_fiber(Fiber& from, Fiber& to);

// Completes the switch that started a fiber; the fiber's body calls it first. `from` is the fiber
// that switched.
void enter_fiber(Fiber& from);

}  // namespace tandem::emulator
