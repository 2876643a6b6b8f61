// Words of a command line become commands; mistakes are answered with the nearest right word; help,
// reference page and completions cover every command and option.
#include "actors/cli/command_line.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "actors/cli/arguments.h"
#include "actors/cli/grammar.h"
#include "tests/generated_page.h"

namespace tandem::cli {
namespace {

Result<Invocation> parse(const std::vector<std::string>& words) {
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return parse_command_line(arguments);
}

template <class Wanted>
Wanted parsed(const std::vector<std::string>& words) {
  const auto invocation = parse(words);
  EXPECT_TRUE(invocation) << render(invocation.error());
  if (!invocation) return {};
  EXPECT_TRUE(std::holds_alternative<Wanted>(invocation->command)) << words.front();
  return std::get<Wanted>(invocation->command);
}

Error refused(const std::vector<std::string>& words) {
  const auto invocation = parse(words);
  EXPECT_FALSE(invocation);
  return invocation ? Error{} : invocation.error();
}

TEST(CommandLine, RunTakesSetsInOrderAndAsWritten) {
  const auto run = parsed<RunCommand>({"run", "--set", "a.b=[1, 2]", "job.yaml", "--set=c=d=e",
                                       "--dry-run", "--resume", "runs/a-1"});
  EXPECT_EQ(run.job, "job.yaml");
  EXPECT_EQ(run.sets, (std::vector<std::string>{"a.b=[1, 2]", "c=d=e"}));
  EXPECT_TRUE(run.dry_run);
  EXPECT_EQ(run.resume, "runs/a-1");
}

TEST(CommandLine, AResumedRunNeedsNoJobFile) {
  EXPECT_EQ(parsed<RunCommand>({"run", "--resume", "a-1"}).job, std::nullopt);
  EXPECT_EQ(parsed<SubmitCommand>({"submit", "--resume", "a-1"}).resume, "a-1");
  for (const char* command : {"run", "submit"})
    EXPECT_NE(refused({command}).message.find("JOB.yaml is required"), std::string::npos);
}

TEST(CommandLine, TakesObjectsInBothForms) {
  for (const auto& words : {std::vector<std::string>{"get", "actors", "a-1/rollout/0"},
                            {"get", "actors/a-1/rollout/0"},
                            {"get", "actor/a-1/rollout/0"}}) {
    const auto get = parsed<GetCommand>(words);
    EXPECT_EQ(get.kind, Kind::kActors);
    EXPECT_EQ(get.name, "a-1/rollout/0");
  }
  const auto get = parsed<GetCommand>({"get", "jobs", "-o", "json", "-w", "-j", "x"});
  EXPECT_EQ(get.kind, Kind::kJobs);
  EXPECT_FALSE(get.name);
  EXPECT_EQ(get.output, OutputForm::kJson);
  EXPECT_TRUE(get.watch);
  EXPECT_EQ(get.job, "x");
  EXPECT_EQ(parsed<DescribeCommand>({"describe", "nodes/vm"}).name, "vm");
  EXPECT_EQ(refused({"describe", "jobs"}).code, ErrorCode::kInvalid);
  EXPECT_EQ(parsed<GetCommand>({"get", "actor"}).kind, Kind::kActors);
}

TEST(CommandLine, TakesTheRest) {
  const auto scale = parsed<ScaleCommand>({"scale", "a-1", "rollout=4", "reward=2", "--wait"});
  EXPECT_EQ(scale.roles,
            (std::vector<std::pair<std::string, std::int64_t>>{{"rollout", 4}, {"reward", 2}}));
  EXPECT_TRUE(scale.wait);
  const auto wait = parsed<WaitCommand>({"wait", "a", "--for", "warmstart", "--timeout", "2m"});
  EXPECT_EQ(wait.state, "WarmStart");
  EXPECT_EQ(wait.timeout_s, 120);
  const auto generate =
      parsed<GenerateCommand>({"generate", "m", "[1,2]", "a b", "--max-tokens", "5"});
  EXPECT_EQ(generate.prompts, (std::vector<std::string>{"[1,2]", "a b"}));
  EXPECT_EQ(generate.max_tokens, 5);
  const auto tokenize = parsed<TokenizeCommand>({"tokenize", "m", "[1,2]", "--decode"});
  EXPECT_EQ(tokenize.model, "m");
  EXPECT_EQ(tokenize.texts, (std::vector<std::string>{"[1,2]"}));
  EXPECT_TRUE(tokenize.decode);
  EXPECT_FALSE(tokenize.jsonl);
  const auto lines = parsed<TokenizeCommand>({"tokenize", "m", "--jsonl", "-"});
  EXPECT_EQ(lines.jsonl, "-");
  EXPECT_TRUE(lines.texts.empty());
  const auto samples = parsed<SamplesCommand>({"samples", "a", "--step", "0", "--eval"});
  EXPECT_EQ(samples.step, 0);
  EXPECT_TRUE(samples.eval);
  EXPECT_TRUE(parsed<LogsCommand>({"logs", "rollout/0", "-f"}).follow);
  const auto logs = parsed<LogsCommand>({"logs", "a-1", "--tail", "20", "--since", "5m"});
  EXPECT_EQ(logs.target, "a-1");
  EXPECT_EQ(logs.tail, 20);
  EXPECT_EQ(logs.since_s, 300);
  const auto own = parsed<ScaleCommand>({"scale", "a-1", "counter=0", "rollout=2"});
  EXPECT_EQ(own.roles[0], std::pair(std::string("counter"), std::int64_t{0}));
  const auto ask = parsed<AskCommand>({"ask", "counter/0", R"({"add": 2})", "--timeout", "1m"});
  EXPECT_EQ(ask.actor, "counter/0");
  EXPECT_EQ(ask.question, R"({"add": 2})");
  EXPECT_EQ(ask.timeout_s, 60);
  EXPECT_EQ(parsed<DeleteCommand>({"delete", "run/a-1"}).run, "a-1");
  EXPECT_EQ(parsed<DeleteCommand>({"delete", "runs", "a-1"}).run, "a-1");
  EXPECT_EQ(parsed<StatusCommand>({"status", "-o", "json"}).output, OutputForm::kJson);
  const auto runs = parsed<GetCommand>({"get", "runs", "--sort-by", "-created", "--all"});
  EXPECT_EQ(runs.kind, Kind::kRuns);
  EXPECT_EQ(runs.sort_by, "-created");
  EXPECT_TRUE(runs.all);
  EXPECT_EQ(parsed<CompleteCommand>({"__complete", "jobs"}).names, "jobs");
  EXPECT_EQ(parsed<UpCommand>({"up", "--port", "0"}).port, 0);
  EXPECT_EQ(parsed<NodeCommand>({"node", "--memory", "2GiB"}).memory_bytes, 2ll << 30);
  EXPECT_EQ(parsed<UpCommand>({"up", "--memory", "64MiB"}).memory_bytes, 64ll << 20);
  EXPECT_EQ(parsed<RunCommand>({"run", "job.yaml", "--memory", "1.5GiB"}).memory_bytes, 3ll << 29);
  EXPECT_FALSE(parsed<RunCommand>({"run", "job.yaml"}).memory_bytes);
  EXPECT_EQ(parsed<CompletionCommand>({"completion", "zsh"}).shell, Shell::kZsh);
  EXPECT_FALSE(parsed<ExplainCommand>({"explain"}).key);
  parsed<VersionCommand>({"--version"});
  parsed<DownCommand>({"down"});
}

TEST(CommandLine, GlobalOptionsMayComeBeforeAndAfter) {
  for (const auto& words : {std::vector<std::string>{"--address", "h:1", "-v", "get", "jobs"},
                            {"get", "jobs", "--address", "h:1", "-v"}}) {
    const auto invocation = parse(words);
    ASSERT_TRUE(invocation) << render(invocation.error());
    EXPECT_EQ(invocation->address, "h:1");
    EXPECT_TRUE(invocation->verbose);
  }
}

TEST(CommandLine, SaysWhatAMistakeWasMeantToBe) {
  const auto check = [](const std::vector<std::string>& words, const std::string& message,
                        const std::string& help) {
    const Error error = refused(words);
    EXPECT_EQ(exit_code(error.code), 64);
    EXPECT_NE(error.message.find(message), std::string::npos) << error.message;
    EXPECT_NE(error.help.find(help), std::string::npos) << error.help;
  };
  check({"gett"}, "unknown command `gett`", "`get`");
  check({"drain", "vm"}, "`tandem drain` is not in this version", "--help");
  check({"zzzzzz"}, "unknown command", "--help");
  check({"get", "actos"}, "unknown kind `actos`", "`actors`");
  check({"get", "jobs", "--wach"}, "unknown option `--wach`", "`--watch`");
  check({"get", "jobs", "a", "b"}, "At Most 2", "tandem get --help");
  check({"get"}, "required", "tandem get --help");
  check({"tokenize", "m", "a", "--jsonl", "f"}, "TEXT excludes --jsonl", "tandem tokenize --help");
  check({"get", "jobs", "-o", "xml"}, "xml", "tandem get --help");
  check({"--nothing"}, "unknown option `--nothing`", "--help");
  check({"scale", "a", "Rollout=2"}, "unknown role `Rollout`", "`rollout`");
  check({"scale", "a", "counter=1025"}, "a role has 0 to 1024 actors", "");
  check({"scale", "a", "rollout"}, "not ROLE=N", "rollout=2");
  check({"scale", "a", "rollout=-1"}, "not ROLE=N", "rollout=2");
  for (const char* count : {"rollout=0", "rollout=4097", "rollout=99999999999999999999"})
    check({"scale", "a", count}, "1 to 4096 actors", "tandem cancel");
  check({"wait", "a", "--for", "Runing"}, "unknown state", "`Running`");
  check({"wait", "a", "--for", "Running", "--timeout", "soon"}, "not a time", "90s");
  check({"node", "--memory", "many"}, "not a size", "GiB");
  check({"up", "--memory", "-1GiB"}, "not a size", "GiB");
  check({"node", "--memory", "12GB"}, "not a size", "GiB");
  check({"run", "job.yaml", "--memory", "12"}, "is 12 bytes, and a node offers at least 64 MiB",
        "GiB");
  check({"delete", "job/a-1"}, "removes runs alone", "tandem cancel");
  check({"delete", "runs"}, "removes runs alone", "run/ID");
  check({"logs", "a-1", "--since", "soon"}, "`--since soon` is not a time", "5m");
  check({"logs", "a-1", "--tail", "-1"}, "", "tandem logs --help");
  check({"up", "--port", "99999"}, "99999", "tandem up --help");
  check({"run"}, "JOB.yaml", "--resume RUN_DIR");
  check({"completion", "tcsh"}, "tcsh", "tandem completion --help");
}

TEST(CommandLine, HelpIsThereForEveryCommandWithExamples) {
  const auto all = parsed<HelpCommand>({});
  EXPECT_EQ(all.text, parsed<HelpCommand>({"--help"}).text);
  for (const CommandDoc& command : grammar_doc().commands) {
    EXPECT_NE(all.text.find("  " + command.name + " "), std::string::npos) << command.name;
    const auto help = parsed<HelpCommand>({command.name, "--help"});
    EXPECT_EQ(help.text, parsed<HelpCommand>({"help", command.name}).text);
    ASSERT_FALSE(command.examples.empty()) << command.name;
    for (const std::string& example : command.examples)
      EXPECT_NE(help.text.find(example), std::string::npos) << example;
  }
}

TEST(CommandLine, HelpIsAtMost100ColumnsWideForEveryVerb) {
  std::vector<std::string> verbs{"--help"};
  for (const CommandDoc& command : grammar_doc().commands) verbs.push_back(command.name);
  for (const std::string& verb : verbs) {
    std::istringstream help(verb == "--help" ? parsed<HelpCommand>({verb}).text
                                             : parsed<HelpCommand>({verb, "--help"}).text);
    for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(CommandLine, AKindAloneListsItsObjects) {
  EXPECT_EQ(parsed<GetCommand>({"jobs"}).kind, Kind::kJobs);
  EXPECT_EQ(parsed<GetCommand>({"actors", "-o", "wide"}).output, OutputForm::kWide);
  EXPECT_EQ(parsed<GetCommand>({"runs", "arith-1"}).name, "arith-1");
  parsed<EventsCommand>({"events"});  // a command of its own
}

// The examples of the help must work: each is parsed as a shell passes it on.
TEST(CommandLine, EveryExampleIsValid) {
  for (const CommandDoc& command : grammar_doc().commands)
    for (std::string example : command.examples) {
      if (!example.starts_with("tandem ")) continue;
      example = example.substr(0, example.find(" | "));
      std::vector<std::string> words;
      std::istringstream text(example.substr(7));
      for (std::string word; text >> word;) {
        std::erase(word, '\'');
        words.push_back(word);
      }
      const auto invocation = parse(words);
      EXPECT_TRUE(invocation) << example << "\n" << render(invocation.error());
    }
}

TEST(CommandLine, TheReferencePageIsTheGeneratedOne) {
  expect_page(TANDEM_SOURCE_DIR "/docs/cli.md", cli_reference());
}

TEST(CommandLine, CompletionKnowsEveryCommandAndOption) {
  for (const Shell shell : {Shell::kBash, Shell::kZsh, Shell::kFish}) {
    const std::string script = completion_script(shell);
    for (const CommandDoc& command : grammar_doc().commands) {
      EXPECT_NE(script.find(command.name), std::string::npos) << command.name;
      for (const OptionDoc& option : command.options) {
        const std::string name = option.names.back();
        EXPECT_NE(script.find(shell == Shell::kFish ? name.substr(2) : name), std::string::npos)
            << command.name << " " << name;
      }
    }
  }
}

// Where the script asks for names, a function plays `tandem`.
std::string complete_in_bash(const std::string& words, int index) {
  std::string path =
      ::testing::TempDir() + "tandem-completion." + std::to_string(::getpid()) + ".sh";
  std::ofstream(path) << completion_script(Shell::kBash)
                      << "tandem() { [[ \"$1\" == __complete ]] && echo \"$2-1 $2-2\"; }\n"
                         "COMP_WORDS=("
                      << words << ")\nCOMP_CWORD=" << index
                      << "\n_tandem\necho \"${COMPREPLY[@]}\"\n";
  FILE* shell = ::popen(("bash " + path).c_str(), "r");
  std::string output;
  for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) output += static_cast<char>(c);
  EXPECT_EQ(::pclose(shell), 0);
  std::remove(path.c_str());
  return output;
}

// Every argument and every option with a value, and the names that a shell offers for it: `choices`
// where the command line has few of them, `files` where a command takes a file, else the NAMES of
// complete_command.h, or `-`. A new command needs its lines here.
TEST(CommandLine, EveryArgumentIsCompletedByWhatItTakes) {
  std::string table;
  for (const CommandDoc& command : grammar_doc().commands)
    for (const auto* const options : {&command.arguments, &command.options})
      for (const OptionDoc& option : *options) {
        const bool is_flag = options == &command.options && option.value.empty();
        if (is_flag || option.names.back() == "--output") continue;
        std::string names = completion_names(command, option);
        if (names.empty() && !option.choices.empty()) names = "choices";
        if (names.empty()) names = option.names.front() == "JOB.yaml" ? "files" : "-";
        table += command.name + " " + option.names.back() + ": " + names + "\n";
      }
  EXPECT_EQ(table, R"(run JOB.yaml: files
run --resume: runs
run --set: sets
run --memory: -
submit JOB.yaml: files
submit --resume: runs
submit --set: sets
wait JOB: live
wait --for: choices
wait --timeout: -
get KIND: choices
get --sort-by: -
get --job: records
describe KIND/NAME: objects
describe --job: records
why ACTOR|JOB: targets
why --job: records
logs ACTOR|JOB: logs
logs --tail: -
logs --since: -
logs --job: records
events --job: records
samples JOB: records
samples --step: -
samples --limit: -
top --job: live
scale JOB: live
scale ROLE=N: choices
scale --timeout: -
ask ACTOR: actors
ask JSON: -
ask --timeout: -
ask --job: live
cancel JOB: live
delete run/ID: runs/
up --port: -
up --bind: -
up --allow-host: -
up --memory: -
controller --port: -
controller --bind: -
controller --allow-host: -
node --name: -
node --controller: -
node --bind: -
node --advertise: -
node --cpus: -
node --memory: -
generate MODEL_DIR: models
generate PROMPT: -
generate --max-tokens: -
generate --temperature: -
generate --seed: -
eval MODEL_DIR: models
eval JOB.yaml: files
eval --set: sets
tokenize MODEL_DIR: models
tokenize TEXT: -
tokenize --jsonl: -
explain KEY: keys
completion SHELL: choices
)");
}

TEST(CommandLine, BashCompletesCommandsOptionsAndValues) {
  EXPECT_EQ(complete_in_bash("tandem sca", 1), "scale\n");
  EXPECT_EQ(complete_in_bash("tandem get act", 2), "actors\n");
  EXPECT_EQ(complete_in_bash("tandem get actors --wat", 3), "--watch\n");
  EXPECT_EQ(complete_in_bash("tandem get actors -o wi", 4), "wide\n");
  EXPECT_EQ(complete_in_bash("tandem wait a --for Run", 4), "Running\n");
  EXPECT_EQ(complete_in_bash("tandem --address h:1 scale a rol", 5), "rollout=\n");
  EXPECT_EQ(complete_in_bash("tandem cancel li", 2), "live-1 live-2\n");
  EXPECT_EQ(complete_in_bash("tandem get runs runs-2", 3), "runs-2\n");
  EXPECT_EQ(complete_in_bash("tandem get actor a", 3), "actors-1 actors-2\n");
  EXPECT_EQ(complete_in_bash("tandem describe ob", 2), "objects-1 objects-2\n");
  EXPECT_EQ(complete_in_bash("tandem logs logs-1", 2), "logs-1\n");
  EXPECT_EQ(complete_in_bash("tandem why targets-1", 2), "targets-1\n");
  EXPECT_EQ(complete_in_bash("tandem describe actor know", 3), "known_actors-1 known_actors-2\n");
  EXPECT_EQ(complete_in_bash("tandem run job.yaml --set se", 4), "sets-1 sets-2\n");
  EXPECT_EQ(complete_in_bash("tandem submit --resume ru", 3), "runs-1 runs-2\n");
  EXPECT_EQ(complete_in_bash("tandem explain ke", 2), "keys-1 keys-2\n");
  EXPECT_EQ(complete_in_bash("tandem events -j re", 3), "records-1 records-2\n");
}

}  // namespace
}  // namespace tandem::cli
