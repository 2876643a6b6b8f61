// The structures and bits are declared here rather than taken from the system's header, which may
// be older than the kernel that runs.
#include "runtime/sandbox/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tandem::sandbox {
namespace {

struct RulesetAttributes {
  std::uint64_t files, ports, scopes;
};
struct [[gnu::packed]] PathBeneath {
  std::uint64_t allowed;
  std::int32_t parent;
};
constexpr unsigned kVersionFlag = 1;
constexpr int kPathBeneath = 1;
constexpr int kAbiOfPorts = 4, kAbiOfScopes = 6;

constexpr std::uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2,
                        kReadFolder = 1 << 3, kMakeCharacterDevice = 1 << 6,
                        kMakeBlockDevice = 1 << 11, kFirstRights = (1 << 13) - 1, kRefer = 1 << 13,
                        kTruncate = 1 << 14, kDeviceCalls = 1 << 15;
constexpr std::uint64_t kAllPorts = 3;   // bind and connect of TCP
constexpr std::uint64_t kAllScopes = 3;  // abstract Unix sockets, signals

std::uint64_t known_rights(int abi) {
  return kFirstRights | (abi >= 2 ? kRefer : 0) | (abi >= 3 ? kTruncate : 0) |
         (abi >= 5 ? kDeviceCalls : 0);
}

std::uint64_t rights_of(PathRights rights) {
  switch (rights) {
    case PathRights::kRead:
      return kExecute | kReadFile | kReadFolder;
    case PathRights::kReadWrite:
      return ~(kMakeCharacterDevice | kMakeBlockDevice | kDeviceCalls);
    case PathRights::kDevice:
      break;
  }
  return kReadFile | kWriteFile;
}

constexpr std::uint64_t kRightsOfFiles = kExecute | kReadFile | kWriteFile | kTruncate;

bool add_rule(int ruleset, const PathRule& rule, std::uint64_t known) {
  const int at = open(rule.path.c_str(), O_PATH | O_CLOEXEC);
  if (at < 0) return errno == ENOENT || errno == EACCES || errno == ENOTDIR;
  struct stat found {};
  fstat(at, &found);
  std::uint64_t allowed = rights_of(rule.rights) & known;
  if (!S_ISDIR(found.st_mode)) allowed &= kRightsOfFiles;  // the kernel refuses others of a file
  const PathBeneath attributes{allowed, at};
  const bool added = syscall(SYS_landlock_add_rule, ruleset, kPathBeneath, &attributes, 0) == 0;
  close(at);
  return added;
}

}  // namespace

int landlock_abi() {
  const long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, kVersionFlag);
  return abi > 0 ? static_cast<int>(abi) : 0;
}

bool restrict_self(const LandlockRules& rules) {
  const std::uint64_t files = rules.files_and_ports ? known_rights(rules.abi) : 0;
  const RulesetAttributes attributes{
      .files = files,
      .ports = rules.files_and_ports && rules.abi >= kAbiOfPorts ? kAllPorts : 0,
      .scopes = rules.abi >= kAbiOfScopes ? kAllScopes : 0};
  // An older kernel refuses a structure with more than it knows.
  const std::size_t size = rules.abi >= kAbiOfScopes ? 24 : rules.abi >= kAbiOfPorts ? 16 : 8;
  const int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, size, 0));
  if (ruleset < 0) return false;
  for (const PathRule& rule : rules.paths)
    if (!add_rule(ruleset, rule, files)) return false;
  const bool restricted = syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
  close(ruleset);
  return restricted;
}

}  // namespace tandem::sandbox
