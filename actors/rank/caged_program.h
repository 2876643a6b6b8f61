// The process of a user's program that runs in a sandbox. The process has the rank's link to the
// controller and starts the program, which reaches a socket of this process and nothing else
// (runtime/link/relay.h); it ends with the program, and the program with it.
//
// `tandem cage SETTINGS PROGRAM…` is a hidden command: an agent starts it in place of the program
// (SpawnRank), with the same words in TANDEM_ACTOR.
//
//   CG-1  The program knows neither the controller's address nor a key, and speaks to the
//         controller as its own actor alone.
//   CG-2  The rank's progress is the program's own, so that a program that hangs is found by the
//         rule for programs without a sandbox (scheduler/fleet/hang_timeout.h); one that does not
//         introduce itself is found as well.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/sandbox/profile.h"

namespace tandem::rank {

inline constexpr const char* kCageCommand = "cage";

struct CageSettings {
  sandbox::SandboxMode mode = sandbox::SandboxMode::kAuto;  // not kOff
  std::optional<std::uint64_t> memory_bytes = {};           // nullopt: no limit
  std::vector<std::string> readable = {};  // absolute paths, beside the program's own files
  // Names of variables that the program sees, beside those of CE-1 (runtime/node/child_program.h).
  std::vector<std::string> variables = {};
};

// The hidden command with its settings; the program's argv follows.
std::vector<std::string> cage_arguments(const CageSettings& settings);
// Carries out the hidden command; `arguments` begin behind its name. Returns the exit status: 0
// where the program has ended with 0.
int run_caged(std::span<const char* const> arguments);

// What keeps this process, where a cage has started it, for people; else empty.
std::string sandbox_of_this_process();

}  // namespace tandem::rank
