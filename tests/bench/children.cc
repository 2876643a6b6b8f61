#include "tests/bench/children.h"

#include <unistd.h>

#include <filesystem>

#include "tests/bench/must.h"

namespace tandem::bench {

void Children::spawn(const std::string& role, int count, std::vector<std::string> arguments) {
  const auto log = std::filesystem::temp_directory_path() /
                   ("tandem-bench-" + std::to_string(getpid()) + ".log");
  for (int i = 0; i < count; ++i) {
    std::vector<std::string> argv{"/proc/self/exe", role, std::to_string(getpid()),
                                  role + "/" + std::to_string(i)};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    must(host_.spawn({.name = role, .argv = std::move(argv), .log_path = log},
                     [](node::ProcessId, const node::ExitStatus&) {}));
  }
}

void die_with_parent(const char* parent_pid) {
  must(node::arm_parent_death_signal(static_cast<pid_t>(std::stol(parent_pid))));
}

}  // namespace tandem::bench
