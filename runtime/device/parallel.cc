// Indices are handed out through one atomic ticket that holds (generation, indices left). A thread
// takes an index by a compare-and-swap on the whole ticket, so a thread that wakes late can never
// take an index of a call that has ended, and the caller need not wait for threads that slept
// through the call. The rejected alternative, a barrier that every thread must reach, costs a
// wake-up per call even for tiny work.
//
// Memory order: the fields of a call are written before its ticket is released, and are read after
// an index of the call was acquired. They are overwritten only after every index has been counted
// in `done`.
#include "runtime/device/parallel.h"

#include <immintrin.h>

#include <atomic>
#include <thread>
#include <vector>

#include "runtime/base/check.h"

namespace tandem::device {

namespace {

// About 20 microseconds: longer than the gap between two operators of one step.
constexpr int kSpins = 2000;
constexpr std::uint64_t kLeftMask = 0xffffffffu;

}  // namespace

struct ThreadPool::Shared {
  alignas(64) std::atomic<std::uint64_t> ticket{0};  // generation << 32 | indices left
  alignas(64) std::atomic<std::int64_t> done{0};     // bodies of this call that have returned
  alignas(64) std::atomic<int> calls{0};             // incremented per call; sleepers wait for that
  std::atomic<int> sleepers{0};
  std::atomic<bool> stopping{false};
  std::int64_t count = 0;
  void (*body)(void*, std::int64_t) = nullptr;
  void* context = nullptr;
  std::vector<std::thread> threads;

  void take_all();
  void serve();
};

void ThreadPool::Shared::take_all() {
  std::uint64_t seen = ticket.load(std::memory_order_acquire);
  while ((seen & kLeftMask) != 0) {
    if (!ticket.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire)) continue;
    body(context, count - static_cast<std::int64_t>(seen & kLeftMask));
    done.fetch_add(1, std::memory_order_release);
    seen = ticket.load(std::memory_order_acquire);
  }
}

void ThreadPool::Shared::serve() {
  for (int seen = 0; !stopping.load();) {
    take_all();
    int now = calls.load();
    for (int spin = 0; now == seen && spin < kSpins; ++spin) {
      _mm_pause();
      now = calls.load();
    }
    if (now == seen) {
      sleepers.fetch_add(1);
      calls.wait(seen);
      sleepers.fetch_sub(1);
    }
    seen = calls.load();
  }
}

ThreadPool::ThreadPool(int threads) {
  CHECK(threads >= 1 && threads <= kPoolThreadsMax);
  if (threads == 1) return;
  shared_ = std::make_unique<Shared>();
  for (int i = 1; i < threads; ++i) {
    shared_->threads.emplace_back([shared = shared_.get()] { shared->serve(); });
  }
}

ThreadPool::~ThreadPool() {
  if (shared_ == nullptr) return;
  shared_->stopping = true;
  // A change of `calls` ends both ways of waiting in serve(): spinning and sleeping.
  shared_->calls.fetch_add(1);
  shared_->calls.notify_all();
  for (std::thread& thread : shared_->threads) thread.join();
}

int ThreadPool::threads() const {
  return shared_ == nullptr ? 1 : static_cast<int>(shared_->threads.size()) + 1;
}

void ThreadPool::run(std::int64_t count, void (*body)(void*, std::int64_t), void* context) {
  CHECK(count >= 0 && static_cast<std::uint64_t>(count) <= kLeftMask);
  if (count == 0) return;
  if (shared_ == nullptr) {
    for (std::int64_t i = 0; i < count; ++i) body(context, i);
    return;
  }
  Shared& shared = *shared_;
  shared.count = count;
  shared.body = body;
  shared.context = context;
  shared.done.store(0, std::memory_order_relaxed);
  const std::uint64_t generation = (shared.ticket.load(std::memory_order_relaxed) >> 32) + 1;
  shared.ticket.store(generation << 32 | static_cast<std::uint64_t>(count),
                      std::memory_order_release);
  shared.calls.fetch_add(1);
  // A thread counts itself as a sleeper before it waits, and wait() returns at once where `calls`
  // has changed already: so no thread sleeps through a call unnoticed when the wake-up is left out.
  if (shared.sleepers.load() > 0) shared.calls.notify_all();
  shared.take_all();
  for (std::int64_t spin = 0; shared.done.load(std::memory_order_acquire) != count; ++spin) {
    // The thread that runs the last index may have lost its core; yielding lets it run.
    if (spin < kSpins) {
      _mm_pause();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace tandem::device
