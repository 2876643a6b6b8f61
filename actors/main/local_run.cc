// Everything that can be wrong with the job, its data, the run to resume or its memory is found
// before the cluster starts; --dry-run stops there. The controller gets the checked job, with the
// data that was read, by being a copy of this process. Then the job is submitted to it and followed
// by HTTP; the main thread draws what the follower has seen, and waits for signals in between.
//
// The first Ctrl-C cancels the job: it saves a checkpoint and ends as it would under `tandem
// cancel`. The second one ends the whole cluster at once, and so does one that comes while the
// processes end. A job that reaches its bounds is cancelled likewise, and ended at once if it takes
// long to end.
#include "actors/main/local_run.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "actors/cli/api_client.h"
#include "actors/cli/job_progress.h"
#include "actors/cli/progress_display.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/submission.h"
#include "actors/controller/demands.h"
#include "actors/job/print_job.h"
#include "actors/job/reading_notice.h"
#include "actors/job/resume.h"
#include "actors/main/job_follower.h"
#include "actors/main/job_inputs.h"
#include "actors/main/job_shape.h"
#include "actors/main/memory_plan.h"
#include "actors/main/run_cluster.h"
#include "actors/main/this_node.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/node/signals.h"
#include "scheduler/fleet/memory_fit.h"

namespace tandem::app {

namespace fs = std::filesystem;

namespace {

constexpr Duration kRedrawEvery = std::chrono::milliseconds(200);
constexpr Duration kPeekEvery = std::chrono::milliseconds(40);  // whether the job is over
// A cluster may have to make its machines first.
constexpr Duration kNodesWithin = std::chrono::hours(1);
constexpr Duration kLookForNodes = std::chrono::milliseconds(500);
constexpr Duration kNodesAnswer = std::chrono::seconds(2);  // signals are not heard meanwhile
constexpr Duration kBoundedEnd = std::chrono::seconds(30);  // for a job at its bounds to end

// Why the job is to end before it is over.
enum class EarlyEnd { kNone, kBounds, kInterrupt };

// Lines that YAML ignores, so that the whole output of --dry-run is a valid job file.
std::string commented(const std::string& lines) {
  std::string text;
  std::size_t begin = 0;
  for (std::size_t end; (end = lines.find('\n', begin)) != lines.npos; begin = end + 1)
    text += "#   " + lines.substr(begin, end - begin) + "\n";
  return text;
}

// --dry-run: prints the effective job, where each actor would run, and the memory of each rank.
int dry_run(const RunCommand& command, const job::LoadedJob& loaded, const CheckedInputs& inputs,
            const cli::Console& console) {
  const job::JobSpec& job = loaded.spec;
  const auto machine = offered_node(Incarnation{1}, {.memory_bytes = command.memory_bytes});
  if (!machine) return console.complain(machine.error());
  controller::ControllerCore fleet(0);  // a fleet of this machine alone, as `run` has it
  CHECK(fleet.step(*machine, Time{}).has_value());
  controller::JobShape asked = job_shape(job);
  if (inputs.model)
    add_memory_plan(job, *inputs.model, command.cluster ? Hosts::kSeveral : Hosts::kOne, asked);
  const auto shape = fleet.accepted(asked);
  if (!shape) return console.complain(shape.error());
  console.out << print_job(job);
  console.out << "# placement on " << machine->node << " ("
              << scheduler::text(fleet.nodes().at(machine->node).total) << ")\n";
  const std::vector<scheduler::RoleDemand> demands = controller::demands_of(*shape);
  for (const scheduler::RoleDemand& role : demands)
    console.out << "#   " << role.role << ": " << role.replicas << " actor(s) of " << role.ranks
                << " rank(s), " << scheduler::text(role.per_rank) << " each\n";
  if (inputs.model)
    console.out << "# memory of each rank\n" << commented(scheduler::memory_table_of(demands));
  return 0;
}

// The end by Ctrl-C: prints how to resume, and returns the exit code. A job that was not accepted
// yet is null. Nobody resumes a bounded run.
int stopped(const nlohmann::json& job, bool bounded, const cli::Console& console) {
  if (!job.is_null() && !bounded)
    console.err << job::resume_hint("run", job.value("run_dir", "")) << std::flush;
  return kInterrupted;
}

// The result of the run that the job made or went on with; nothing where the job ended before: the
// file may then be of an earlier time.
std::optional<nlohmann::json> result_of(const nlohmann::json& job) {
  if (!job.value("began", true)) return std::nullopt;
  const auto text = read_file(job.value("run_dir", "") + "/result.json");
  nlohmann::json result = text ? parse_json(*text) : nlohmann::json();
  if (!result.is_object()) return std::nullopt;
  return result;
}

// The job is over: prints its summary, and returns the exit code.
int conclude(const nlohmann::json& job, EarlyEnd early, bool bounded, cli::ProgressDisplay& display,
             const cli::Console& console) {
  const std::string run_dir = job.value("run_dir", "");
  display.show(job, steady_now(), true);
  display.erase();
  if (const auto result = result_of(job)) console.out << cli::final_summary(job, *result);
  console.out << std::flush;
  // A job that succeeded before the cancellation reached it has succeeded.
  if (job.value("state", "") == scheduler::name(scheduler::JobState::kSucceeded)) return 0;
  if (early == EarlyEnd::kInterrupt) return stopped(job, bounded, console);
  if (early == EarlyEnd::kBounds &&
      job.value("state", "") == scheduler::name(scheduler::JobState::kCancelled))
    return 0;
  return console.complain({ErrorCode::kFailed, job.value("message", "the job failed"), run_dir,
                           "its actors' logs are in " + run_dir + "/logs"});
}

// Somebody has ended them in order, or they died too often.
Error cluster_gone(const nlohmann::json& job) {
  Error error{ErrorCode::kFailed, "the controller and the node of this run have ended"};
  if (job.is_null()) return error;
  error.where = job.value("run_dir", "");
  error.help = "`" + job::resume_command("run", error.where) + "` goes on";
  return error;
}

// When a bounded job is cancelled, and when it is ended by force.
class Bounds {
 public:
  Bounds(const std::optional<RunBounds>& bounds, Time began) : bounds_(bounds), began_(began) {}

