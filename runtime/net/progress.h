// What a thread that does the work says about itself, and the thread that sends heartbeats repeats.
// A mailbox loop calls beat() per message and enter() around each kind of work; a hung handler
// stops beating although the process's sockets stay lively, and that is how it is found out.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "runtime/base/clock.h"

namespace tandem::runtime {

struct ProgressReport {
  std::uint64_t counter = 0;  // grows with each piece of work begun or finished
  std::string phase;          // "idle", "decode", "Generate" …
  Time since;                 // when that phase began, on the clock of whoever reads the report
};

class Progress {  // one writer, any readers
 public:
  // `phase` must live for ever: a literal.
  void enter(const char* phase, Time now) {
    since_ns_.store(now.ns, std::memory_order_relaxed);
    phase_.store(phase, std::memory_order_relaxed);
    beat();
  }
  void beat() { counter_.fetch_add(1, std::memory_order_release); }
  ProgressReport report() const {
    const std::uint64_t counter = counter_.load(std::memory_order_acquire);
    return {counter, phase_.load(std::memory_order_relaxed),
            Time{since_ns_.load(std::memory_order_relaxed)}};
  }

 private:
  std::atomic<std::uint64_t> counter_{0};
  std::atomic<const char*> phase_{"idle"};
  std::atomic<std::int64_t> since_ns_{0};
};

}  // namespace tandem::runtime
