#include "actors/rollout/external/server_plugin.h"

#include <cstdlib>
#include <filesystem>

#include "runtime/base/file.h"

namespace tandem::rollout {

// Written by CMake from tandem_vllm.py and tandem_trtllm.py.
extern const char* const kVllmModule;
extern const char* const kTrtllmModule;

Result<void> place_plugin(const std::string& folder,
                          std::map<std::string, std::string>& environment) {
  // Python finds an entry point by the folder of a distribution.
  const std::filesystem::path in(folder), distribution = in / "tandem_vllm-1.dist-info";
  std::error_code failed;
  std::filesystem::create_directories(distribution, failed);
  if (failed)
    return Error{ErrorCode::kFailed, "cannot make the folder: " + failed.message(), folder};
  for (const auto& [file, content] :
       {std::pair(in / "tandem_vllm.py", kVllmModule),
        std::pair(in / "tandem_trtllm.py", kTrtllmModule),
        std::pair(distribution / "METADATA",
                  "Metadata-Version: 2.1\nName: tandem-vllm\nVersion: 1\n"),
        std::pair(distribution / "entry_points.txt",
                  "[vllm.general_plugins]\ntandem_tcp = tandem_vllm:register\n")})
    if (const auto written = write_file_atomic(file, content); !written) return written.error();
  const auto named = environment.find("PYTHONPATH");
  const char* const inherited = std::getenv("PYTHONPATH");
  const std::string rest = named != environment.end() ? named->second : inherited ? inherited : "";
  environment["PYTHONPATH"] = rest.empty() ? folder : folder + ":" + rest;
  return {};
}

}  // namespace tandem::rollout
