// The user's home folder, Tandem's state folder, and texts of paths that begin with it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tandem {

// HOME; where it is unset or empty, as under cron or systemd, the folder of the user's entry in the
// list of users; "/" without either. Reads the environment: not beside a thread that changes it.
std::filesystem::path home_folder();

// The folder of Tandem's own files: TANDEM_HOME as an absolute path, or ~/.tandem. It may not
// exist. Reads the environment as home_folder() does.
std::filesystem::path state_folder();

// `path` with the home folder in place of `~`, `$HOME` or `${HOME}` at its beginning, alone or
// before a "/", as a shell has it; any other text as it is.
std::string with_home(std::string_view path);

}  // namespace tandem
