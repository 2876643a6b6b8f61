// CHECK: an invariant of our own code. Always on; a failure is a bug, so the process aborts with
// the expression and its place on stderr. Events of the world (a file, a peer, a config) are no
// bugs: functions return those as a Result (result.h).
#pragma once

namespace tandem {

[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace tandem

#define CHECK(condition) \
  ((condition) ? void(0) : ::tandem::check_failed(#condition, __FILE__, __LINE__))

// DCHECK is for inner loops: a release build compiles the condition and never evaluates it.
#ifdef NDEBUG
#define DCHECK(condition) void(sizeof((condition) ? 1 : 0))
#else
#define DCHECK(condition) CHECK(condition)
#endif
