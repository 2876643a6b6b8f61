// The whole table of verbs: the values that the verbs of this folder parse; help, reference page,
// examples and completions of every verb and option.
#include "actors/main/verbs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "actors/cli/grammar.h"
#include "actors/main/cluster.h"
#include "actors/main/local_run.h"
#include "actors/main/model_commands.h"
#include "actors/main/node_command.h"
#include "actors/main/size_command.h"
#include "actors/main/timeline_command.h"
#include "actors/main/tokenize_command.h"
#include "tests/actors/cli/command_outcome.h"
#include "tests/actors/cli/parsing.h"
#include "tests/generated_page.h"

namespace tandem::app {
namespace {

using cli::CommandDoc;
using cli::OptionDoc;
using cli::Shell;
using Words = std::vector<std::string>;

Result<cli::Invocation> parse(const Words& words) { return cli::parse(words, all_verbs); }

cli::Outcome outcome_of(const Words& words) {
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return cli::run(arguments, {.verbs = all_verbs});
}

// The output of a line that needs nothing but the parser.
std::string printed(const Words& words) {
  const cli::Outcome outcome = outcome_of(words);
  EXPECT_TRUE(outcome.ok) << outcome.shown;
  return outcome.out;
}

TEST(AllVerbs, RunTakesSetsInOrderAndAsWritten) {
  const auto run = cli::parsed<RunCommand>({"run", "--set", "a.b=[1, 2]", "job.yaml", "--set=c=d=e",
                                            "--dry-run", "--resume", "runs/a-1"});
  EXPECT_EQ(run.job, "job.yaml");
  EXPECT_EQ(run.sets, (Words{"a.b=[1, 2]", "c=d=e"}));
  EXPECT_TRUE(run.dry_run);
  EXPECT_EQ(run.resume, "runs/a-1");
}

TEST(AllVerbs, AResumedRunNeedsNoJobFile) {
  EXPECT_EQ(cli::parsed<RunCommand>({"run", "--resume", "a-1"}).job, std::nullopt);
  for (const char* command : {"run", "submit"})
    cli::expect_refused({command}, all_verbs, "JOB.yaml is required", "--resume RUN_DIR");
}

TEST(AllVerbs, UpTakesHostsOfSsh) {
  const auto up =
      cli::parsed<UpCommand>({"up", "--hosts", "gpu-1,me@gpu-2:2222", "--ssh", "ssh -i key",
                              "--ssh-option", "ProxyJump=gate", "--no-copy"});
  ASSERT_EQ(up.hosts.chosen.hosts.size(), 2);
  EXPECT_EQ(up.hosts.chosen.hosts[1].port, 2222);
  EXPECT_EQ(up.hosts.ssh.command, "ssh -i key");
  EXPECT_EQ(up.hosts.ssh.options, Words{"ProxyJump=gate"});
  EXPECT_TRUE(up.hosts.no_copy);
  cli::expect_refused({"up", "--hosts", "a,a"}, all_verbs, "is there twice", "leave one");
  cli::expect_refused({"up", "--no-copy"}, all_verbs, "are for --hosts", "name the hosts");
}

TEST(AllVerbs, NodeTakesTheJobOfAllRanks) {
  const auto node = cli::parsed<NodeCommand>(
      {"node", "--job", "job.yaml", "--set", "rollout.n=4", "--port", "7430", "--min-nodes", "2"});
  EXPECT_EQ(node.ranks.job, "job.yaml");
  EXPECT_EQ(node.ranks.sets, Words{"rollout.n=4"});
  EXPECT_EQ(node.ranks.port, 7430);
  EXPECT_EQ(node.ranks.min_nodes, 2);
  cli::expect_refused({"node", "--min-nodes", "2"}, all_verbs, "are for --job", "name the job");
}

TEST(AllVerbs, TakeTheValuesOfTheirOptions) {
  const auto generate =
      cli::parsed<GenerateCommand>({"generate", "m", "[1,2]", "a b", "--max-tokens", "5"});
  EXPECT_EQ(generate.prompts, (Words{"[1,2]", "a b"}));
  EXPECT_EQ(generate.max_tokens, 5);
  const auto eval = cli::parsed<EvalCommand>({"eval", "m", "job.yaml", "-o", "jsonl"});
  EXPECT_EQ(eval.model, "m");
  EXPECT_EQ(eval.job, "job.yaml");
  EXPECT_EQ(eval.output, cli::OutputForm::kJsonl);
  const auto tokenize = cli::parsed<TokenizeCommand>({"tokenize", "m", "[1,2]", "--decode"});
  EXPECT_EQ(tokenize.model, "m");
  EXPECT_EQ(tokenize.texts, Words{"[1,2]"});
  EXPECT_TRUE(tokenize.decode);
  EXPECT_FALSE(tokenize.jsonl);
  const auto lines = cli::parsed<TokenizeCommand>({"tokenize", "m", "--jsonl", "-"});
  EXPECT_EQ(lines.jsonl, "-");
  EXPECT_TRUE(lines.texts.empty());
  const auto timeline =
      cli::parsed<TimelineCommand>({"timeline", "a-1", "-o", "-", "--from", "40", "--to", "10m"});
  EXPECT_EQ(timeline.named, "a-1");
  EXPECT_EQ(timeline.output, "-");
  EXPECT_EQ(timeline.from.step, 40);
  EXPECT_EQ(timeline.to.seconds, 600);
  EXPECT_EQ(cli::parsed<UpCommand>({"up", "--port", "0"}).listen.port, 0);
  EXPECT_EQ(cli::parsed<NodeCommand>({"node", "--memory", "2GiB"}).memory_bytes, 2ll << 30);
  EXPECT_EQ(cli::parsed<UpCommand>({"up", "--memory", "64MiB"}).memory_bytes, 64ll << 20);
  EXPECT_EQ(cli::parsed<RunCommand>({"run", "job.yaml", "--memory", "1.5GiB"}).memory_bytes,
            3ll << 29);
  EXPECT_FALSE(cli::parsed<RunCommand>({"run", "job.yaml"}).memory_bytes);
  const auto size = cli::parsed<SizeCommand>(
      {"size", "job.yaml", "--from", "a-1", "--devices", "16", "--price", "rollout=2,learner=4"});
  EXPECT_EQ(size.job, "job.yaml");
  EXPECT_EQ(size.from_run, "a-1");
  EXPECT_EQ(size.devices, 16);
  EXPECT_EQ(size.prices, (scheduler::Pricing{.rollout = 2, .learner = 4}));
  EXPECT_EQ(size.headroom, 0.8);
  cli::parsed<DownCommand>({"down"});
  EXPECT_EQ(cli::parsed<ControllerCommand>({"controller", "--of-run", "/a"}).of_run, "/a");
  // A controller that is started again has the prices of the one before.
  cli::ListenOptions listen = cli::parsed<UpCommand>({"up"}).listen;
  listen.pricing = {.rollout = 2.1, .learner = 4, .currency = "EUR"};
  EXPECT_EQ(cli::parsed<ControllerCommand>(controller_words(listen, {})).listen.pricing,
            listen.pricing);
  listen.ports = {7420, 7499};
  listen.plaintext_gang = true;
  const auto again = cli::parsed<ControllerCommand>(controller_words(listen, {})).listen;
  EXPECT_EQ(again.ports, listen.ports);
  EXPECT_TRUE(again.plaintext_gang);
  const Words with_ports{"node", "--ports", "7420-7499"};
  EXPECT_EQ(node_words(cli::parsed<NodeCommand>(with_ports)), with_ports);
  const auto node = cli::parsed<NodeCommand>({"node", "--keep-controller", "--of-run", "/a"});
  EXPECT_EQ(node.of_run, "/a");
  EXPECT_EQ(node_words(node), (Words{"node", "--keep-controller", "--of-run", "/a"}));
}

TEST(AllVerbs, SayWhatIsWrongWithAValue) {
  const auto check = [](const Words& words, const std::string& message, const std::string& help) {
    cli::expect_refused(words, all_verbs, message, help);
  };
  check({"tokenize", "m", "a", "--jsonl", "f"}, "TEXT excludes --jsonl", "tandem tokenize --help");
  check({"node", "--memory", "many"}, "not a size", "GiB");
  check({"up", "--memory", "-1GiB"}, "not a size", "GiB");
  check({"node", "--memory", "12GB"}, "not a size", "GiB");
  check({"node", "--advertise", "no_host"}, "neither an address nor a host's name",
        "tandem node --help");
  for (const char* address : {"here", "[fd00::1]", "fe80::1%eth0"})
    check({"up", "--bind", address}, "no address of IPv4 or IPv6", "tandem up --help");
  check({"run", "job.yaml", "--cluster", "c", "--bind", "::1"}, "no other host reaches this one",
        "tandem run --help");
  check({"run", "job.yaml", "--memory", "12"}, "is 12 bytes, and a node offers at least 64 MiB",
        "GiB");
  check({"up", "--port", "99999"}, "99999", "tandem up --help");
  check({"node", "--ports", "7499-7420"}, "its end is before its beginning", "7420-7499");
  check({"nod"}, "unknown command `nod`", "`node`");
}

// Nothing is started, and no model or job is looked for, where TANDEM_ISA is wrong.
TEST(AllVerbs, ThoseThatComputeCheckTheInstructionSetFirst) {
  ASSERT_EQ(::setenv("TANDEM_ISA", "avx1024", 1), 0);
  ASSERT_EQ(::setenv("TANDEM_HOME", "/dev/null/none", 1),
            0);  // no verb could start a process there
  for (const Words& words : {Words{"run", "none.yaml"}, Words{"up"}, Words{"node"},
                             Words{"generate", "none", "a"}, Words{"eval", "none", "none.yaml"}}) {
    const cli::Outcome refused = outcome_of(words);
    EXPECT_FALSE(refused.ok) << words.front();
    EXPECT_EQ(refused.code, ErrorCode::kInvalid) << words.front();
    EXPECT_NE(refused.message.find("TANDEM_ISA"), std::string::npos)
        << words.front() << ": " << refused.message;
  }
  ASSERT_EQ(::unsetenv("TANDEM_HOME"), 0);
  ASSERT_EQ(::unsetenv("TANDEM_ISA"), 0);
}

TEST(AllVerbs, HelpIsThereForEveryCommandWithExamples) {
  const std::string all = printed({});
  EXPECT_EQ(all, printed({"--help"}));
  for (const CommandDoc& command : grammar_doc(all_verbs).commands) {
    EXPECT_NE(all.find("  " + command.name + " "), std::string::npos) << command.name;
    const std::string help = printed({command.name, "--help"});
    EXPECT_EQ(help, printed({"help", command.name}));
    ASSERT_FALSE(command.examples.empty()) << command.name;
    for (const std::string& example : command.examples)
      EXPECT_NE(help.find(example), std::string::npos) << example;
  }
}

TEST(AllVerbs, HelpIsAtMost100ColumnsWideForEveryVerb) {
  std::vector<std::string> verbs{"--help"};
  for (const CommandDoc& command : grammar_doc(all_verbs).commands) verbs.push_back(command.name);
  for (const std::string& verb : verbs) {
    std::istringstream help(verb == "--help" ? printed({verb}) : printed({verb, "--help"}));
    for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

// The examples of the help must work: each is parsed as a shell passes it on.
TEST(AllVerbs, EveryExampleIsValid) {
  for (const CommandDoc& command : grammar_doc(all_verbs).commands)
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

TEST(AllVerbs, TheReferencePageIsTheGeneratedOne) {
  expect_page(TANDEM_SOURCE_DIR "/docs/cli.md", cli_reference(grammar_doc(all_verbs)));
}

TEST(AllVerbs, CompletionKnowsEveryCommandAndOption) {
  for (const Shell shell : {Shell::kBash, Shell::kZsh, Shell::kFish}) {
    const std::string script = completion_script(shell, grammar_doc(all_verbs));
    for (const CommandDoc& command : grammar_doc(all_verbs).commands) {
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
  std::ofstream(path) << completion_script(Shell::kBash, grammar_doc(all_verbs))
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
TEST(AllVerbs, EveryArgumentIsCompletedByWhatItTakes) {
  std::string table;
  for (const CommandDoc& command : grammar_doc(all_verbs).commands)
    for (const auto* const options : {&command.arguments, &command.options})
      for (const OptionDoc& option : *options) {
        const bool is_flag = options == &command.options && option.value.empty();
        if (is_flag || option.names.back() == "--output") continue;
        std::string names = option.offers;
        if (names.empty() && !option.choices.empty()) names = "choices";
        if (names.empty()) names = option.names.front() == "JOB.yaml" ? "files" : "-";
        table += command.name + " " + option.names.back() + ": " + names + "\n";
      }
  EXPECT_EQ(table, R"(run JOB.yaml: files
run --resume: runs
run --set: sets
run --memory: -
run --cluster: -
run --bind: -
run --node-name: -
run --min-nodes: -
run --nodes: -
run --port: -
run --ports: -
run --health-port: -
run --node-grace-s: -
run --link: -
submit JOB.yaml: files
submit --resume: runs
submit --set: sets
submit --sweep: -
import FILE: -
import --from: choices
slurm ACTION: choices
slurm JOB.yaml: files
slurm COMMAND: -
slurm --resume: runs
slurm --set: sets
slurm --sweep: -
slurm --nodes: -
slurm --min-nodes: -
slurm --gpus-per-node: -
slurm --time: -
slurm --partition: -
slurm --node-grace-s: -
slurm --ports: -
slurm --sbatch: -
kube ACTION: choices
kube JOB.yaml: files
kube --set: sets
kube --image: -
kube --nodes: -
kube --min-nodes: -
kube --gpus-per-node: -
kube --cpus-per-node: -
kube --memory-per-node: -
kube --shm: -
kube --ports: -
kube --namespace: -
kube --claim: -
kube --storage: -
kube --storage-class: -
kube --queue: -
ray ACTION: choices
ray JOB.yaml: files
ray COMMAND: -
ray --resume: runs
ray --set: sets
ray --nodes: -
ray --min-nodes: -
ray --gpus-per-node: -
ray --cpus-per-node: -
ray --ports: -
ray --address: -
ray --python: -
ray --wait-s: -
ray --save-s: -
simulate JOB.yaml: files
simulate --set: sets
simulate --sweep: -
simulate --from: runs
simulate --engine: -
simulate --rollout-tokens-per-s: -
simulate --fleet: -
simulate --step-seconds: -
simulate --train-tokens-per-s: -
simulate --lengths: -
simulate --lengths-from: runs
simulate --prompt-tokens: -
simulate --install: -
simulate --save: -
simulate --turnaround: -
simulate --score: -
simulate --zero-variance: -
simulate --mtbf: -
simulate --restart: -
simulate --cores: -
simulate --price: -
simulate --svg: -
simulate --steps: -
simulate --seed: -
wait JOB: live
wait --for: choices
wait --timeout: -
get KIND: choices
get --sort-by: -
get --group: -
get --tag: -
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
metrics JOB: records
metrics --keys: -
metrics --steps: -
size JOB.yaml: files
size --from: runs
size --measure-seconds: -
size --rollout-tokens-per-s: -
size --batch-tokens: -
size --step-seconds: -
size --install-seconds: -
size --completions: -
size --replicas: -
size --ranks: -
size --max-staleness: -
size --headroom: -
size --target-trainer-idle: -
size --devices: -
size --learner-efficiency: -
size --price: -
size --set: sets
top --job: live
replay RUN: runs
replay --from-step: -
replay --to-step: -
replay --dump-step: -
replay --dump-file: -
timeline RUN: runs
timeline --from: -
timeline --to: -
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
up --ports: -
up --node-grace-s: -
up --health-port: -
up --pricing: -
up --memory: -
up --hosts: -
up --hosts-file: files
up --ssh: -
up --ssh-option: -
cordon NODE: nodes
cordon --reason: -
drain NODE: nodes
drain --reason: -
drain --timeout: -
uncordon NODE: nodes
controller --port: -
controller --bind: -
controller --allow-host: -
controller --ports: -
controller --node-grace-s: -
controller --health-port: -
controller --pricing: -
node --name: -
node --controller: -
node --bind: -
node --advertise: -
node --ports: -
node --cpus: -
node --memory: -
node --cluster: -
node --job: files
node --set: sets
node --port: -
node --min-nodes: -
generate MODEL_DIR: models
generate PROMPT: -
generate --max-tokens: -
generate --temperature: -
generate --seed: -
eval MODEL_DIR: models
eval JOB.yaml: files
eval --set: sets
eval --url: -
eval --served-model: -
eval --concurrency: -
score JOB.yaml: files
score FILE: -
score --type: choices
score --set: sets
tokenize MODEL_DIR: models
tokenize TEXT: -
tokenize --jsonl: -
explain KEY: keys
completion SHELL: choices
)");
}

TEST(AllVerbs, BashCompletesCommandsOptionsAndValues) {
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
}  // namespace tandem::app
