// Deaths of one actor that follow each other: how often it died, since when, why, and a text about
// it for people. The loop ends when the actor has been healthy for kHealthyAfter.
//
//   CL-1  From an actor's first death until it is healthy again, text() says how often it was
//         restarted, why it died, and what comes next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "scheduler/fleet/lifecycle.h"

namespace tandem::scheduler {

// An actor that has worked for so long is healthy: its earlier deaths no longer count.
inline constexpr Duration kHealthyAfter = std::chrono::seconds(60);

struct CrashLoop {
  std::int32_t deaths = 0;  // without a healthy time between them; 0: no loop
  Time since{};             // when the first death of the loop came
  std::string cause;        // the cause of the last death
};

// Whether the actor died more than once and is not yet healthy again.
bool loops(const CrashLoop& loop, const ActorStatus& status, Time now);

// The loop in words: "restarted 3 times in 40 s (killed by SIGSEGV (11)); next try in 8 s". nullopt
// where the actor is healthy or final, and where it died once and works again.
std::optional<std::string> text(const CrashLoop& loop, const ActorStatus& status, Time now);

}  // namespace tandem::scheduler
