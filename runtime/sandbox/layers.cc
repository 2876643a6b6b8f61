#include "runtime/sandbox/layers.h"

#include "runtime/base/check.h"

namespace tandem::sandbox {
namespace {

void append(std::string& list, const std::string& item) {
  list += (list.empty() ? "" : ", ") + item;
}

// What `strict` asks for and the machine has not; empty: it has all.
std::string lacking(const Layers& layers) {
  std::string lacks;
  if (layers.namespaces == Namespaces::kNone)
    append(lacks,
           "namespaces" +
               (layers.no_namespaces.empty() ? std::string() : " (" + layers.no_namespaces + ")"));
  if (layers.landlock_abi == 0) append(lacks, "Landlock");
  if (!layers.seccomp) append(lacks, "seccomp");
  return lacks;
}

EndOfAll end_of(const Layers& layers) {
  if (layers.namespaces != Namespaces::kNone) return EndOfAll::kPidNamespace;
  if (layers.own_uid) return EndOfAll::kUid;
  return layers.landlock_abi >= kLandlockAbiOfScopes ? EndOfAll::kLandlockDomain
                                                     : EndOfAll::kNoForks;
}

constexpr const char* kHelp =
    "allow user namespaces (sysctl user.max_user_namespaces, and in a container its seccomp and "
    "AppArmor profiles), use a kernel of 5.13 or later with Landlock among its LSMs, ";

}  // namespace

std::string text(const Layers& layers) {
  std::string has;
  if (layers.namespaces == Namespaces::kOfRoot) append(has, "namespaces");
  if (layers.namespaces == Namespaces::kOfUser) append(has, "namespaces with a user namespace");
  if (layers.own_uid) append(has, "own uid");
  if (layers.landlock_abi > 0) append(has, "Landlock " + std::to_string(layers.landlock_abi));
  if (layers.seccomp) append(has, "seccomp");
  append(has, "rlimits");
  if (layers.pids_group || layers.memory_group)
    append(has, std::string("cgroups ") + (layers.pids_group ? "pids" : "") +
                    (layers.pids_group && layers.memory_group ? "+" : "") +
                    (layers.memory_group ? "memory" : ""));
  if (!layers.memory_group) append(has, "memory watched");
  const std::string lacks = lacking(layers);
  return has + (lacks.empty() ? "" : "; lacks: " + lacks);
}

std::string text(const Plan& plan) {
  return std::string(spelling(plan.mode)) + ": " + text(plan.layers);
}

Result<Plan> plan_of(SandboxMode mode, const Layers& layers) {
  CHECK(mode != SandboxMode::kOff);
  const std::string lacks = lacking(layers);
  if (mode == SandboxMode::kStrict && !lacks.empty())
    return Error{ErrorCode::kInvalid,
                 "a strict sandbox is asked for, and this machine lacks " + lacks, "",
                 std::string(kHelp) + "or set `auto`"};
  const bool enough =
      layers.seccomp && (layers.namespaces != Namespaces::kNone || layers.landlock_abi > 0);
  if (!enough)
    return Error{ErrorCode::kInvalid,
                 "this machine has too little for a sandbox: it lacks " + lacks, "",
                 std::string(kHelp) + "or set `off`, and the program runs with all your rights"};
  return Plan{mode, layers, end_of(layers)};
}

Result<void> may_have_sockets(const Plan& plan) {
  if (plan.layers.namespaces != Namespaces::kNone) return {};
  return Error{ErrorCode::kInvalid,
               "a sandboxed program with a link needs namespaces, and this machine lacks " +
                   lacking(plan.layers),
               "", std::string(kHelp) + "or set `off`, and the program runs with all your rights"};
}

Plan no_sandbox() {
  return {SandboxMode::kOff, {.pids_group = true, .memory_group = true}, EndOfAll::kGroup};
}

}  // namespace tandem::sandbox
