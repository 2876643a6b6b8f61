// The request of a user as values: one struct per command of docs/cli.md, with the defaults of its
// options. parse_command_line (command_line.h) makes them. Client commands are carried out by
// client_program.h and client_commands.h, the others by actors/main.
//
// Names of jobs, actors and runs are as the user wrote them; object_names.h resolves them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tandem::cli {

inline constexpr int kPortDefault = 7420;  // payloads and HTTP use the next two

// kTable and kWide are for people and may change; kJson, kJsonl (an object per line) and kYaml are
// for programs; kName has one "kind/name" per line.
enum class OutputForm { kTable, kWide, kJson, kJsonl, kYaml, kName };
enum class Kind { kJobs, kRuns, kActors, kNodes, kGroups, kEvents };
enum class Shell { kBash, kZsh, kFish };

// `tandem run`: a cluster of its own for one job.
struct RunCommand {
  std::optional<std::filesystem::path> job;  // nullopt: the job.yaml of the run `resume`
  std::vector<std::string> sets;
  bool dry_run = false;
  std::optional<std::filesystem::path> resume;  // a run directory, or a run's id
  std::optional<std::int64_t> memory_bytes;  // offered by the node that it starts; see NodeCommand
};

// Who may use the controller's HTTP API, besides clients on this machine that have the token, and
// from where nodes may join.
struct DoorFlags {
  std::string bind = "127.0.0.1";  // where nodes of other hosts join
  std::vector<std::string> allow_hosts;
  bool metrics_without_token = false;
};

// `tandem up` and `down`: a cluster in the background.
struct UpCommand {
  int port = kPortDefault;  // 0: any
  DoorFlags door;
  std::optional<std::int64_t> memory_bytes;  // see NodeCommand
};
struct DownCommand {};

// `tandem controller` and `node`: the two processes of a cluster, in the foreground.
struct ControllerCommand {
  int port = kPortDefault;
  DoorFlags door;
};
struct NodeCommand {
  std::optional<std::string> controller;  // "host:port"; default: from controller.json
  std::optional<std::string> name;        // default: the host's name
  // The address at which ranks listen for other hosts, and the address by which those reach it;
  // default: the address from which this machine reaches `controller`.
  std::optional<std::string> bind, advertise;
  std::optional<double> cpus;                // default: those that this process may use
  std::optional<std::int64_t> memory_bytes;  // at most; default: all that the machine has left
};

// `tandem submit`: a job for the running cluster.
struct SubmitCommand {
  std::optional<std::filesystem::path> job;  // see RunCommand
  std::vector<std::string> sets;
  std::optional<std::filesystem::path> resume;
  bool wait = false;
  OutputForm output = OutputForm::kTable;
};

// `tandem get` and, with kEvents, `tandem events`.
struct GetCommand {
  Kind kind = Kind::kJobs;
  std::optional<std::string> name;
  OutputForm output = OutputForm::kTable;
  bool watch = false;
  std::optional<std::string> job;  // -j
  bool all = false;                // tables show actors that have ended as well
  std::string sort_by;             // a field of the JSON, with '-' before it descending; or empty
};

// `tandem describe`: everything known about one object.
struct DescribeCommand {
  Kind kind = Kind::kJobs;
  std::string name;
  std::optional<std::string> job;
};

// `tandem why`: who waits for whom.
struct WhyCommand {
  std::string target;  // an actor or a job
  OutputForm output = OutputForm::kTable;
  std::optional<std::string> job;
};

// `tandem scale`: desired actors per role.
struct ScaleCommand {
  std::string job;
  std::vector<std::pair<std::string, std::int64_t>> roles;  // role, replicas
  bool wait = false;
  double timeout_s = 60;  // seconds, of --wait
};

// `tandem ask`: a question to an actor of a role that the job brings.
struct AskCommand {
  std::string actor;
  std::string question;             // one JSON object
  std::optional<double> timeout_s;  // nullopt: the controller's
  std::optional<std::string> job;
};

