// The grammar is built once per parse: CLI11 writes options and arguments into the command structs
// below, and the function in `finish_` of the subcommand that was met makes the command from them.
// docs/cli.md and completion read the same definition back (grammar.h). Errors that CLI11 would
// explain badly, misspelt commands and options above all, are found here, so that the nearest name
// is in the help.
#include "actors/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "actors/cli/arguments.h"
#include "actors/cli/cluster_options.h"
#include "actors/cli/command_values.h"
#include "actors/cli/complete_command.h"
#include "actors/cli/grammar.h"
#include "actors/cli/grammar_docs.h"

namespace tandem::cli {
namespace {

constexpr const char* kRun = "Run and submit";
constexpr const char* kLook = "Look into it";
constexpr const char* kChange = "Change it";
constexpr const char* kCluster = "The cluster";
constexpr const char* kModels = "Models";
constexpr const char* kHelp = "Help";

// CLI11 splits "[a,b]" into a and b where an argument repeats. This character behind such a word
// keeps it whole; only a prompt may look like that, and there it is taken off again.
constexpr char kTakenAsWritten = '\x01';
const std::map<std::string, OutputForm> kForms{
    {"table", OutputForm::kTable}, {"wide", OutputForm::kWide}, {"json", OutputForm::kJson},
    {"jsonl", OutputForm::kJsonl}, {"yaml", OutputForm::kYaml}, {"name", OutputForm::kName}};
const std::map<std::string, Shell> kShells{
    {"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}};
const std::vector<std::string> kLaterCommands{"drain", "size", "simulate", "replay", "serve"};
const std::vector<std::string> kJobStates{"Queued",   "Starting",  "WarmStart", "Running",
                                          "Stopping", "Succeeded", "Failed",    "Cancelled"};
template <class T>
std::vector<std::string> keys_of(const std::map<std::string, T>& names) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : names) keys.push_back(key);
  return keys;
}

class Grammar {
 public:
  Grammar();
  Result<Invocation> parse(std::vector<std::string> arguments);
  GrammarDoc doc() const;

