// The progress of a thread that does work, as that thread records it and the thread that sends
// heartbeats reads it. A worker calls enter() around each kind of work and beat() between two
// pieces of it. A hung handler stops beating although the process's sockets stay lively, and so it
// is found out. How long pieces of each kind have taken is kept as well: what a kind of work has
// needed so far says for how long its next piece may be silent (scheduler/fleet/hang_timeout.h).
//
//   PS-1  The time for which a worker is still counts only while its process runs: neither while
//         it is stopped, nor while its threads wait for a processor of a busy machine.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"

namespace tandem::link {

struct ProgressReport {
  // Grows with each piece of work that begins or ends; only a change means anything.
  std::uint64_t counter = 0;
  // The kind of work, as the worker named it.
  std::string phase;  // "idle", "decode", "Generate" …
  Time since;         // when that phase began, on the clock of whoever reads the report
  // Pieces of this kind of work that the process has ended so far, and the longest one.
  std::uint64_t pieces = 0;
  Duration longest{};
  Duration still{};  // the time without progress (PS-1)
};

// Whether a peer's word may be the name of a phase: it is shown, logged and looked up.
inline constexpr std::size_t kPhaseBytesMax = 32;
bool is_phase(std::string_view name);

inline constexpr std::size_t kPhasesMax = 16;  // kinds of work; more of them share the last place

// Lock-free, because the reader must get an answer while the writer is hung.
class Progress {  // one writer at a time, any readers
 public:
  // `phase` is a literal: readers keep the pointer.
  void enter(const char* phase, Time now) {
    end_piece(now);
    since_ns_.store(now.ns, std::memory_order_relaxed);
    at_.store(place_of(phase), std::memory_order_relaxed);
    counter_.fetch_add(1, std::memory_order_release);
  }
  void beat(Time now) {
    end_piece(now);
    counter_.fetch_add(1, std::memory_order_release);
  }
  ProgressReport report() const;

 private:
  struct Phase {
    std::atomic<const char*> name{nullptr};  // null: the place is free, and those behind it are
    std::atomic<std::uint64_t> pieces{0};
    std::atomic<std::int64_t> longest_ns{0};
  };

  void end_piece(Time now);
  std::size_t place_of(std::string_view phase);

  // All are written by the one thread that works; the release and acquire of counter_ order the
  // others. The first place is for "idle", of which no piece is counted.
  std::atomic<std::uint64_t> counter_{0};
  std::atomic<std::size_t> at_{0};
  std::atomic<std::int64_t> since_ns_{0};
  std::atomic<std::int64_t> moved_ns_{0};
  std::array<Phase, kPhasesMax> phases_{};
};

// Counts for how long the worker behind a Progress is still, by looking at each report of it.
class Stillness {
 public:
  // A time between two looks counts up to this: a longer one means that the process was stopped.
  static constexpr Duration kLookMax = std::chrono::milliseconds(400);
  // At least this part of the time counts, since all threads' waits are taken off one worker's
  // time: of several that wait at once, as threads that spin do, the sum grows faster than that.
  static constexpr int kCountedPart = 10;  // a tenth
  // `waited`: for how long the process's threads have waited for a processor so far, in sum.
  explicit Stillness(std::function<Duration()> waited) : waited_(std::move(waited)) {}

  ProgressReport look(ProgressReport report, Time now);

 private:
  const std::function<Duration()> waited_;
  std::uint64_t counter_ = 0;
  Time looked_{};
  Duration still_{};
  Duration waited_before_{};  // when the worker moved last
};

}  // namespace tandem::link
