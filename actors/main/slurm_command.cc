#include "actors/main/slurm_command.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ostream>

#include "actors/cli/api_client.h"
#include "actors/cli/shared_options.h"
#include "actors/job/resume.h"
#include "actors/launch/slurm_script.h"
#include "actors/main/background.h"
#include "runtime/base/file.h"
#include "runtime/base/secret.h"
#include "runtime/node/argument_vector.h"
#include "runtime/node/find_program.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kGpusPerNodeMax = 64;

std::string not_one_word(const std::string& text) {
  return launch::is_sbatch_word(text)
             ? ""
             : "`" + text + "` is not one word that a line of #SBATCH can have";
}
std::string not_an_option(const std::string& text) {
  return text.starts_with("--") ? not_one_word(text)
                                : "`" + text + "` does not begin with --, as in --constraint=a100";
}

// sbatch has this process's limits, which Slurm gives to the job. Returns only where it cannot be
// started.
Error become_sbatch(const fs::path& script) {
  const auto sbatch = node::find_program("sbatch", getenv("PATH"));
  if (!sbatch)
    return {ErrorCode::kInvalid, "there is no sbatch in PATH", script.string(),
            "is this a host of a Slurm cluster? The script is kept, and --dry-run prints it"};
  std::vector<std::string> words{"sbatch", "--parsable", script.string()};
  execv(sbatch->c_str(), node::argument_vector(words).data());
  return {ErrorCode::kFailed, std::string("sbatch cannot be started: ") + std::strerror(errno),
          sbatch->string(), "the script is kept in " + script.string()};
}

}  // namespace

cli::VerbHelp SlurmCommand::help() {
  return {.name = "slurm",
          .group = cli::VerbGroup::kRun,
          .description = "Run a job on nodes that Slurm gives",
          .examples = {"tandem slurm submit job.yaml --nodes 4 --time 8:00:00",
                       "tandem slurm submit job.yaml --nodes 4 --min-nodes 2 --dry-run",
                       "tandem slurm submit --resume arithmetic-grpo-1 --nodes 4"}};
}

void SlurmCommand::options(cli::Options& options) {
  options.add("ACTION", action, "submit: write the job script and give it to sbatch")
      .required()
      .choices({"submit"});
  add_job_file(options, job, resume, sets);
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
  std::optional<fs::path> run;
  if (resume) {
    auto found = job::find_run(*resume, cli::tandem_home() / "runs");
    if (!found) return found.error();
    run = *std::move(found);
  }
  const auto loaded = job::load_job_of(job, run, sets);
  if (!loaded) return loaded.error();
  for (const std::string& warning : loaded->warnings)
    context.console.err << "warning: " << warning << "\n";
  if (min_nodes.value_or(nodes) > nodes)
    return Error{ErrorCode::kInvalid, "--min-nodes is more than --nodes", "",
                 "the job would never begin"};
  const fs::path home = cli::tandem_home(), here = fs::current_path();
  for (const fs::path& path : {home, here})
    if (!launch::is_sbatch_word(path.string()))
      return Error{
          ErrorCode::kInvalid, not_one_word(path.string()), path.string(),
          path == home ? "set TANDEM_HOME to another folder" : "submit from another folder"};
  const std::string text = launch::slurm_script({.name = loaded->spec.name,
                                                 .home = home,
                                                 .folder = here,
                                                 .program = fs::canonical(own_program()),
                                                 .job = job ? fs::absolute(*job) : fs::path(),
                                                 .resume = run.value_or(""),
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
  context.console.err << "the job prints into " << (folder / "NUMBER.log").string()
                      << ", with the number that sbatch gives it:" << std::endl;
  return become_sbatch(script);
}

}  // namespace tandem::app
