// What a user asked for: the grammar of docs/cli.md as values. parse_command_line (command_line.h)
// makes them; actors/main carries them out, those that only talk HTTP through client_commands.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tandem::cli {

inline constexpr int kPortDefault = 7420;  // data and HTTP listen on the next two

enum class OutputForm { kTable, kWide, kJson, kYaml, kName };
enum class Kind { kJobs, kRuns, kActors, kNodes, kGroups, kEvents };
enum class Shell { kBash, kZsh, kFish };

struct RunCommand {
  std::optional<std::filesystem::path> job;  // none: with `resume` the run's own
  std::vector<std::string> sets;
  bool dry_run = false;
  std::optional<std::filesystem::path> resume;  // a run directory, or a run's id
  std::optional<std::int64_t> memory_bytes;     // as NodeCommand's, of the node that it starts
};

// Who may use the controller's HTTP API besides those who ask this machine with the token.
struct DoorFlags {
  std::string bind = "127.0.0.1";  // where other hosts' nodes come in
  std::vector<std::string> allow_hosts;
  bool metrics_without_token = false;
};

struct UpCommand {
  int port = kPortDefault;  // 0: any
  DoorFlags door;
  std::optional<std::int64_t> memory_bytes;  // as NodeCommand's
};
struct DownCommand {};

struct ControllerCommand {
  int port = kPortDefault;
  DoorFlags door;
};
struct NodeCommand {
  std::optional<std::string> controller;  // "host:port"; default: what its file says
  std::optional<std::string> name;        // default: the host's name
  // Where its ranks listen for other hosts, and how those reach it; default: the address from which
  // it reaches `controller`.
  std::optional<std::string> bind, advertise;
  std::optional<double> cpus;                // default: what this process may use
  std::optional<std::int64_t> memory_bytes;  // at most; default: what the machine leaves
};

struct SubmitCommand {
  std::optional<std::filesystem::path> job;  // as RunCommand's
  std::vector<std::string> sets;
  std::optional<std::filesystem::path> resume;
  bool wait = false;
  OutputForm output = OutputForm::kTable;
};

struct GetCommand {
  Kind kind = Kind::kJobs;
  std::optional<std::string> name;
  OutputForm output = OutputForm::kTable;
  bool watch = false;
  std::optional<std::string> job;  // -j
  bool all = false;                // tables show actors that have ended as well
  std::string sort_by;             // a field of the JSON, with '-' before it descending; or empty
};

struct DescribeCommand {
  Kind kind = Kind::kJobs;
  std::string name;
  std::optional<std::string> job;
};

struct WhyCommand {
  std::string target;  // an actor or a job
  OutputForm output = OutputForm::kTable;
  std::optional<std::string> job;
};

struct ScaleCommand {
  std::string job;
  std::vector<std::pair<std::string, std::int64_t>> roles;  // role, replicas
  bool wait = false;
  double timeout_s = 60;  // of --wait
};

struct LogsCommand {
  std::string target;  // an actor, or a job: then of all its actors
  bool follow = false;
  bool previous = false;
  std::optional<std::int64_t> tail;  // only so many of the last lines
  std::optional<double> since_s;     // only those of the last seconds
  std::optional<std::string> job;
};

struct EventsCommand {
  bool follow = false;
  OutputForm output = OutputForm::kTable;
  std::optional<std::string> job;
};

struct CancelCommand {
  std::string job;
};

struct DeleteCommand {
  std::string run;  // its id
};

struct StatusCommand {
  OutputForm output = OutputForm::kTable;
};

struct SamplesCommand {
  std::string job;  // or a run directory
  std::optional<std::int64_t> step;
  bool eval = false;
  bool failed = false;
  OutputForm output = OutputForm::kTable;
};

struct TopCommand {
  std::optional<std::string> job;
};

struct DashboardCommand {};

struct WaitCommand {
  std::string job;
  std::string state;  // one of kJobStates
  std::optional<double> timeout_s;
};

struct ExplainCommand {
  std::optional<std::string> key;
  bool markdown = false;  // hidden: prints docs/job-file.md
};

struct GenerateCommand {
  std::filesystem::path model;
  std::vector<std::string> prompts;
  bool chat = false;  // each prompt is what a user says
  std::int64_t max_tokens = 64;
  double temperature = 0.0;  // 0: greedy
  std::int64_t seed = 0;
  OutputForm output = OutputForm::kTable;
};

struct TokenizeCommand {
  std::filesystem::path model;
  std::vector<std::string> texts;  // or ids, with `decode`; none: standard input
  std::optional<std::string>
      jsonl;  // a file instead, with one text or list a line; -: standard input
  bool decode = false;
  OutputForm output = OutputForm::kTable;
};

struct EvalCommand {
  std::filesystem::path model;
  std::filesystem::path job;
  std::vector<std::string> sets;
  OutputForm output = OutputForm::kTable;
};

struct DoctorCommand {
  OutputForm output = OutputForm::kTable;
};
struct VersionCommand {
  OutputForm output = OutputForm::kTable;
};
struct CompletionCommand {
  Shell shell = Shell::kBash;
};

// `tandem __complete NAMES`: what the completion scripts offer, one word per line; see
// complete_command.h.
struct CompleteCommand {
  std::string names;
};

// `tandem`, `tandem --help`, `tandem get --help`: print the text and end with 0.
struct HelpCommand {
  std::string text;
};

using Command =
    std::variant<HelpCommand, RunCommand, UpCommand, DownCommand, ControllerCommand, NodeCommand,
                 SubmitCommand, GetCommand, DescribeCommand, WhyCommand, ScaleCommand, LogsCommand,
                 EventsCommand, CancelCommand, DeleteCommand, StatusCommand, SamplesCommand,
                 TopCommand, DashboardCommand, WaitCommand, ExplainCommand, GenerateCommand,
                 EvalCommand, TokenizeCommand, DoctorCommand, VersionCommand, CompletionCommand,
                 CompleteCommand>;

struct Invocation {
  Command command;
  std::optional<std::string> address;  // --address
  bool verbose = false;                // debug lines on stderr
};

}  // namespace tandem::cli