// `tandem logs`.
struct LogsCommand {
  std::string target;  // an actor, or a job: then of all its actors
  bool follow = false;
  bool previous = false;
  std::optional<std::int64_t> tail;  // only so many of the last lines
  std::optional<double> since_s;     // only those of the last seconds
  std::optional<std::string> job;
};

// `tandem events`.
struct EventsCommand {
  bool follow = false;
  OutputForm output = OutputForm::kTable;
  std::optional<std::string> job;
};

// `tandem cancel`: ends a job and waits until its actors have stopped.
struct CancelCommand {
  std::string job;
};

// `tandem delete`: removes a run that has ended. A name is not accepted: it may mean another run
// later.
struct DeleteCommand {
  std::string run;  // the id
};

// `tandem status`: the controller and counts of nodes, jobs and runs.
struct StatusCommand {
  OutputForm output = OutputForm::kTable;
};

// `tandem samples`: completions with their rewards. Without `step` the samples of all steps are
// shown.
struct SamplesCommand {
  std::string job;  // or a run directory
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> limit;  // nullopt: the server's
  bool eval = false;
  bool failed = false;
  OutputForm output = OutputForm::kTable;
};

// `tandem top`: a screen that redraws itself.
struct TopCommand {
  std::optional<std::string> job;
};

// `tandem dashboard`: an address that opens the web page once.
struct DashboardCommand {};

// `tandem wait`: until a job is in a state, or has ended.
struct WaitCommand {
  std::string job;
  std::string state;                // one of kJobStates
  std::optional<double> timeout_s;  // nullopt: no limit
};

// `tandem explain`: the reference of the job file.
struct ExplainCommand {
  std::optional<std::string> key;
  bool markdown = false;  // hidden: prints docs/job-file.md
};

// `tandem generate`, `tokenize` and `eval`: one model directory, without a cluster.
struct GenerateCommand {
  std::filesystem::path model;
  std::vector<std::string> prompts;
  bool chat = false;  // each prompt is the message of a user
  std::int64_t max_tokens = 64;
  double temperature = 0.0;  // 0: greedy
  std::int64_t seed = 0;
  OutputForm output = OutputForm::kTable;
};

struct TokenizeCommand {
  std::filesystem::path model;
  std::vector<std::string> texts;  // or ids, with `decode`; empty: read from standard input
  // A file to read instead, with one text or list per line; "-": standard input.
  std::optional<std::string> jsonl;
  bool decode = false;
  OutputForm output = OutputForm::kTable;
};

struct EvalCommand {
  std::filesystem::path model;
  std::filesystem::path job;
  std::vector<std::string> sets;
  OutputForm output = OutputForm::kTable;
};

// Commands that look at this machine or this program alone.
struct DoctorCommand {
  OutputForm output = OutputForm::kTable;
};
struct VersionCommand {
  OutputForm output = OutputForm::kTable;
};
struct CompletionCommand {
  Shell shell = Shell::kBash;
};

// `tandem __complete NAMES`: the words that the completion scripts offer, one per line; see
// complete_command.h.
struct CompleteCommand {
  std::string names;
};

// `tandem`, `tandem --help`, `tandem get --help`: prints the text and ends with 0.
struct HelpCommand {
  std::string text;
};

using Command =
    std::variant<HelpCommand, RunCommand, UpCommand, DownCommand, ControllerCommand, NodeCommand,
                 SubmitCommand, GetCommand, DescribeCommand, WhyCommand, ScaleCommand, AskCommand,
                 LogsCommand, EventsCommand, CancelCommand, DeleteCommand, StatusCommand,
                 SamplesCommand, TopCommand, DashboardCommand, WaitCommand, ExplainCommand,
                 GenerateCommand, EvalCommand, TokenizeCommand, DoctorCommand, VersionCommand,
                 CompletionCommand, CompleteCommand>;

// A command with the options that every command takes.
struct Invocation {
  Command command;
  std::optional<std::string> address;  // --address
  bool verbose = false;                // debug lines on stderr
};

}  // namespace tandem::cli
