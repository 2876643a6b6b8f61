#include "runtime/base/home_path.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace tandem {

std::filesystem::path home_folder() {
  if (const char* const home = std::getenv("HOME"); home && *home) return home;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer;
  if (getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found) return "/";
  return entry.pw_dir;
}

std::filesystem::path state_folder() {
  const char* const home = std::getenv("TANDEM_HOME");
  if (home && *home) return std::filesystem::absolute(home);
  return home_folder() / ".tandem";
}

std::string with_home(std::string_view path) {
  for (const std::string_view name : {"~", "$HOME", "${HOME}"}) {
    if (!path.starts_with(name)) continue;
    const std::string_view rest = path.substr(name.size());
    if (rest.empty() || rest.starts_with('/')) return home_folder().string() + std::string(rest);
  }
  return std::string(path);
}

}  // namespace tandem
