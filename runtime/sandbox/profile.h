// What a sandboxed program may see and take. Plain values, without the means by which they are
// kept: those are in layers.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/enum_names.h"

namespace tandem::sandbox {

// How much is asked of the machine: kStrict refuses to start with less than every layer, kAuto
// takes what the machine has, down to a minimum (layers.h), kOff runs programs as they are.
enum class SandboxMode : std::uint8_t { kOff, kAuto, kStrict };
constexpr auto enum_names(SandboxMode) {
  using enum SandboxMode;
  return enum_name_rows<SandboxMode>({{kOff, "off"}, {kAuto, "auto"}, {kStrict, "strict"}});
}

struct Profile {
  // Memory of the whole sandbox where the machine has a memory cgroup to give, else the address
  // space of each process; nullopt: no limit.
  std::optional<std::uint64_t> memory_bytes = 1u << 30;
  std::uint64_t processes = 64;                   // and threads, together
  std::optional<std::uint64_t> cpu_seconds = 60;  // of each process
  std::uint64_t file_bytes = 64u << 20;           // of each file that the program writes
  std::uint64_t scratch_bytes = 128u << 20;       // of all files in the scratch folder together
  std::uint64_t open_files = 256;                 // of each process
  // Absolute paths of files and folders that the program may read and execute, beside those of the
  // system. They are seen at the same paths.
  std::vector<std::string> readable;
  // A folder with Unix sockets that the program may connect to, seen at the same path. Its sandbox
  // needs namespaces, since nothing else keeps it from other sockets (may_have_sockets()). Empty:
  // it makes no socket.
  std::string sockets = {};
  // Absolute paths that stay out of sight, also where they lie in a readable folder.
  std::vector<std::string> hidden;
};

}  // namespace tandem::sandbox