  bool there() const { return bounds_.has_value(); }
  bool reached(const nlohmann::json& job, Time now) const {
    return bounds_ && (now - began_ >= bounds_->time ||
                       (job.is_object() && job.value("step", std::int64_t{0}) >= bounds_->steps));
  }
  void cancelled(Time now) { end_by_ = now + kBoundedEnd; }
  bool overdue(Time now) const { return end_by_ && now >= *end_by_; }

 private:
  const std::optional<RunBounds> bounds_;
  const Time began_;
  std::optional<Time> end_by_;
};

void warn(const cli::Console& console, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) console.err << "warning: " << warning << "\n";
}

// Waits until so many nodes are ready. Returns the exit code where a signal comes first.
Result<std::optional<int>> wait_for_nodes(const RunCluster& cluster, std::int64_t least,
                                          node::Signals& signals) {
  const auto address = cluster.address();
  if (!address) return address.error();
  const cli::ApiClient api(*address, kNodesAnswer);
  for (const Time late = steady_now() + kNodesWithin;;) {
    const auto nodes = api.get("/nodes");  // one that does not answer is asked again
    const auto ready = !nodes ? 0 : std::ranges::count_if(*nodes, [](const auto& node) {
      return node.value("state", "") == "Ready";
    });
    if (ready >= least) return std::optional<int>();
    if (steady_now() >= late)
      return Error{ErrorCode::kTimedOut,
                   std::to_string(ready) + " of " + std::to_string(least) + " nodes have come in " +
                       std::to_string(kNodesWithin / std::chrono::seconds(1)) + " s",
                   cluster.folder().path.string(),
                   "what they print says why the others have not; --min-nodes begins with fewer"};
    if (signals.wait_for(kLookForNodes) != 0) return std::optional(kInterrupted);
  }
}

// Makes `link` lead to the run. It is made beside it first: a reader finds the old one or the new.
void make_link(const fs::path& link, const std::string& run_dir, const cli::Console& console) {
  const fs::path made = link.string() + ".new";
  std::error_code failure;
  fs::remove(made, failure);
  fs::create_symlink(run_dir, made, failure);
  if (!failure) fs::rename(made, link, failure);
  if (failure)
    warn(console, {"the link " + link.string() + " could not be made: " + failure.message()});
}

int submit_and_follow(RunCluster& cluster, const std::optional<fs::path>& link,
                      JobFollower::Submission submission, Bounds bounds, node::Signals& signals,
                      const cli::Console& console) {
  const auto address = cluster.address();
  if (!address) return console.complain(address.error());
  cli::ProgressDisplay display(console.out, console.err, console.terminal, console.width);
  JobFollower follower(
      *address, std::move(submission), [&cluster] { return cluster.may_come_back(); }, console);
  bool accepted = false, linked = false;
  EarlyEnd early = EarlyEnd::kNone;
  for (Time drawn{};;) {
    const JobFollower::Seen now = follower.seen();
    if (!now.job.is_null() && !std::exchange(accepted, true))
      console.err << "job " + now.job.value("id", "") +
                         "; look into it from elsewhere with TANDEM_ADDRESS=" +
                         to_string(address->endpoint) + "\n"
                  << std::flush;
    const std::string run_dir = now.job.is_null() ? "" : now.job.value("run_dir", "");
    // A link leads to a run that can be resumed.
    if (link && !linked && !run_dir.empty() &&
        (job::has_begun(run_dir) || job::is_of_actors_alone(run_dir))) {
      make_link(*link, run_dir, console);
      linked = true;
    }
    if (now.over) {
      const int code = conclude(now.job, early, bounds.there(), display, console);
      follower.stop();
      cluster.end(signals);
      return code;
    }
    if (now.failure) {
      display.erase();
      return console.complain(now.failure->code == ErrorCode::kUnreachable ? cluster_gone(now.job)
                                                                           : *now.failure);
    }
    if (accepted && steady_now() - drawn >= kRedrawEvery)
      display.show(now.job, drawn = steady_now());
    const int signal = signals.wait_for(kPeekEvery);
    if (early == EarlyEnd::kNone && bounds.reached(now.job, steady_now())) {
      early = EarlyEnd::kBounds;
      bounds.cancelled(steady_now());
      follower.cancel();
    }
    const bool overdue = bounds.overdue(steady_now());
    const bool again = early == EarlyEnd::kInterrupt && !cluster.is_force(signal);
    if ((signal == 0 || again) && !overdue) continue;
    display.erase();
    if (overdue || early == EarlyEnd::kInterrupt) {  // the second Ctrl-C: no clean end
      follower.stop();
      cluster.end_by_force();
      return early == EarlyEnd::kBounds ? 0 : stopped(now.job, bounds.there(), console);
    }
    early = EarlyEnd::kInterrupt;
    console.err << cancel_notice(now.job, bounds.there()) << std::flush;
    follower.cancel();
  }
}

// The command as it goes on with the run to which its link leads; as it is where there is none.
Result<RunCommand> linked(RunCommand command, const cli::Console& console) {
  std::error_code none;
  const fs::path run = command.resume_linked ? fs::read_symlink(*command.link, none) : fs::path();
  if (run.empty()) return command;
  if (!job::has_begun(run) && !job::is_of_actors_alone(run))
    return Error{ErrorCode::kNotFound, "the link leads to no run that can be resumed",
                 command.link->string(), "remove it to begin anew"};
  console.err << "going on with " << run.string() << std::endl;
  command.job.reset();
  command.sets.clear();
  command.resume = run;
  return command;
}

std::optional<JoinableCluster> joinable_of(const RunCommand& command) {
  if (!command.cluster) return {};
  return JoinableCluster{.folder = fs::absolute(*command.cluster),
                         .bind = *command.bind,
                         .node_name = command.node_name,
                         .grows = command.nodes.value_or(0) > command.min_nodes,
                         .port = command.port,
                         .health_port = command.health_port,
                         .node_grace_s = command.node_grace_s,
                         .ports = command.ports,
                         .plaintext_gang = command.plaintext_gang};
}

int run_job(const RunCommand& given, const cli::Console& console, bool verbose) {
  const Time began = steady_now();
  const auto chosen = linked(given, console);
  if (!chosen) return console.complain(chosen.error());
  const RunCommand& command = *chosen;
  std::optional<fs::path> run;
  if (command.resume) {
    auto found = job::find_run(*command.resume, cli::tandem_home() / "runs");
    if (!found) return console.complain(found.error());
    run = std::move(*found);
  }
  auto loaded = job::load_job_of(command.job, run, command.sets);
  if (!loaded) return console.complain(loaded.error());
  warn(console, loaded->warnings);
  auto checked = check_inputs(*loaded, job::tell_by([&console](const std::string& notice) {
    console.err << notice << std::endl;
  }),
                              command.dry_run ? KeepPrompts::kNo : KeepPrompts::kYes);
  if (!checked) return console.complain(checked.error());
  warn(console, checked->warnings);
  if (run) {
    const auto changes = check_run_to_resume(loaded->spec, *run);
    if (!changes) return console.complain(changes.error());
    warn(console, *changes);
  }
  if (command.dry_run) return dry_run(command, *loaded, *checked, console);

  // Signals are blocked before the first thread starts, since threads must inherit that.
  node::Signals signals({SIGINT, SIGTERM});
  ExpectedJob expected{.yaml = job::print_job(loaded->spec),
                       .resume = run ? run->string() : "",
                       .shape = job_shape(loaded->spec),
                       .prompts = std::move(checked->prompts)};
  if (checked->model)
    add_memory_plan(loaded->spec, *checked->model, command.cluster ? Hosts::kSeveral : Hosts::kOne,
                    expected.shape);
  if (run) resume_from(*run, expected.shape);
  const std::string yaml = expected.yaml;
  const auto cluster = RunCluster::start({.joinable = joinable_of(command),
                                          .memory_bytes = command.memory_bytes,
                                          .verbose = verbose,
                                          .job = std::move(expected)},
                                         console);
  if (!cluster) return console.complain(cluster.error());
  init_logging("tandem", verbose ? LogLevel::kDebug : LogLevel::kWarnings);
  const auto end = (*cluster)->wait_for_node(signals);
  if (!end) return console.complain(end.error());
  if (*end) return **end;
  if (command.cluster) {
    const auto ended = wait_for_nodes(**cluster, command.min_nodes, signals);
    if (!ended || *ended) {
      (*cluster)->end(signals);
      return ended ? **ended : console.complain(ended.error());
    }
  }
  return submit_and_follow(**cluster, command.link, {.path = cli::submit_path(run), .yaml = yaml},
                           {command.bounds, began}, signals, console);
}

}  // namespace

