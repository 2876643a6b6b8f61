#include "scheduler/fleet/crash_loop.h"

#include <cstdio>

namespace tandem::scheduler {
namespace {

// Whether the actor's processes are ready.
bool works(ActorState state) {
  return state == ActorState::kReady || state == ActorState::kBusy ||
         state == ActorState::kDraining;
}

// Whether the actor's processes exist, ready or not.
bool runs(ActorState state) {
  return works(state) || state == ActorState::kStarting || state == ActorState::kInitializing;
}

// No loop: no death, a final state, or healthy for long enough since it became ready.
bool over(const CrashLoop& loop, const ActorStatus& status, Time now) {
  return loop.deaths == 0 || is_final(status.state) ||
         (works(status.state) && now - status.since >= kHealthyAfter);
}

std::string whole_seconds(Duration time) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.0f s", seconds(time));
  return buffer;
}

std::string times(std::int32_t count) {
  return count == 1 ? "once" : std::to_string(count) + " times";
}

std::string next_of(const ActorStatus& status, Time now) {
  if (const auto* backoff = std::get_if<Backoff>(&status.reason)) {
    const Duration rest = backoff->until - now;
    return rest > Duration{0} ? "next try in " + whole_seconds(rest) : "next try now";
  }
  if (std::holds_alternative<WaitingForDisk>(status.reason)) return message(status.reason, now);
  if (std::holds_alternative<Returning>(status.reason)) return "it " + message(status.reason, now);
  const std::string since = whole_seconds(now - status.since);
  if (works(status.state)) return "it works again since " + since;
  if (runs(status.state)) return "it is starting again since " + since;
  if (status.state == ActorState::kStopping) return "its processes are being ended";
  return "next try waits: " + message(status.reason, now);
}

}  // namespace

bool loops(const CrashLoop& loop, const ActorStatus& status, Time now) {
  return loop.deaths > 1 && !over(loop, status, now) &&
         !std::holds_alternative<WaitingForDisk>(status.reason);
}

std::optional<std::string> text(const CrashLoop& loop, const ActorStatus& status, Time now) {
  if (over(loop, status, now) || (loop.deaths == 1 && works(status.state))) return std::nullopt;
  // While it does not run, the last death has not been followed by a restart yet.
  const std::int32_t restarts = runs(status.state) ? loop.deaths : loop.deaths - 1;
  const std::string how =
      restarts == 0 ? "died"
                    : "restarted " + times(restarts) + " in " + whole_seconds(now - loop.since);
  return how + " (" + loop.cause + "); " + next_of(status, now);
}

}  // namespace tandem::scheduler
