#include "actors/main/ray_command.h"

#include <ostream>

#include "actors/cli/api_client.h"
#include "actors/cli/arguments.h"
#include "actors/cli/shared_options.h"
#include "actors/job/resume.h"
#include "actors/main/background.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/secret.h"

namespace tandem::app {

// Written by CMake from scripts/ray/tandem_launch.py.
extern const char* const kRayLauncher;

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSecondsMax = 86'400;

// The launcher, where this user's Python finds it.
Result<fs::path> place_launcher() {
  const fs::path home = cli::tandem_home(), folder = home / "ray";
  for (const fs::path& made : {home, folder})
    if (const auto there = make_private_directory(made); !there) return there.error();
  fs::path file = folder / "tandem_launch.py";
  if (const auto written = write_file_atomic(file, kRayLauncher); !written) return written.error();
  return file;
}

}  // namespace

cli::VerbHelp RayCommand::help() {
  return {.name = "ray",
          .group = cli::VerbGroup::kRun,
          .description = "Run a job on nodes that a Ray cluster gives",
          .examples = {"tandem ray submit job.yaml --nodes 4 --gpus-per-node 8",
                       "tandem ray submit --resume arithmetic-grpo-1 --nodes 4", "tandem ray list",
                       "tandem ray exec arithmetic-grpo -- get actors"}};
}

void RayCommand::options(cli::Options& options) {
  options
      .add("ACTION", action,
           "submit: ask Ray for the nodes, run the job there and follow it; list: the live jobs; "
           "exec: run a command of tandem beside the controller of a job, whose name in that list "
           "stands in the place of JOB.yaml")
      .required()
      .choices({"submit", "exec", "list"});
  options.add("JOB.yaml", job, "The job file; with --resume, else the run's own job.yaml");
  options.add("COMMAND", words, "exec: the command, behind --, without `tandem`")
      .value("...")
      .as_written();
  options
      .add("--resume", resume,
           "Continue a run, given by its directory or id, from its last checkpoint")
      .value("RUN_DIR");
  cli::add_sets(options, sets);
  add_launch_hosts(options, hosts, "node");
  options
      .add("--cpus-per-node", cpus_per_node,
           "CPUs of each node's bundle; else as many as so many nodes have")
      .value("N")
      .between(0.01, 65536.0);
  cli::add_ports(options, ports);
  cli::add_plaintext_gang(options, plaintext_gang);
  options.add("--address", address, "The Ray cluster, as ray.init takes it; else auto")
      .value("HOST:PORT");
  options.add("--python", python, "The Python that has Ray; else python3").value("PROGRAM");
  options.add("--wait-s", wait_s, "For how many seconds to wait for the nodes; else 600")
      .value("N")
      .between(std::int64_t{1}, kSecondsMax);
  options
      .add("--save-s", save_s,
           "How many seconds the job may take to save when it is told to end; else 180")
      .value("N")
      .between(std::int64_t{1}, kSecondsMax);
  options.check([this]() -> Result<void> {
    if (action == "submit" && !job && !resume)
      return cli::usage_error("JOB.yaml is required",
                              "a job file, or --resume RUN_DIR for that run's own");
    if (action == "exec" && (!job || words.empty()))
      return cli::usage_error("the name of a job and a command are required",
                              "as in `tandem ray exec arithmetic-grpo -- get actors`");
    if (action != "exec" && !words.empty())
      return cli::usage_error("`" + words.front() + "` is one word too many",
                              "a command is for exec");
    return {};
  });
}

Result<std::vector<std::string>> RayCommand::submit_words(const cli::Console& console) const {
  std::optional<fs::path> run;
  if (resume) {
    auto found = job::find_run(*resume, cli::tandem_home() / "runs");
    if (!found) return found.error();
    run = *std::move(found);
  }
  const auto loaded = job::load_job_of(job, run, sets);
  if (!loaded) return loaded.error();
  for (const std::string& warning : loaded->warnings) console.err << "warning: " << warning << "\n";
  std::vector<std::string> made;
  const auto add = [&made](const char* option, const std::string& value) {
    made.insert(made.end(), {option, value});
  };
  add("--program", fs::canonical(own_program()).string());
  add("--home", cli::tandem_home().string());
  add("--name", loaded->spec.name);
  add("--nodes", std::to_string(hosts.count));
  add("--min-nodes", std::to_string(hosts.least()));
  add("--gpus-per-node", std::to_string(hosts.gpus));
  if (cpus_per_node) add("--cpus-per-node", dump_json(*cpus_per_node));
  if (!ports.is_any()) add("--ports", to_string(ports));
  if (wait_s) add("--wait-s", std::to_string(*wait_s));
  if (save_s) add("--save-s", std::to_string(*save_s));
  if (run) add("--resume", run->string());
  made.emplace_back("--");
  if (job) made.push_back(fs::absolute(*job).string());
  for (const std::string& set : sets) add("--set", set);
  if (plaintext_gang) made.emplace_back("--allow-plaintext-gang");
  return made;
}

Result<int> RayCommand::run(const cli::VerbContext& context) {
  std::vector<std::string> more;
  if (action == "submit") {
    auto made = submit_words(context.console);
    if (!made) return made.error();
    more = *std::move(made);
  } else if (action == "exec") {
    more = {"--name", job->string(), "--"};
    more.insert(more.end(), words.begin(), words.end());
  }
  const auto launcher = place_launcher();
  if (!launcher) return launcher.error();
  std::vector<std::string> all{python, launcher->string(), action, "--address", address};
  all.insert(all.end(), more.begin(), more.end());
  return become(std::move(all), "name the Python that has Ray with --python");
}

}  // namespace tandem::app
