// Which build of a program a process runs. The processes of a cluster compute together, and two
// builds of one version may round differently, or differ in what no schema of messages tells: hence
// they must be one build, by content and not by a file's name or time (runtime/base/build_id.h).
//
//   PB-1  A peer that names a build is let in only where it is the server's: same version, same
//         build, and the same CUDA module where both have one. Its refusal names both. A peer that
//         names none is a user's program, which is compared by the wire's format alone.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/wire/fields.h"

namespace tandem::link {

struct ProgramBuild {
  std::string version;      // "tandem 0.1.0"; empty: the peer names no build
  std::string id;           // the program's build id
  std::string cuda_module;  // that of the module beside it; empty: it has none
  bool operator==(const ProgramBuild&) const = default;
};
TANDEM_WIRE(ProgramBuild, version, id, cuda_module)

// "tandem 0.1.0 build 7800ec5a2ef8", with the CUDA module where there is one.
std::string to_string(const ProgramBuild& build);

// PB-1: whether a peer of this name may join. Errors: kInvalid names both builds.
Result<void> one_program(const ProgramBuild& ours, const std::string& our_name,
                         const ProgramBuild& theirs, const std::string& their_name);

}  // namespace tandem::link
