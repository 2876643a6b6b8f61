// Landlock: a process gives up the rights on files, TCP ports, abstract sockets and signals that it
// does not name. Rules are prepared as values; restrict_self() is what a child does after its fork.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::sandbox {

// The version that the kernel speaks; 0: none.
int landlock_abi();

enum class PathRights : std::uint8_t {
  kRead,       // read and execute, of all below the path
  kReadWrite,  // everything but making devices, of all below the path
  kDevice,     // read and write, of the one file
};

struct PathRule {
  std::string path;
  PathRights rights;
};

// What a domain of Landlock is about. A nested domain adds to the restrictions of the one around.
struct LandlockRules {
  int abi = 0;                  // not 0
  bool files_and_ports = true;  // false: signals and abstract sockets alone (ABI 6)
  std::vector<PathRule> paths;
};

// Puts the calling thread, which has set no_new_privs, and its later children into a domain. A path
// that is not there is passed over. False: errno says why. Safe after a fork: it allocates nothing.
bool restrict_self(const LandlockRules& rules);

}  // namespace tandem::sandbox
