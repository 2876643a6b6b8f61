#include "tests/kernels/cuda_emulator/fiber.h"

#include <cstdint>

// AddressSanitizer has to hear of a change of stacks. Without it the functions are not there.
extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** shadow, const void* stack,
                                                  std::size_t bytes);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* shadow, const void** stack,
                                                   std::size_t* bytes);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* memory, std::size_t bytes);
// Saves the registers that a call must preserve, stores the stack pointer in *from, and continues
// with the stack pointer in `to`.
void tandem_emulator_switch(void** from, void* to);
}

asm(R"(
.text
.globl tandem_emulator_switch
.hidden tandem_emulator_switch
.type tandem_emulator_switch, @function
tandem_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tandem_emulator_switch, .-tandem_emulator_switch
)");

namespace tandem::emulator {

namespace {

constexpr int kSavedRegisters = 6;

void finish(Fiber& from, void* shadow) {
  if (__sanitizer_finish_switch_fiber == nullptr) return;
  const void* stack = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(shadow, &stack, &bytes);
  if (from.stack == nullptr) {  // the thread's own stack, whose bounds are learnt here
    from.stack = stack;
    from.stack_bytes = bytes;
  }
}

}  // namespace

Fiber make_fiber(void* stack, std::size_t stack_bytes, void (*body)()) {
  // The fiber that had the stack before has never left its frames.
  if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(stack, stack_bytes);
  auto* top = reinterpret_cast<std::uintptr_t*>(static_cast<char*>(stack) + stack_bytes);
  *--top = 0;  // where body would return to; on entry 8 bytes off a multiple of 16, as after a call
  *--top = reinterpret_cast<std::uintptr_t>(body);
  for (int i = 0; i < kSavedRegisters; ++i) *--top = 0;
  return {.stack_pointer = top, .stack = stack, .stack_bytes = stack_bytes};
}

void switch_fiber(Fiber& from, Fiber& to) {
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&from.shadow, to.stack, to.stack_bytes);
  }
  tandem_emulator_switch(&from.stack_pointer, to.stack_pointer);
  finish(to, from.shadow);
}

void enter_fiber(Fiber& from) { finish(from, nullptr); }

}  // namespace tandem::emulator
