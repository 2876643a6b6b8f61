#include "runtime/node/stopped.h"

#include <string>

#include "runtime/base/file.h"

namespace tandem::node {

// The second field, the program's name in brackets, may hold brackets itself; the state is behind
// the last one: ") T 1 …".
bool is_stopped(pid_t pid) {
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return false;
  const std::size_t name_end = stat->rfind(')');
  return name_end != std::string::npos && stat->compare(name_end, 4, ") T ") == 0;
}

}  // namespace tandem::node
