// The progress of a thread that does work, as that thread records it and the thread that sends
// heartbeats reads it. A mailbox loop calls beat() per message and enter() around each kind of
// work. A hung handler stops beating although the process's sockets stay lively, and so it is found
// out.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "runtime/base/clock.h"

namespace tandem::link {

struct ProgressReport {
  // Grows with each piece of work that begins or ends; only a change means anything.
  std::uint64_t counter = 0;
  // The kind of work, as the worker named it.
  std::string phase;  // "idle", "decode", "Generate" …
  Time since;         // when that phase began, on the clock of whoever reads the report
};

// Lock-free, because the reader must get an answer while the writer is hung.
class Progress {  // one writer, any readers
 public:
  // `phase` is a literal: readers keep the pointer.
  void enter(const char* phase, Time now) {
    since_ns_.store(now.ns, std::memory_order_relaxed);
    phase_.store(phase, std::memory_order_relaxed);
    beat();
  }
  void beat() { counter_.fetch_add(1, std::memory_order_release); }
  ProgressReport report() const {
    // The counter is read first: phase and time are then at least as new as the counter, because
    // the writer stores them before it raises the counter.
    const std::uint64_t counter = counter_.load(std::memory_order_acquire);
    return {counter, phase_.load(std::memory_order_relaxed),
            Time{since_ns_.load(std::memory_order_relaxed)}};
  }

 private:
  // Written by the one thread that works; the release and acquire of counter_ order the other two.
  std::atomic<std::uint64_t> counter_{0};
  std::atomic<const char*> phase_{"idle"};
  std::atomic<std::int64_t> since_ns_{0};
};

}  // namespace tandem::link
