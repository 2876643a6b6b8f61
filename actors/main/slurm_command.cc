#include "actors/main/slurm_command.h"

#include <unistd.h>

#include <ostream>

#include "actors/cli/api_client.h"
#include "actors/cli/shared_options.h"
#include "actors/job/resume.h"
#include "actors/launch/slurm_script.h"
#include "runtime/base/file.h"
#include "runtime/base/secret.h"
#include "runtime/node/find_program.h"
#include "runtime/sandbox/run.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kNodesMax = 65536, kGpusPerNodeMax = 64;
constexpr Duration kSbatchWithin = std::chrono::minutes(2);

// What stands in the script as an option of sbatch: one line, and no second option.
std::string not_one_word(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_of(" \t\r\n#'\"\\") == std::string::npos;
  return plain ? "" : "`" + text + "` is not one word that a line of #SBATCH can have";
}
std::string not_an_option(const std::string& text) {
  return text.starts_with("--") ? not_one_word(text)
                                : "`" + text + "` does not begin with --, as in --constraint=a100";
}

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  for (char** at = environ; *at != nullptr; ++at) all.emplace_back(*at);
  return all;
}

// Gives the script to sbatch. Returns the number of Slurm's job.
Result<std::string> submitted(const fs::path& script) {
  const auto sbatch = node::find_program("sbatch", getenv("PATH"));
  if (!sbatch)
    return Error{ErrorCode::kInvalid, "there is no sbatch in PATH", "",
                 "is this a host of a Slurm cluster? --dry-run prints the script"};
  sandbox::Profile wide;
  wide.memory_bytes.reset();
  const auto outcome = sandbox::run(sandbox::no_sandbox(), wide,
                                    {.argv = {sbatch->string(), "--parsable", script.string()},
                                     .environment = own_environment(),
                                     .deadline = kSbatchWithin});
  if (!outcome) return outcome.error();
  // "1234" or "1234;cluster".
  const std::string id = outcome->output.substr(0, outcome->output.find_first_of(";\n"));
  const bool fine = outcome->end == sandbox::RunEnd::kExited && outcome->code == 0;
  if (fine && !id.empty()) return id;
  return Error{ErrorCode::kFailed,
               "sbatch did not take the job: " + (fine ? outcome->output
                                                  : outcome->errors.empty()
                                                      ? std::string(spelling(outcome->end))
                                                      : outcome->errors),
               script.string(), "the script is kept there"};
}

}  // namespace

cli::VerbHelp SlurmCommand::help() {
  return {.name = "slurm",
          .group = cli::VerbGroup::kRun,
          .description = "Run a job on nodes that Slurm gives",
          .examples = {"tandem slurm submit job.yaml --nodes 4 --time 8:00:00",
                       "tandem slurm submit job.yaml --nodes 4 --min-nodes 2 --dry-run"}};
}

void SlurmCommand::options(cli::Options& options) {
  options.add("ACTION", action, "submit: write the job script and give it to sbatch")
      .required()
      .choices({"submit"});
  options.add("JOB.yaml", job, "The job file, on a file system that all nodes see").required();
  add_sets(options, sets);
  options.add("--nodes", nodes, "How many nodes to ask Slurm for")
      .value("N")
      .between(std::int64_t{1}, kNodesMax);
  options.add("--min-nodes", min_nodes, "With how many the job begins; else with all")
      .value("N")
      .between(std::int64_t{1}, kNodesMax);
  options.add("--time", time, "The time limit, as sbatch takes it; the job saves before it is over")
      .value("TIME")
      .refuse_by(not_one_word);
  options.add("--partition", partition, "The partition; else the cluster's default")
      .value("NAME")
      .refuse_by(not_one_word);
  options.add("--gpus-per-node", gpus_per_node, "GPUs of each node")
      .value("N")
      .between(std::int64_t{0}, kGpusPerNodeMax);
  options
      .add("--sbatch", sbatch,
           "A further option of sbatch, as in --sbatch=--constraint=a100; also "
           "more than once")
      .value("OPTION")
      .one_each()
      .refuse_by(not_an_option);
  options.flag("--dry-run", dry_run, "Print the script, and submit nothing");
}

Result<int> SlurmCommand::run(const cli::VerbContext& context) {
  const auto loaded = job::load_job_of(job, {}, sets);
  if (!loaded) return loaded.error();
  for (const std::string& warning : loaded->warnings)
    context.console.err << "warning: " << warning << "\n";
  if (min_nodes.value_or(nodes) > nodes)
    return Error{ErrorCode::kInvalid, "--min-nodes is more than --nodes", "",
                 "the job would never begin"};
  const fs::path home = cli::tandem_home();
  const std::string text = launch::slurm_script({.name = loaded->spec.name,
                                                 .home = home,
                                                 .folder = fs::current_path(),
                                                 .program = fs::canonical(own_program()),
                                                 .job = fs::absolute(job),
                                                 .sets = sets,
                                                 .nodes = nodes,
                                                 .min_nodes = min_nodes.value_or(nodes),
                                                 .time = time.value_or(""),
                                                 .partition = partition.value_or(""),
                                                 .gpus_per_node = gpus_per_node,
                                                 .sbatch = sbatch});
  if (dry_run) {
    context.console.out << text;
    return 0;
  }
  const fs::path folder = home / "slurm";
  for (const fs::path& made : {home, folder})
    if (const auto there = make_private_directory(made); !there) return there.error();
  const fs::path script = folder / (loaded->spec.name + "." + std::to_string(getpid()) + ".sh");
  if (const auto written = write_file_atomic(script, text); !written) return written.error();
  const auto id = submitted(script);
  if (!id) return id.error();
  context.console.out << *id << "\n";
  context.console.err << "submitted; it prints into " << (folder / (*id + ".log")).string()
                      << "\nnext: squeue -j " << *id << "; tandem get runs; scancel " << *id
                      << "\n";
  return 0;
}

}  // namespace tandem::app
