#include "actors/main/slurm_command.h"

#include <unistd.h>

#include <cstdlib>
#include <ostream>

#include "actors/cli/api_client.h"
#include "actors/cli/arguments.h"
#include "actors/cli/shared_options.h"
#include "actors/job/resume.h"
#include "actors/main/background.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/secret.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

const std::string kOnAHost = "is this a host of a Slurm cluster? ";

std::string not_one_word(const std::string& text) {
  return launch::is_sbatch_word(text)
             ? ""
             : "`" + text + "` is not one word that a line of #SBATCH can have";
}
std::string not_an_option(const std::string& text) {
  return text.starts_with("--") ? not_one_word(text)
                                : "`" + text + "` does not begin with --, as in --constraint=a100";
}

// The settings of one run of a sweep: its values of the swept keys, and the labels by which it is
// found.
std::vector<std::string> sets_of(const cli::SweepPoint& point, const job::JobSpec& job) {
  std::vector<std::string> sets = point;
  sets.push_back("tracking.group=" + dump_json(job.tracking.group.value_or("")));
  if (job.tracking.run_name)
    sets.push_back("tracking.run_name=" + dump_json(*job.tracking.run_name));
  return sets;
}

// The cluster's folder of a job's newest start, if its controller has written where it listens.
std::optional<fs::path> newest_cluster(const fs::path& state) {
  std::optional<fs::path> newest;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(state, none))
    if (entry.path().filename().string().starts_with("cluster-") &&
        fs::exists(entry.path() / "controller.json", none))
      newest = entry.path();  // a start removes those before it
  return newest;
}

}  // namespace

cli::VerbHelp SlurmCommand::help() {
  return {.name = "slurm",
          .group = cli::VerbGroup::kRun,
          .description = "Run a job on nodes that Slurm gives",
          .examples = {"tandem slurm submit job.yaml --nodes 4 --time 8:00:00",
                       "tandem slurm submit job.yaml --nodes 4 --min-nodes 2 --dry-run",
                       "tandem slurm submit job.yaml --sweep seed=1,2,3",
                       "tandem slurm submit --resume arithmetic-grpo-1 --nodes 4",
                       "tandem slurm exec 1234 -- get actors",
                       "tandem slurm exec 1234 -- scale arithmetic-grpo-1 rollout=8"}};
}

void SlurmCommand::options(cli::Options& options) {
  options
      .add("ACTION", action,
           "submit: write the job script and give it to sbatch; exec: run a command of tandem "
           "beside the controller of a job, whose number in Slurm stands in the place of JOB.yaml")
      .required()
      .choices({"submit", "exec"});
  add_job_file(options, job, resume, sets);
  options.add("COMMAND", words, "exec: the command, behind --, without `tandem`")
      .value("...")
      .as_written();
  add_sweep(options, sets, sweeps, resume, given);
  add_launch_hosts(options, hosts, "node");
  options.add("--time", time, "The time limit, as sbatch takes it; the job saves before it is over")
      .value("TIME")
      .refuse_by(not_one_word);
  options.add("--partition", partition, "The partition; else the cluster's default")
      .value("NAME")
      .refuse_by(not_one_word);
  options
      .add("--node-grace-s", node_grace_s,
           "For how many seconds the nodes wait for the first one before they ask Slurm to start "
           "the job again; 300 without it")
      .value("N")
      .between(cli::kNodeGraceMinS, cli::kNodeGraceMaxS);
  cli::add_ports(options, ports);
  cli::add_plaintext_gang(options, plaintext_gang);
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
  return action == "exec" ? exec() : submit(context.console);
}

