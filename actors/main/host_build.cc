#include "actors/main/host_build.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <span>
#include <system_error>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/device/cuda_module.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPartBytes = 1 << 20;
constexpr std::size_t kNameDigits = 24;   // of a tree, in the cache of a host
constexpr std::size_t kShownDigits = 12;  // to people
constexpr const char* kSums = "SHA256SUMS";
constexpr const char* kBundled = "libexec/tandem";

using Files = std::map<std::string, fs::path>;  // by their names in the tree

Result<std::string> digest_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return file_error("read", path);
  Sha256 digest;
  std::string part(kPartBytes, '\0');
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0)
    digest.update(std::as_bytes(std::span(part).first(static_cast<std::size_t>(file.gcount()))));
  if (file.bad()) return file_error("read", path);
  return digest.hex();
}

// A folder of scripts/bundle, whose program is a script that starts it by a loader of its own.
std::optional<fs::path> bundle() {
  const char* const wrapper = std::getenv("TANDEM_PROGRAM");
  if (wrapper == nullptr) return std::nullopt;
  const fs::path root = fs::path(wrapper).parent_path().parent_path();
  std::error_code failure;
  return fs::exists(root / kBundled, failure) ? std::optional(root) : std::nullopt;
}

Files files_of_bundle(const fs::path& root) {
  Files files;
  for (const char* const name : {"bin/tandem", "libexec/run", kBundled}) files[name] = root / name;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root / "lib", ignored))
    if (entry.is_regular_file(ignored))
      files["lib/" + entry.path().filename().string()] = entry.path();
  return files;
}

Files files_of_binary(const fs::path& executable) {
  Files files{{"tandem", executable}};
  const fs::path module = device::cuda_module_path();
  std::error_code ignored;
  if (fs::is_regular_file(module, ignored)) files[module.filename().string()] = module;
  return files;
}

Result<void> make_links(const fs::path& folder, const Files& files) {
  std::error_code failure;
  fs::remove_all(folder, failure);
  for (const auto& [name, path] : files) {
    if (!failure) fs::create_directories((folder / name).parent_path(), failure);
    if (!failure) fs::create_symlink(path, folder / name, failure);
    if (failure) return file_error("make a link", folder / name, failure.value());
  }
  return {};
}

}  // namespace

Result<HostBuild> stage_build(const fs::path& folder) {
  const fs::path executable = "/proc/" + std::to_string(getpid()) + "/exe";
  const auto root = bundle();
  const Files files = root ? files_of_bundle(*root) : files_of_binary(executable);
  if (const auto made = make_links(folder, files); !made) return made.error();
  HostBuild build{.program = {.entry = root ? "bin/tandem" : "tandem"}, .folder = folder};
  std::string sums;
  for (const auto& [name, path] : files) {
    const auto digest = digest_of(path);
    if (!digest) return digest.error();
    sums += *digest + "  " + name + "\n";
    if (name == "tandem" || name == kBundled) build.program.sha256 = *digest;
  }
  if (const auto written = write_file_atomic(folder / kSums, sums); !written)
    return written.error();
  build.program.tree = sha256_hex(std::as_bytes(std::span(sums))).substr(0, kNameDigits);
  std::error_code failure;
  const fs::path here = root ? *root / "bin/tandem" : fs::canonical(executable, failure);
  build.program.program = here.string();
  build.program.file = (root ? *root / kBundled : here).string();
  build.text = std::string("tandem ") + TANDEM_VERSION + ", sha256 " +
               build.program.sha256.substr(0, kShownDigits);
  return build;
}

}  // namespace tandem::app
