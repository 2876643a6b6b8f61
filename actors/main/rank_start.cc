// The port is none of the launcher's: torchrun listens at MASTER_PORT itself. Keys are not handed
// over by the launcher: hosts that share TANDEM_HOME get those that rank 0 makes, for which the
// others wait, and hosts that do not have a copy of keys/.
#include "actors/main/rank_start.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ostream>
#include <string_view>
#include <system_error>
#include <utility>

#include "actors/cli/api_client.h"
#include "actors/launch/rank_env.h"
#include "actors/main/background.h"
#include "actors/main/launch_options.h"
#include "runtime/base/file.h"
#include "runtime/base/secret.h"
#include "runtime/link/endpoint.h"
#include "runtime/node/signals.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr Duration kKeysWithin = std::chrono::minutes(2);
constexpr Duration kLookForKeys = std::chrono::milliseconds(500);
constexpr int kEndedBySignal = 128;
constexpr std::size_t kFolderChars = 8;

launch::Variables own_variables() {
  launch::Variables variables;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view text(*one);
    if (const std::size_t equals = text.find('='); equals != text.npos)
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

// Ranks of ours, and engines that they start, are no ranks of the launcher's.
void forget_place(const launch::Variables& variables) {
  for (const auto& [name, value] : variables)
    if (launch::tells_a_place(name)) ::unsetenv(name.c_str());
}

Error no_master(const launch::RankPlace& place) {
  return {ErrorCode::kInvalid,
          "rank " + std::to_string(place.rank) + " of " + place.launcher +
              " does not know the host of rank 0: MASTER_ADDR is not set",
          "", launch::how_to_name_master(place) + ", or name the controller with --controller"};
}

// Where other hosts reach rank 0, which is this process.
Result<std::string> own_address(const RankJob& ranks, const RankNode& node,
                                const launch::RankPlace& place) {
  if (node.bind) return *node.bind;
  if (place.master.empty()) return no_master(place);
  auto way = link::way_to({.host = place.master, .port = static_cast<std::uint16_t>(ranks.port)});
  if (way && !link::is_loopback(way->theirs)) return std::move(way->theirs);
  return Error{
      ErrorCode::kInvalid,
      "MASTER_ADDR is " + place.master + ", which " +
          (way ? "is " + way->theirs + " here" : "has no address") +
          ": no other host reaches this one there",
      "",
      "name this host's address in MASTER_ADDR, as torchrun's --local-addr does, or with --bind"};
}

// `place`: null where this host is the only one.
Result<std::vector<std::string>> run_words(const RankJob& ranks, const RankNode& node,
                                           const launch::RankPlace* place) {
  std::vector<std::string> words{fs::canonical(own_program()).string(), "run", ranks.job->string()};
  const auto add = [&words](const char* option, const std::string& value) {
    words.insert(words.end(), {option, value});
  };
  for (const std::string& set : ranks.sets) add("--set", set);
  if (node.memory_bytes) add("--memory", std::to_string(*node.memory_bytes));
  if (place == nullptr || place->hosts == 1) return words;
  if (!place->hosts && !ranks.min_nodes)
    return Error{ErrorCode::kInvalid,
                 place->launcher + " does not tell on how many hosts it has started processes", "",
                 "say it with --min-nodes, or start one process on each host"};
  const auto address = own_address(ranks, node, *place);
  if (!address) return address.error();
  add("--cluster",
      (run_clusters(cli::tandem_home()) / ("ranks-" + random_secret().substr(0, kFolderChars)))
          .string());
  add("--bind", *address);
  add("--port", std::to_string(ranks.port));
  const std::int64_t least = ranks.min_nodes.value_or(place->hosts.value_or(1));
  add("--min-nodes", std::to_string(least));
  add("--nodes", std::to_string(std::max(least, place->hosts.value_or(least))));
  if (node.name) add("--node-name", *node.name);
  if (!node.ports.is_any()) add("--ports", to_string(node.ports));
  if (ranks.plaintext_gang) words.emplace_back("--allow-plaintext-gang");
  return words;
}

// Waits until the keys are there, for as long as rank 0 may take to make them. Returns the exit
// code where a signal comes first. Keys that are missing all the same are the node's error.
std::optional<int> await_keys(const cli::Console& console) {
  const fs::path keys = cli::tandem_home() / "keys";
  const auto there = [&keys] {
    std::error_code ignored;
    return fs::exists(keys / "controller.public", ignored) &&
           fs::exists(keys / "node.secret", ignored);
  };
  if (there()) return {};
  console.err << "waiting for the keys of rank 0's controller in " + keys.string() + "\n"
              << std::flush;
  node::Signals signals({SIGINT, SIGTERM});
  for (const Time late = steady_now() + kKeysWithin; !there() && steady_now() < late;)
    if (const int signal = signals.wait_for(kLookForKeys); signal != 0)
      return kEndedBySignal + signal;
  return {};
}

}  // namespace