Result<launch::SlurmJob> SlurmCommand::slurm_job(const cli::Console& console) const {
  std::optional<fs::path> run;
  if (resume) {
    auto found = job::find_run(*resume, cli::tandem_home() / "runs");
    if (!found) return found.error();
    run = *std::move(found);
  }
  const auto loaded = cli::load_sweep(job, run, given, cli::sweep_time(unix_ms()));
  if (!loaded) return loaded.error();
  for (const std::string& warning : loaded->front().warnings)
    console.err << "warning: " << warning << "\n";
  std::vector<std::vector<std::string>> sweep;
  if (!given.sweeps.empty()) {
    const auto points = cli::sweep_points(given.sweeps);
    if (!points) return points.error();
    for (std::size_t i = 0; i < points->size(); ++i)
      sweep.push_back(sets_of((*points)[i], (*loaded)[i].spec));
  }
  return launch::SlurmJob{.name = loaded->front().spec.name,
                          .home = cli::tandem_home(),
                          .folder = fs::current_path(),
                          .program = fs::canonical(own_program()),
                          .job = job ? fs::absolute(*job) : fs::path(),
                          .resume = run.value_or(""),
                          .sets = given.sets,
                          .sweep = std::move(sweep),
                          .nodes = hosts.count,
                          .min_nodes = hosts.least(),
                          .time = time.value_or(""),
                          .partition = partition.value_or(""),
                          .gpus_per_node = hosts.gpus,
                          .node_grace_s = node_grace_s,
                          .ports = to_string(ports),
                          .plaintext_gang = plaintext_gang,
                          .sbatch = sbatch};
}

Result<int> SlurmCommand::submit(const cli::Console& console) const {
  if (!words.empty())
    return cli::usage_error("`" + words.front() + "` is one word too many",
                            "submit takes JOB.yaml alone");
  const auto asked = slurm_job(console);
  if (!asked) return asked.error();
  for (const fs::path& path : {asked->home, asked->folder})
    if (!launch::is_sbatch_word(path.string()))
      return Error{
          ErrorCode::kInvalid, not_one_word(path.string()), path.string(),
          path == asked->home ? "set TANDEM_HOME to another folder" : "submit from another folder"};
  const std::string text = launch::slurm_script(*asked);
  if (dry_run) {
    console.out << text;
    return 0;
  }
  const fs::path folder = asked->home / "slurm";
  for (const fs::path& made : {asked->home, folder})
    if (const auto there = make_private_directory(made); !there) return there.error();
  const fs::path script = folder / (asked->name + "." + std::to_string(getpid()) + ".sh");
  if (const auto written = write_file_atomic(script, text); !written) return written.error();
  const fs::path log = folder / (asked->sweep.empty() ? "NUMBER.log" : "NUMBER_INDEX.log");
  console.err << "the job prints into " << log.string()
              << ", with the number that sbatch gives it:" << std::endl;
  return become(
      {"sbatch", "--parsable", script.string()},
      kOnAHost + ("The script is kept in " + script.string() + ", and --dry-run prints it"));
}

Result<int> SlurmCommand::exec() const {
  if (!job || words.empty())
    return cli::usage_error("the number of a job and a command are required",
                            "as in `tandem slurm exec 1234 -- get actors`");
  const fs::path state = cli::tandem_home() / "slurm" / job->filename();
  const auto number = read_file(state / "number");
  const auto cluster = newest_cluster(state);
  const auto file = cluster ? read_controller_file(*cluster)
                            : Error{ErrorCode::kNotFound, "it has not begun, or has ended"};
  if (!number || !file)
    return Error{ErrorCode::kNotFound, "Slurm's job " + job->string() + " has no controller now",
                 state.string(),
                 "`squeue` tells its state, and " + state.string() + ".log what it printed"};
  ::setenv("TANDEM_HOME", cli::tandem_home().c_str(), 1);
  ::setenv("TANDEM_ADDRESS", file->http.c_str(), 1);
  std::vector<std::string> srun{"srun",       "--jobid=" + number->substr(0, number->find('\n')),
                                "--overlap",  "--nodes=1",
                                "--ntasks=1", "--relative=0",
                                "--quiet"};
  if (isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0) srun.emplace_back("--pty");
  srun.push_back(fs::canonical(own_program()).string());
  srun.insert(srun.end(), words.begin(), words.end());
  return become(std::move(srun), kOnAHost);
}

}  // namespace tandem::app
