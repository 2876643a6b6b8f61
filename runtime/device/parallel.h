// A fork-join pool of threads. The thread that calls run() is one of them; the others sleep between
// calls.
//
// PA-1  Work is split by data: the cut of [0, count) depends on count and grain, never on the
//       number of threads, so a reduction per range repeats on any machine. A caller that computes
//       every output whole within one item may choose its items by the number of threads.
// PA-2  A pool of one thread (or none at all, a null pool) starts no thread and adds no
//       synchronisation: the ranges run in order in the caller.
//
// One thread at a time may call run(). Bodies must not call the pool that they run on, must not
// throw, and may run at the same time: each must write to places of its own.
#pragma once

#include <cstdint>
#include <memory>

namespace tandem::device {

// Bounds the threads of one pool.
inline constexpr int kPoolThreadsMax = 256;

class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // 1 … kPoolThreadsMax, the caller included
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls body(context, i) once for every i in [0, count), on any thread and in any order; returns
  // when all calls have returned. Their writes are visible to the caller. `count` < 2^32 (CHECKed).
  void run(std::int64_t count, void (*body)(void* context, std::int64_t index), void* context);

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;  // null for one thread
};

// Calls body(begin, end) for the ranges of `grain` items (the last may be shorter) of [0, count).
template <class Body>
[[gnu::always_inline]] inline void parallel_for(ThreadPool* pool, std::int64_t count,
                                                std::int64_t grain, const Body& body) {
  if (count <= grain) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
  const auto range = [&body, count, grain](std::int64_t index) {
    const std::int64_t begin = index * grain;
    body(begin, begin + grain < count ? begin + grain : count);
  };
  const std::int64_t ranges = (count + grain - 1) / grain;
  if (pool == nullptr || pool->threads() == 1) {
    for (std::int64_t i = 0; i < ranges; ++i) range(i);
    return;
  }
  pool->run(
      ranges,
      [](void* context, std::int64_t index) {
        (*static_cast<const decltype(range)*>(context))(index);
      },
      const_cast<void*>(static_cast<const void*>(&range)));
}

}  // namespace tandem::device
