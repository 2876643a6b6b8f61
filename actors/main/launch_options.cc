#include "actors/main/launch_options.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "actors/main/background.h"
#include "runtime/node/argument_vector.h"
#include "runtime/node/find_program.h"

namespace tandem::app {
namespace {

constexpr std::int64_t kGpusPerHostMax = 64;

}  // namespace

void add_launch_hosts(cli::Options& options, LaunchHosts& hosts, const std::string& one) {
  options
      .add("--nodes", hosts.count,
           "How many " + one + "s to ask for; one of them has the controller too")
      .value("N")
      .between(std::int64_t{1}, kNodesMax);
  options
      .add(
          "--min-nodes", hosts.min,
          "With how many the job begins: they have to have room for all of it but its rollouts, of "
          "which it begins with those that fit; else with all")
      .value("N")
      .between(std::int64_t{1}, kNodesMax);
  options.add("--gpus-per-node", hosts.gpus, "GPUs of each " + one)
      .value("N")
      .between(std::int64_t{0}, kGpusPerHostMax);
  options.check([&hosts]() -> Result<void> {
    if (hosts.least() <= hosts.count) return {};
    return Error{ErrorCode::kInvalid, "--min-nodes is more than --nodes", "",
                 "the job would never begin"};
  });
}

Error become(std::vector<std::string> words, const std::string& help) {
  const auto program = node::find_program(words.front(), std::getenv("PATH"));
  if (!program) return {ErrorCode::kInvalid, "there is no " + words.front() + " in PATH", "", help};
  execv(program->c_str(), node::argument_vector(words).data());
  return {ErrorCode::kFailed, words.front() + " cannot be started: " + std::strerror(errno),
          program->string(), help};
}

}  // namespace tandem::app
