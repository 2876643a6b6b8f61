#include "runtime/link/progress.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace tandem::link {

namespace {

constexpr const char* kIdle = "idle";

}  // namespace

// The counter is read first: the others are then at least as new as the counter, because the writer
// stores them before it raises the counter.
ProgressReport Progress::report() const {
  ProgressReport report{.counter = counter_.load(std::memory_order_acquire), .phase = kIdle};
  const std::size_t at = at_.load(std::memory_order_relaxed);
  report.since = Time{since_ns_.load(std::memory_order_relaxed)};
  if (at == 0) return report;
  const Phase& phase = phases_[at];
  report.phase = phase.name.load(std::memory_order_relaxed);
  report.pieces = phase.pieces.load(std::memory_order_relaxed);
  report.longest = Duration{phase.longest_ns.load(std::memory_order_relaxed)};
  return report;
}

void Progress::end_piece(Time now) {
  const std::int64_t moved = moved_ns_.load(std::memory_order_relaxed);
  moved_ns_.store(now.ns, std::memory_order_relaxed);
  const std::size_t at = at_.load(std::memory_order_relaxed);
  if (at == 0) return;
  Phase& phase = phases_[at];
  phase.pieces.fetch_add(1, std::memory_order_relaxed);
  if (const std::int64_t took = now.ns - moved;
      took > phase.longest_ns.load(std::memory_order_relaxed))
    phase.longest_ns.store(took, std::memory_order_relaxed);
}

std::size_t Progress::place_of(std::string_view phase) {
  if (phase == kIdle) return 0;
  std::size_t at = 1;
  for (; at + 1 < phases_.size(); ++at) {
    const char* const name = phases_[at].name.load(std::memory_order_relaxed);
    if (!name || name == phase) break;
  }
  phases_[at].name.store(phase.data(), std::memory_order_relaxed);
  return at;
}

bool is_phase(std::string_view name) {
  return name.size() <= kPhaseBytesMax && std::ranges::all_of(name, [](unsigned char c) {
           return std::isalnum(c) || c == '_' || c == '-';
         });
}

ProgressReport Stillness::look(ProgressReport report, Time now) {
  const Duration since_look = std::min(now - std::exchange(looked_, now), kLookMax);
  if (std::exchange(counter_, report.counter) != report.counter) {
    still_ = {};
    if (report.phase != kIdle) waited_before_ = waited_();
  } else {
    still_ += since_look;
  }
  if (report.phase == kIdle) return report;
  // Threads that end take their part of the sum with them.
  const Duration waited = std::max(Duration{}, waited_() - waited_before_);
  report.still = std::max(still_ / kCountedPart, still_ - waited);
  return report;
}

}  // namespace tandem::link
