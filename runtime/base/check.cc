#include "runtime/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tandem {

void check_failed(const char* expression, const char* file, int line) {
  // The log is not used: a failure may come from the code that writes the log.
  std::fprintf(stderr, "CHECK failed: %s at %s:%d\n", expression, file, line);
  std::abort();
}

}  // namespace tandem
