#include "tests/allocations.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> times = 0, live = 0, ever = 0;

void* counted(void* memory) {
  if (!memory) throw std::bad_alloc();
  const std::size_t bytes = malloc_usable_size(memory);
  times.fetch_add(1, std::memory_order_relaxed);
  live.fetch_add(bytes, std::memory_order_relaxed);
  ever.fetch_add(bytes, std::memory_order_relaxed);
  return memory;
}

void freed(void* memory) {
  if (memory) live.fetch_sub(malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

// The operators are not inlined: the compiler would take the two halves of a pair for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) { return counted(std::malloc(size)); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t to) {
  const auto align = static_cast<std::size_t>(to);
  return counted(std::aligned_alloc(align, (size + align - 1) / align * align));
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* const memory = std::malloc(size);  // std::stable_sort does without it
  return memory ? counted(memory) : nullptr;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { freed(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { freed(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { freed(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  freed(memory);
}

namespace tandem::test {

std::size_t allocations() { return times.load(std::memory_order_relaxed); }
std::size_t allocated_bytes() { return live.load(std::memory_order_relaxed); }
std::size_t bytes_ever() { return ever.load(std::memory_order_relaxed); }

}  // namespace tandem::test
