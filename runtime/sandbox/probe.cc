// The trial of namespaces is a real start of a real program, so that whatever a later start would
// meet is met here. Each trial is one process that ends at once.
#include "runtime/sandbox/probe.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "runtime/base/file.h"
#include "runtime/sandbox/cell.h"
#include "runtime/sandbox/seccomp_filter.h"

namespace tandem::sandbox {
namespace {

constexpr const char* kTrialProgram = "/bin/true";

// Runs in a child what can be undone by nothing but its end.
template <class Trial>
bool works_in_child(Trial trial) {
  const pid_t child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
  if (child == 0) _exit(trial() ? 0 : 1);
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

bool seccomp_works() {
  std::vector<sock_filter> filter = seccomp_filter({});
  return works_in_child([&] {
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && install(filter.data(), filter.size());
  });
}

bool landlock_works(int abi) {
  return works_in_child(
      [&] { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && restrict_self({.abi = abi}); });
}

// Root within a user namespace that knows few users is no one whom limits would spare.
bool is_real_root() {
  std::ifstream map("/proc/self/uid_map");
  std::uint64_t inside = 1, outside = 1;
  return geteuid() == 0 && map >> inside >> outside && inside == 0 && outside == 0;
}

bool may_change_uid() {
  constexpr uid_t kAnother = 61184;  // the first of the uids that every sandbox may use
  return works_in_child([] {
    return syscall(SYS_setgroups, 0, nullptr) == 0 &&
           syscall(SYS_setresgid, kAnother, kAnother, kAnother) == 0 &&
           syscall(SYS_setresuid, kAnother, kAnother, kAnother) == 0;
  });
}

// Starts a program with these namespaces; returns why that failed.
std::string trial(Layers layers, Namespaces namespaces) {
  layers.namespaces = namespaces;
  layers.own_uid &= namespaces != Namespaces::kOfUser;
  const OwnedFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const Plan plan{SandboxMode::kAuto, layers, EndOfAll::kPidNamespace};
  const auto cell =
      Cell::start(plan, {}, {{kTrialProgram}, {}, null.get(), null.get(), null.get()});
  if (!cell) return cell.error().message.substr(cell.error().message.find("sandbox: ") + 9);
  return "";
}

}  // namespace

Layers probe_layers() {
  Layers layers;
  layers.seccomp = seccomp_works();
  if (const int abi = landlock_abi(); abi > 0 && landlock_works(abi)) layers.landlock_abi = abi;
  layers.own_uid = geteuid() == 0 && may_change_uid();
  const LimitGroup group = LimitGroup::make({});
  layers.pids_group = group.counts_processes();
  layers.memory_group = group.counts_memory();
  if (!layers.seccomp) {
    layers.no_namespaces = "not tried without seccomp";
    return layers;
  }
  if (geteuid() == 0) {
    layers.no_namespaces = trial(layers, Namespaces::kOfRoot);
    if (layers.no_namespaces.empty()) layers.namespaces = Namespaces::kOfRoot;
    // A user namespace of the real root's would spare its programs the limit on processes.
    if (layers.no_namespaces.empty() || is_real_root()) return layers;
  }
  layers.no_namespaces = trial(layers, Namespaces::kOfUser);
  if (!layers.no_namespaces.empty()) return layers;
  layers.namespaces = Namespaces::kOfUser;
  layers.own_uid = false;
  return layers;
}

}  // namespace tandem::sandbox