void add_rank_job(cli::Options& options, RankJob& job) {
  options
      .add("--job", job.job,
           "Under mpirun or torchrun, which start this command on each host: rank 0 runs this job, "
           "with the nodes of the others")
      .value("JOB.yaml")
      .offers("files");
  options.add("--set", job.sets, "With --job: replace one key, as for `tandem run`")
      .value("KEY=VALUE")
      .one_each();
  options
      .add("--port", job.port,
           "Under mpirun or torchrun: where the controller on rank 0's host, MASTER_ADDR, listens")
      .value("PORT")
      .between(1, 65'533);
  options
      .add("--min-nodes", job.min_nodes, "With --job: begin when so many nodes are ready; else all")
      .value("N")
      .between(std::int64_t{1}, kNodesMax);
  cli::add_plaintext_gang(options, job.plaintext_gang);
  options.check([&job]() -> Result<void> {
    if (job.job || (job.sets.empty() && !job.min_nodes && !job.plaintext_gang)) return {};
    return Error{ErrorCode::kInvalid, "--set, --min-nodes and --allow-plaintext-gang are for --job",
                 "", "name the job"};
  });
}

Result<RankTurn> take_rank(const RankJob& ranks, const RankNode& node,
                           const cli::Console& console) {
  if (ranks.job && (node.controller_is_named || node.cpus))
    return Error{ErrorCode::kInvalid,
                 node.cpus ? "--cpus is not for --job: rank 0 offers all of its host"
                           : "--job makes a controller of rank 0, and one is named",
                 "", "leave one of both out"};
  if (node.controller_is_named) return RankTurn{};
  const launch::Variables variables = own_variables();
  const auto found = launch::rank_place(variables);
  if (!found) return found.error();
  const bool several = *found && (*found)->is_one_of_several();
  if (!several && !ranks.job) return RankTurn{};
  if (!*found)
    return Error{ErrorCode::kInvalid, "--job is for the processes of mpirun or torchrun", "",
                 "`tandem run " + ranks.job->string() + "` runs it on this machine"};
  const launch::RankPlace& place = **found;
  forget_place(variables);
  if (place.local_rank > 0) {
    console.err << "rank " + std::to_string(place.rank) +
                       " has nothing to do: another process of this host is its agent, which "
                       "offers all of it\n";
    return RankTurn{.code = 0};
  }
  if (place.rank == 0 && ranks.job) {
    auto words = run_words(ranks, node, several ? &place : nullptr);
    if (!words) return words.error();
    return become(*std::move(words), "is the program still there?");
  }
  if (place.rank == 0) {
    if (!running_keeper(cli::tandem_home())) return RankTurn{};
    console.err << "rank 0 has nothing to do: the node of this host's `tandem up` runs already\n";
    return RankTurn{.code = 0};
  }
  if (place.master.empty()) return no_master(place);
  return RankTurn{.code = await_keys(console),
                  .join = to_string(link::Endpoint{
                      .host = place.master, .port = static_cast<std::uint16_t>(ranks.port)})};
}

}  // namespace tandem::app