 private:
  // Builds a subcommand; `finish` turns what CLI11 stored into the command.
  CLI::App* add(const std::string& name, const char* group, const std::string& description,
                std::function<Result<Command>()> finish, std::vector<std::string> examples);
  void add_run_commands();
  void add_object_commands();
  void add_record_commands();
  void add_change_commands();
  void add_cluster_commands();
  void add_model_commands();
  void add_tokenize();
  void add_help_commands();
  // Parts that several commands share.
  void add_job_file(CLI::App* app);
  Result<void> name_job(std::optional<std::filesystem::path>& job,
                        std::optional<std::filesystem::path>& resume) const;
  void add_sets(CLI::App* app, std::vector<std::string>& sets);
  void add_output(CLI::App* app, OutputForm& form, std::vector<std::string> forms);
  void add_job(CLI::App* app, std::optional<std::string>& job);
  CLI::Option* add_required(CLI::App* app, const std::string& name, std::string& value,
                            const std::string& description);
  // An error of CLI11 in our words, with the nearest option where one is misspelt.
  Error explain_failure(const CLI::ParseError& error, const std::vector<std::string>& arguments);
  const CLI::App* parsed() const;
  std::vector<std::string> command_names() const;
  // The parser, and by subcommand: how its command is made, its examples; by option: its values.
  CLI::App app_{"Post-training of language models by asynchronous reinforcement learning."};
  std::map<const CLI::App*, std::function<Result<Command>()>> finish_;
  std::map<const CLI::App*, std::vector<std::string>> examples_;
  Choices choices_;
  bool version_ = false;
  Invocation globals_;
  // CLI11 writes into these while it parses; all have their defaults before.
  CommandValues given_;
  std::vector<std::string> names_, scales_;  // KIND [NAME] and ROLE=N as written
  std::string job_path_, model_path_, resume_, timeout_, state_, memory_, shell_, since_;
};

Grammar::Grammar() {
  app_.name("tandem");
  app_.require_subcommand(0, 1);
  app_.fallthrough();
  app_.set_help_flag("-h,--help", "Print help");
  app_.add_flag("--version", version_, "Print the version");
  app_.add_option("--address", globals_.address,
                  "The controller's HTTP address, as `up` prints it; else TANDEM_ADDRESS, else the "
                  "file that `up` wrote")
      ->option_text("HOST:PORT");
  app_.add_flag("-v,--verbose", globals_.verbose, "Say more on stderr");
  app_.footer(
      "`tandem COMMAND --help` shows a command's options and examples.\nStart with: tandem "
      "run configs/arithmetic.yaml");
  add_run_commands();
  add_object_commands();
  add_record_commands();
  add_change_commands();
  add_cluster_commands();
  add_model_commands();
  add_help_commands();
}

CLI::App* Grammar::add(const std::string& name, const char* group, const std::string& description,
                       std::function<Result<Command>()> finish, std::vector<std::string> examples) {
  CLI::App* app = app_.add_subcommand(name, description);
  app->group(group);
  app->set_help_flag("-h,--help", "Print help");
  app->footer("Examples:\n  " + joined(examples, "\n  "));
  finish_[app] = std::move(finish);
  examples_[app] = std::move(examples);
  return app;
}

void Grammar::add_job_file(CLI::App* app) {
  app->add_option("JOB.yaml", job_path_, "The job file; with --resume, else the run's own job.yaml")
      ->option_text(" ");
  app->add_option("--resume", resume_,
                  "Continue a run, given by its directory or id, from its last checkpoint")
      ->option_text("RUN_DIR");
}

Result<void> Grammar::name_job(std::optional<std::filesystem::path>& job,
                               std::optional<std::filesystem::path>& resume) const {
  if (!job_path_.empty()) job = job_path_;
  if (!resume_.empty()) resume = resume_;
  if (job || resume) return {};
  return usage_error("JOB.yaml is required", "a job file, or --resume RUN_DIR for that run's own");
}

void Grammar::add_sets(CLI::App* app, std::vector<std::string>& sets) {
  app->add_option("--set", sets,
                  "Replace one key; VALUE is YAML, relative paths in it start here; the last wins")
      ->option_text("KEY=VALUE")
      ->allow_extra_args(false);
}

void Grammar::add_output(CLI::App* app, OutputForm& form, std::vector<std::string> forms) {
  CLI::Option* option = app->add_option_function<std::string>(
      "-o,--output", [&form](const std::string& name) { form = kForms.at(name); }, "Output form");
  option->option_text(joined(forms, "|"))->check(CLI::IsMember(forms));
  choices_[option] = std::move(forms);
}

void Grammar::add_job(CLI::App* app, std::optional<std::string>& job) {
  app->add_option("-j,--job", job, "The job, where an actor's name alone is ambiguous")
      ->option_text("JOB");
}

CLI::Option* Grammar::add_required(CLI::App* app, const std::string& name, std::string& value,
                                   const std::string& description) {
  return app->add_option(name, value, description)->required()->option_text(" ");
}

void Grammar::add_run_commands() {
  const auto finish_run = [this]() -> Result<Command> {
    if (const auto named = name_job(given_.run.job, given_.run.resume); !named)
      return named.error();
    return with_memory(given_.run, memory_);
  };
  CLI::App* run =
      add("run", kRun, "Run a job on a cluster of its own: start, train, follow, stop", finish_run,
          {"tandem run configs/arithmetic.yaml",
           "tandem run job.yaml --set rollout.n=16 --set async.max_staleness=4",
           "tandem run job.yaml --dry-run", "tandem run --resume ~/.tandem/runs/arithmetic-grpo-1",
           "tandem run --resume arithmetic-grpo-1 --set learner.total_training_steps=3000"});
  add_job_file(run);
  add_sets(run, given_.run.sets);
  run->add_flag("--dry-run", given_.run.dry_run,
                "Print the effective job, its placement and memory, and start nothing");
  add_memory_option(run, memory_);
  const auto finish_submit = [this]() -> Result<Command> {
    if (const auto named = name_job(given_.submit.job, given_.submit.resume); !named)
      return named.error();
    return Command(given_.submit);
  };
  CLI::App* submit =
      add("submit", kRun, "Submit a job to the running cluster", finish_submit,
          {"tandem submit configs/arithmetic.yaml", "tandem submit job.yaml --set seed=3 --wait",
           "tandem submit --resume arithmetic-grpo-1"});
  add_job_file(submit);
  add_sets(submit, given_.submit.sets);
  submit->add_flag("--wait", given_.submit.wait,
                   "Return when the job has ended, with its exit code");
  add_output(submit, given_.submit.output, {"table", "json", "yaml", "name"});
  // States are compared without case: `--for running` will do.
  const auto finish_wait = [this]() -> Result<Command> {
    const auto same = [this](const std::string& name) {
      return CLI::detail::to_lower(name) == CLI::detail::to_lower(state_);
    };
    const auto at = std::ranges::find_if(kJobStates, same);
    if (at == kJobStates.end())
      return usage_error("unknown state `" + state_ + "`",
                         did_you_mean(state_, kJobStates, "one of " + joined(kJobStates, ", ")));
    given_.wait.state = *at;
    const auto timeout = parse_time("--timeout", timeout_);
    if (!timeout) return timeout.error();
    given_.wait.timeout_s = *timeout;
    return Command(given_.wait);
  };
  CLI::App* wait = add("wait", kRun, "Wait until a job is in a state", finish_wait,
                       {"tandem wait arithmetic-grpo-1 --for Running --timeout 60s",
                        "tandem wait arithmetic-grpo --for Succeeded"});
  add_required(wait, "JOB", given_.wait.job, "The job's id, or its name where one job has it");
  CLI::Option* state = wait->add_option(
      "--for", state_,
      "The state to wait for. While the job lives, a later one will do; a job that has ended in "
      "another state ends the wait with exit code 1");
  state->required()->option_text("STATE");
  choices_[state] = kJobStates;
  wait->add_option("--timeout", timeout_, "Give up after it, with exit code 5; 90, 90s, 5m")
      ->option_text("TIME");
}

void Grammar::add_object_commands() {
  const auto finish_get = [this]() -> Result<Command> {
    auto object = parse_object(names_);
    if (!object) return object.error();
    given_.get.kind = object->kind;
    given_.get.name = object->name;
    return Command(given_.get);
  };
  CLI::App* get =
      add("get", kLook, "List jobs, runs, actors, nodes, groups or events; `tandem jobs` will do",
          finish_get,
          {"tandem get jobs", "tandem get actors -o wide", "tandem runs",
           "tandem get runs --sort-by -reward_mean",
           "tandem get actors/arithmetic-grpo-1/rollout/0 -o json",
           "tandem get groups -j arithmetic-grpo", "tandem get jobs -w"});
  CLI::Option* kind =
      get->add_option("KIND", names_, "jobs, runs, actors, nodes, groups or events, and a NAME")
          ->required()
          ->expected(1, 2)
          ->option_text("[NAME]");
  choices_[kind] = kind_names();
  add_output(get, given_.get.output, {"table", "wide", "json", "yaml", "name"});
  get->add_flag("-w,--watch", given_.get.watch, "Show changes until interrupted");
  get->add_flag("--all", given_.get.all, "Tables show actors that have ended as well");
  get->add_option("--sort-by", given_.get.sort_by,
                  "In the order of a field of the JSON; -FIELD: the greatest first")
      ->option_text("FIELD");
  add_job(get, given_.get.job);

  const auto finish_describe = [this]() -> Result<Command> {
    auto object = parse_object(names_);
    if (!object) return object.error();
    if (!object->name) return usage_error("`describe` needs a name", "as in KIND/NAME");
    given_.describe.kind = object->kind;
    given_.describe.name = *object->name;
    return Command(given_.describe);
  };
  CLI::App* describe = add(
      "describe", kLook, "Everything known about one object, with its last events", finish_describe,
      {"tandem describe job/arithmetic-grpo-1", "tandem describe run/arithmetic-grpo-1",
       "tandem describe actor/learner/0"});
  CLI::Option* object = describe->add_option("KIND/NAME", names_, "What to describe")
                            ->required()
                            ->expected(1, 2)
                            ->option_text(" ");
  choices_[object] = choices_[kind];
  add_job(describe, given_.describe.job);
  // `why` takes a job or an actor; client_commands.cc finds out which.
  CLI::App* why = add("why", kLook, "Who waits for what, since when and until when",
                      [this]() -> Result<Command> { return Command(given_.why); },
                      {"tandem why arithmetic-grpo-1", "tandem why rollout/0 -j arithmetic-grpo"});
  add_required(why, "ACTOR|JOB", given_.why.target, "An actor or a job");
  add_output(why, given_.why.output, {"table", "json", "yaml"});
  add_job(why, given_.why.job);
}

void Grammar::add_record_commands() {
  const auto finish_logs = [this]() -> Result<Command> {
    const auto since = parse_time("--since", since_);
    if (!since) return since.error();
    given_.logs.since_s = *since;
    return Command(given_.logs);
  };
  CLI::App* logs =
      add("logs", kLook, "What an actor, or every actor of a job, wrote to its log", finish_logs,
          {"tandem logs arithmetic-grpo-1/learner/0 -f", "tandem logs rollout/0 --previous",
           "tandem logs arithmetic-grpo-1 --since 5m", "tandem logs learner/0 --tail 20"});
  add_required(logs, "ACTOR|JOB", given_.logs.target, "An actor; or a job, for all of its actors");
  logs->add_flag("-f,--follow", given_.logs.follow, "Go on as it grows, until it ends");
  logs->add_flag("-p,--previous", given_.logs.previous, "Of its previous incarnation");
  logs->add_option("--tail", given_.logs.tail, "Only the last N lines, of each actor")
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  logs->add_option("--since", since_, "Only what is newer; 90, 90s, 5m, 2h")->option_text("TIME");
  add_job(logs, given_.logs.job);

  CLI::App* events = add("events", kLook, "What happened, oldest first",
                         [this]() -> Result<Command> { return Command(given_.events); },
                         {"tandem events -f", "tandem events -j arithmetic-grpo -o json"});
  events->add_flag("-f,--follow", given_.events.follow, "Go on as they happen");
  add_output(events, given_.events.output, {"table", "wide", "json", "yaml", "name"});
  add_job(events, given_.events.job);
  CLI::App* samples = add("samples", kLook, "What was said and what it earned",
                          [this]() -> Result<Command> { return Command(given_.samples); },
                          {"tandem samples arithmetic-grpo-1 --step 200",
                           "tandem samples ~/.tandem/runs/arithmetic-grpo-1 --eval -o json"});
  add_required(samples, "JOB", given_.samples.job, "A job, a run, or a run directory");
  samples->add_option("--step", given_.samples.step, "Of this training step")->option_text("N");
  samples->add_option("--limit", given_.samples.limit, "The newest N; 64")->option_text("N");
  samples->add_flag("--eval", given_.samples.eval, "Of evaluations");
  samples->add_flag("--failed", given_.samples.failed, "Whose reward failed");
  add_output(samples, given_.samples.output, {"table", "wide", "json", "yaml"});

  CLI::App* top = add("top", kLook, "Nodes, jobs and actors on one screen",
                      [this]() -> Result<Command> { return Command(given_.top); },
                      {"tandem top", "tandem top | head -20"});
  add_job(top, given_.top.job);
  add("dashboard", kLook, "Print an address that opens the controller's web page once",
      [this]() -> Result<Command> { return Command(given_.dashboard); }, {"tandem dashboard"});
}

void Grammar::add_change_commands() {
  const auto finish_scale = [this]() -> Result<Command> {
    auto roles = parse_scales(scales_);
    if (!roles) return roles.error();
    given_.scale.roles = *roles;
    const auto timeout = parse_time("--timeout", timeout_);
    if (!timeout) return timeout.error();
    given_.scale.timeout_s = timeout->value_or(given_.scale.timeout_s);
    return Command(given_.scale);
  };
  CLI::App* scale =
      add("scale", kChange, "Change how many actors a role has, while the job runs", finish_scale,
          {"tandem scale arithmetic-grpo-1 rollout=2", "tandem scale JOB rollout=4 reward=2 --wait",
           "tandem scale counter-1 counter=4"});
  add_required(scale, "JOB", given_.scale.job, "The job");
  CLI::Option* roles = scale->add_option(
      "ROLE=N", scales_, "rollout, reward or a role of the job's section `actors`, and how many");
  roles->required()->option_text("...");
  for (const std::string& role : role_names()) choices_[roles].push_back(role + "=");
  scale->add_flag("--wait", given_.scale.wait, "Return when they are Ready");
  scale->add_option("--timeout", timeout_, "Of --wait; 60s")->option_text("TIME");

  const auto finish_ask = [this]() -> Result<Command> {
    const auto timeout = parse_time("--timeout", timeout_);
    if (!timeout) return timeout.error();
    given_.ask.timeout_s = *timeout;
    return Command(given_.ask);
  };
  CLI::App* ask =
      add("ask", kChange, "Ask an actor of your own, and print its answer as JSON", finish_ask,
          {"tandem ask counter-1/counter/0 '{\"add\":2}'",
           "tandem ask counter/0 '{}' -j counter --timeout 60s"});
  add_required(ask, "ACTOR", given_.ask.actor, "An actor of the job's section `actors`");
  add_required(ask, "JSON", given_.ask.question, "The question: one JSON object");
  ask->add_option("--timeout", timeout_, "For the answer; 10s, at most 10m")->option_text("TIME");
  add_job(ask, given_.ask.job);

  CLI::App* cancel = add("cancel", kChange, "Stop a job; returns when nothing of it runs",
                         [this]() -> Result<Command> { return Command(given_.cancel); },
                         {"tandem cancel arithmetic-grpo-1"});
  add_required(cancel, "JOB", given_.cancel.job, "The job");
  // `delete` takes KIND/NAME like `describe`, but runs alone.
  const auto finish_delete = [this]() -> Result<Command> {
    auto object = parse_object(names_);
    if (!object) return object.error();
    if (object->kind != Kind::kRuns || !object->name)
      return usage_error("`delete` removes runs alone",
                         "as in `tandem delete run/ID`; `tandem cancel JOB` stops a job");
    given_.remove.run = *object->name;
    return Command(given_.remove);
  };
  CLI::App* remove =
      add("delete", kChange, "Remove a run that has ended: its directory with all that is in it",
          finish_delete, {"tandem delete run/arithmetic-grpo-1"});
  remove->add_option("run/ID", names_, "The run")->required()->expected(1, 2)->option_text(" ");
}

void Grammar::add_cluster_commands() {
  CLI::App* up = add("up", kCluster, "Start a cluster on this machine, in the background",
                     [this] { return with_memory(given_.up, memory_); },
                     {"tandem up", "tandem up --port 0", "tandem up --bind 10.0.0.1"});
  add_listening_options(up, given_.up.port, given_.up.door);
  add_memory_option(up, memory_);
  add("down", kCluster, "Stop that cluster; returns when nothing of it runs",
      [this]() -> Result<Command> { return Command(DownCommand{}); }, {"tandem down"});
  CLI::App* status =
      add("status", kCluster, "What runs: the controller, its nodes, jobs and runs",
          [this]() -> Result<Command> { return Command(given_.status); }, {"tandem status"});
  add_output(status, given_.status.output, {"table", "json", "yaml"});
  CLI::App* controller = add("controller", kCluster, "The controller, in the foreground",
                             [this]() -> Result<Command> { return Command(given_.controller); },
                             {"tandem controller --port 7420"});
  add_listening_options(controller, given_.controller.port, given_.controller.door);
  CLI::App* node = add("node", kCluster, "The agent of this machine, in the foreground",
                       [this] { return with_memory(given_.node, memory_); },
                       {"tandem node", "tandem node --cpus 2 --memory 8GiB",
                        "tandem node --controller 10.0.0.1:7420"});
  add_node_options(node, given_.node, memory_);
}

void Grammar::add_model_commands() {
  const auto finish_generate = [this]() -> Result<Command> {
    given_.generate.model = model_path_;
    for (std::string& prompt : given_.generate.prompts)
      if (prompt.ends_with(kTakenAsWritten)) prompt.pop_back();
    return Command(given_.generate);
  };
  CLI::App* generate =
      add("generate", kModels, "Let a model complete prompts", finish_generate,
          {"tandem generate ~/.tandem/runs/arithmetic-grpo-1/checkpoints/step-1500 '12+34='",
           "tandem generate MODEL_DIR --temperature 1 --max-tokens 128 'Once' 'Twice'"});
  add_required(generate, "MODEL_DIR", model_path_, "A Hugging Face model directory");
  generate->add_option("PROMPT", given_.generate.prompts, "What to complete")
      ->required()
      ->option_text("...");
  generate->add_flag("--chat", given_.generate.chat,
                     "Each prompt is what a user says, in the model's chat template");
  generate
      ->add_option("--max-tokens", given_.generate.max_tokens, "At most so many tokens each; 64")
      ->option_text("N")
      ->check(CLI::Range(1, 1 << 24));
  generate->add_option("--temperature", given_.generate.temperature, "0, the default, is greedy")
      ->option_text("T")
      ->check(CLI::Range(0.0, 100.0));
  generate->add_option("--seed", given_.generate.seed, "Of the sampling; 0")->option_text("N");
  add_output(generate, given_.generate.output, {"table", "json", "yaml"});
  const auto finish_eval = [this]() -> Result<Command> {
    given_.eval.model = model_path_;
    given_.eval.job = job_path_;
    return Command(given_.eval);
  };
  CLI::App* eval = add("eval", kModels, "Mean reward of a model over a job's validation files",
                       finish_eval, {"tandem eval MODEL_DIR configs/arithmetic.yaml"});
  add_required(eval, "MODEL_DIR", model_path_, "A Hugging Face model directory");
  add_required(eval, "JOB.yaml", job_path_,
               "Its data, sampling limits, reward and model.dtype are used");
  add_sets(eval, given_.eval.sets);
  add_output(eval, given_.eval.output, {"table", "json", "jsonl", "yaml"});
  add_tokenize();
}

void Grammar::add_tokenize() {
  const auto finish = [this]() -> Result<Command> {
    given_.tokenize.model = model_path_;
    for (std::string& text : given_.tokenize.texts)
      if (text.ends_with(kTakenAsWritten)) text.pop_back();
    return Command(given_.tokenize);
  };
  CLI::App* tokenize =
      add("tokenize", kModels, "The token ids of texts, or the text of token ids", finish,
          {"tandem tokenize MODEL_DIR 'Once upon a time'", "tandem tokenize MODEL_DIR < prompt.txt",
           "tandem tokenize MODEL_DIR --decode 12 7 431",
           "tandem tokenize MODEL_DIR --jsonl texts.jsonl"});
  add_required(tokenize, "MODEL_DIR", model_path_, "A Hugging Face model directory");
  CLI::Option* text = tokenize
                          ->add_option("TEXT", given_.tokenize.texts,
                                       "What to tokenize; else standard input is read")
                          ->option_text("...");
  tokenize->add_flag("--decode", given_.tokenize.decode, "Take ids and print their text");
  tokenize
      ->add_option("--jsonl", given_.tokenize.jsonl,
                   "Take a JSON string from each line of FILE (-: of standard input) and print the "
                   "JSON list of its ids on one line; with --decode the reverse")
      ->option_text("FILE")
      ->excludes(text);
  add_output(tokenize, given_.tokenize.output, {"table", "json"});
}

void Grammar::add_help_commands() {
  CLI::App* explain =
      add("explain", kHelp, "What a key of the job file means",
          [this]() -> Result<Command> { return Command(given_.explain); },
          {"tandem explain", "tandem explain async", "tandem explain async.max_staleness"});
  explain->add_option("KEY", given_.explain.key, "A key or a section; else all of them")
      ->option_text(" ");
  explain->add_flag("--markdown", given_.explain.markdown, "The whole reference page")->group("");
  CLI::App* doctor =
      add("doctor", kHelp, "What on this machine would stop Tandem",
          [this]() -> Result<Command> { return Command(given_.doctor); }, {"tandem doctor"});
  add_output(doctor, given_.doctor.output, {"table", "json", "yaml"});
  CLI::App* version =
      add("version", kHelp, "Print the version",
          [this]() -> Result<Command> { return Command(given_.version); }, {"tandem version"});
  add_output(version, given_.version.output, {"table", "json", "yaml"});
  const auto finish_completion = [this]() -> Result<Command> {
    given_.completion.shell = kShells.at(shell_);
    return Command(given_.completion);
  };
  CLI::App* completion =
      add("completion", kHelp, "Print a completion script for a shell", finish_completion,
          {"source <(tandem completion bash)", "tandem completion fish | source"});
  CLI::Option* shell = add_required(completion, "SHELL", shell_, "bash, zsh or fish");
  shell->check(CLI::IsMember(keys_of(kShells)));
  choices_[shell] = keys_of(kShells);
}

std::vector<std::string> Grammar::command_names() const {
  std::vector<std::string> names;
  for (const CLI::App* app : app_.get_subcommands({})) names.push_back(app->get_name());
  return names;
}

const CLI::App* Grammar::parsed() const {
  const auto commands = app_.get_subcommands();
  return commands.empty() ? nullptr : commands.front();
}

Error Grammar::explain_failure(const CLI::ParseError& error,
                               const std::vector<std::string>& arguments) {
  const CLI::App* command = parsed();
  const std::string see =
      "see `tandem " + (command ? command->get_name() + " " : std::string()) + "--help`";
  if (dynamic_cast<const CLI::ExtrasError*>(&error) && command) {
    std::vector<std::string> options;
    for (const CLI::App* app : {command, static_cast<const CLI::App*>(&app_)})
      for (const CLI::Option* option : app->get_options({}))
        for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    const std::vector<std::string> extras = app_.remaining(true);
    const std::string word = extras.empty() ? "" : extras.front();
    const bool option = word.starts_with("-");
    return usage_error((option ? "unknown option `" : "unexpected argument `") + word + "`",
                       option ? did_you_mean(word.substr(0, word.find('=')), options, see) : see);
  }
  if (!command && !arguments.empty() && arguments.front().starts_with("-"))
    return usage_error("unknown option `" + arguments.front() + "`", see);
  return usage_error(error.what(), see);
}

Result<Invocation> Grammar::parse(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }
  // The first word that is no option is the command; CLI11 would call a misspelt one an extra.
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--address") {
      ++i;
    } else if (!arguments[i].starts_with("-")) {
      const std::vector<std::string> names = command_names();
      const bool kind = std::ranges::count(kind_names(), arguments[i]) > 0;
      if (kind && std::ranges::find(names, arguments[i]) == names.end())  // `tandem jobs`
        arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(i), "get");
      if (std::ranges::find(kLaterCommands, arguments[i]) != kLaterCommands.end())
        return usage_error("`tandem " + arguments[i] + "` is not in this version",
                           "`tandem --help` lists the commands");
      if (std::ranges::find(names, arguments[i]) == names.end())
        return usage_error("unknown command `" + arguments[i] + "`",
                           did_you_mean(arguments[i], names, "`tandem --help` lists the commands"));
      break;
    }
  }
  for (std::string& word : arguments)
    if (word.starts_with('[') && word.ends_with(']')) word += kTakenAsWritten;
  try {  // CLI11 reports everything, help included, by throwing
    app_.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    const CLI::App* command = parsed();
    globals_.command = HelpCommand{wrapped_help(command ? command->help("tandem") : app_.help())};
    return globals_;
  } catch (const CLI::ParseError& error) {
    return explain_failure(error, arguments);
  }
  const CLI::App* command = parsed();
  if (version_) {
    globals_.command = VersionCommand{};
  } else if (!command) {
    globals_.command = HelpCommand{wrapped_help(app_.help())};
  } else {
    Result<Command> finished = finish_.at(command)();
    if (!finished) return finished.error();
    globals_.command = std::move(*finished);
  }
  return globals_;
}

GrammarDoc Grammar::doc() const {
  GrammarDoc grammar;
  for (const CLI::Option* option : app_.get_options({}))
    grammar.options.push_back(option_doc(*option, choices_));
  for (const CLI::App* app : app_.get_subcommands({}))
    grammar.commands.push_back(command_doc(*app, choices_, examples_.at(app)));
  return grammar;
}

}  // namespace

Result<Invocation> parse_command_line(std::span<const char* const> arguments) {
  if (arguments.size() == 2 && std::string_view(arguments[0]) == kCompleteCommand)
    return Invocation{.command = CompleteCommand{arguments[1]}, .address = {}};
  return Grammar().parse({arguments.begin(), arguments.end()});
}

GrammarDoc grammar_doc() { return Grammar().doc(); }

}  // namespace tandem::cli
