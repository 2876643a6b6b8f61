// The layers of which a sandbox is made: which of them a machine has, and what is done with those.
// Everything here is a value or a pure function; probe.h finds the layers out.
//
//   XB-1  `strict` starts nothing where a layer is missing. `auto` starts nothing where the program
//         could read any file or reach the network: it needs seccomp, and namespaces or Landlock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/result.h"
#include "runtime/sandbox/profile.h"

namespace tandem::sandbox {

// How the namespaces can be made: with root's rights, or in a user namespace of the program's own.
enum class Namespaces : std::uint8_t { kNone, kOfRoot, kOfUser };

// The layers that this process can use on this machine.
struct Layers {
  Namespaces namespaces = Namespaces::kNone;  // mount, pid, ipc, network and uts, all of them
  // The step at which namespaces failed and why, for people; empty where they hold.
  std::string no_namespaces;
  int landlock_abi = 0;  // 0: the kernel has none, or it is switched off
  bool seccomp = false;
  bool own_uid = false;  // this process may give programs uids that no one else uses
  bool pids_group = false, memory_group = false;  // cgroups

  bool operator==(const Layers&) const = default;
};

// How all processes of a program are killed, those too that left its session and process group.
enum class EndOfAll : std::uint8_t {
  kPidNamespace,    // the namespace ends with its first process
  kUid,             // kill(-1) by a process of the program's uid
  kLandlockDomain,  // kill(-1) by a process that Landlock lets signal the program alone (ABI 6)
  kNoForks,         // there is one process: seccomp refuses it any other
  kGroup,           // the process group, which a program may leave: without a sandbox
};

struct Plan {
  SandboxMode mode = SandboxMode::kAuto;
  Layers layers;
  EndOfAll end = EndOfAll::kNoForks;
};

// A sandbox for one kind of program: the layers that keep it, and the limits of what it may use.
struct Box {
  Plan plan;
  Profile profile;
};

// "namespaces, own uid, Landlock 7, seccomp, rlimits, cgroups pids+memory", and behind a semicolon
// what lacks, if anything does. "memory watched": no cgroup bounds the sum of its processes (XB-8).
std::string text(const Layers& layers);
std::string text(const Plan& plan);  // the same behind the mode: "auto: namespaces, …"

// The sandbox that `mode` gets of these layers (XB-1); kInvalid where it gets none. Not for kOff.
Result<Plan> plan_of(SandboxMode mode, const Layers& layers);

// Whether this sandbox can let its programs connect to the sockets of Profile::sockets and to no
// other; the Error says what lacks.
Result<void> may_have_sockets(const Plan& plan);

// No sandbox: limits of processes, cgroups where they can be made, and a deadline, alone.
Plan no_sandbox();

// The version of Landlock that restricts which processes may be signalled.
inline constexpr int kLandlockAbiOfScopes = 6;

}  // namespace tandem::sandbox
