#include "runtime/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tandem {

void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "CHECK failed: %s at %s:%d\n", expression, file, line);
  std::abort();
}

}  // namespace tandem
