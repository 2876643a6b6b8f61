// This build as `tandem up --hosts` gives it to hosts that lack it: the program, and the files that
// it needs beside it. They are not copied here: the folder has links to them, which tar follows.
#pragma once

#include <filesystem>
#include <string>

#include "actors/launch/host_script.h"
#include "runtime/base/result.h"

namespace tandem::app {

struct HostBuild {
  launch::HostProgram program;
  std::filesystem::path folder;  // the links, and SHA256SUMS of what they lead to
  std::string text;              // "tandem 1.0.0, sha256 0123456789ab"
};

// Makes `folder` anew. The links lead to this process's executable, also where its file has been
// replaced since, so that they are of use as long as this process lives.
Result<HostBuild> stage_build(const std::filesystem::path& folder);

}  // namespace tandem::app
