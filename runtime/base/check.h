// CHECK: an invariant of our own code. Always on; a failure is a bug, so the process dies loudly.
// For what the world may do (a file, a peer, a config) see result.h.
#pragma once

namespace tandem {

[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace tandem

#define CHECK(condition) \
  ((condition) ? void(0) : ::tandem::check_failed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define DCHECK(condition) void(sizeof((condition) ? 1 : 0))
#else
#define DCHECK(condition) CHECK(condition)
#endif