const char* cancel_notice(const nlohmann::json& job, bool bounded) {
  if (bounded)
    return "stopping the measurement, nothing is kept of it; once more to stop at once\n";
  if (job.is_null())
    return "cancelling as soon as the job is accepted; once more to stop at once\n";
  return job.value("trains", true)
             ? "cancelling; a checkpoint is saved first; once more to stop at once\n"
             : "cancelling; its actors finish first; once more to stop at once\n";
}

cli::VerbHelp RunCommand::help() {
  return {
      .name = "run",
      .group = cli::VerbGroup::kRun,
      .description = "Run a job on a cluster of its own: start, train, follow, stop",
      .examples = {
          "tandem run configs/arithmetic.yaml",
          "tandem run job.yaml --set rollout.n=16 --set async.max_staleness=4",
          "tandem run job.yaml --dry-run", "tandem run --resume ~/.tandem/runs/arithmetic-grpo-1",
          "tandem run --resume arithmetic-grpo-1 --set learner.total_training_steps=3000"}};
}

void RunCommand::options(cli::Options& options) {
  add_job_file(options, job, resume, sets);
  options.flag("--dry-run", dry_run,
               "Print the effective job, its placement and memory, and start nothing");
  add_memory(options, memory_bytes);
  options
      .add("--cluster", cluster,
           "Let nodes of other hosts join, by `tandem node --cluster DIR`: a new folder that all "
           "hosts see")
      .value("DIR");
  options.add("--bind", bind, "The address of this host that they reach")
      .value("ADDRESS")
      .refuse_by(cli::not_an_address)
      .refuse_by([](const std::string& address) -> std::string {
        return link::is_loopback(address) || link::is_any(address)
                   ? "no other host reaches this one at " + address
                   : "";
      });
  options.add("--node-name", node_name, "The name of this host's node; else the host's")
      .value("NAME");
  options.add("--min-nodes", min_nodes, "Begin when so many nodes are ready")
      .value("N")
      .between(std::int64_t{1}, kNodesMax);
  options
      .add("--nodes", nodes,
           "How many nodes will come; where they are more than --min-nodes, the job begins with "
           "the rollouts that fit, and gets the others when there is room")
      .value("N")
      .between(std::int64_t{1}, kNodesMax);
  cli::add_port(options, port);
  cli::add_ports(options, ports);
  cli::add_health_port(options, health_port);
  cli::add_node_grace(options, node_grace_s);
  cli::add_plaintext_gang(options, plaintext_gang);
  options.add("--link", link, "Make PATH a symbolic link to the run").value("PATH");
  options.flag("--resume-linked", resume_linked,
               "Where --link leads to a run already, go on with that one, as it is, instead");
  options.check([this]() -> Result<void> {
    if (resume_linked && !link)
      return Error{ErrorCode::kInvalid, "--resume-linked is for --link", "", "name the link"};
    if (cluster.has_value() != bind.has_value())
      return Error{ErrorCode::kInvalid, "--cluster and --bind belong together", "",
                   "other hosts need the folder and the address"};
    const RunCommand none;
    const bool alone = min_nodes == none.min_nodes && !nodes && !node_name && port == none.port &&
                       !health_port && node_grace_s == none.node_grace_s && ports.is_any() &&
                       !plaintext_gang;
    if (cluster || alone) return {};
    return Error{ErrorCode::kInvalid,
                 "--min-nodes, --nodes, --node-name, --port, --ports, --health-port, "
                 "--node-grace-s and --allow-plaintext-gang are for --cluster",
                 "", "leave them out"};
  });
}

Result<int> RunCommand::run(const cli::VerbContext& context) {
  return run_job(*this, context.console, context.verbose);
}

}  // namespace tandem::app
