// Deaths of one actor that follow each other: how often, since when, why, and the words for people.
// A loop ends with a life of RestartPolicy::healthy_after.
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

struct CrashLoop {
  std::int32_t deaths = 0;  // without a healthy life between them; 0: it is in no loop
  Time since{};             // the first of them
  std::string cause;        // of the last
};

// More than one death, and not yet healthy again.
bool loops(const CrashLoop& loop, const ActorStatus& status, Time now);

// "restarted 3 times in 40 s (killed by SIGSEGV (11)); next try in 8 s"; none where nothing died,
// and where the one death is mended.
std::optional<std::string> text(const CrashLoop& loop, const ActorStatus& status, Time now);

}  // namespace tandem::scheduler
