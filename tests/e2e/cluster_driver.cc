// Commands run as child processes with a TANDEM_HOME of their own and their output in files.
// Processes that belong to a test are found by that variable in their environment.
#include "tests/e2e/cluster_driver.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "actors/exchange/state/journal_replay.h"
#include "actors/runs/run_journal.h"
#include "runtime/base/file.h"
#include "runtime/sqlite/sqlite.h"
#include "runtime/weights/weights_config.h"

namespace tandem::e2e {

namespace fs = std::filesystem;

namespace {

constexpr int kLookAgainMs = 20;  // most conditions start a process to ask a controller

// The file's content, empty where the file is not there: a process may end while its /proc file is
// read.
std::string content(const fs::path& path) {
  const Result<std::string> read = read_file(path);
  return read ? *read : "";
}

// Our environment with this TANDEM_HOME and no address, as "NAME=value".
Words environment(const fs::path& home) {
  Words variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string variable(*entry);
    const std::string name = variable.substr(0, variable.find('='));
    if (name != "TANDEM_HOME" && name != "TANDEM_ADDRESS" && name != "HOME")
      variables.push_back(variable);
  }
  variables.push_back("TANDEM_HOME=" + home.string());
  variables.push_back("HOME=" + home.string());
  return variables;
}

std::vector<char*> pointers(Words& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// In the child: it ends with the test, has a process group of its own, and no input.
[[noreturn]] void become(std::vector<char*>& argv, std::vector<char*>& variables, int out,
                         int err) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  const int input = open("/dev/null", O_RDONLY);
  dup2(input, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  if (chdir(TANDEM_SOURCE_DIR) == 0) execvpe(argv[0], argv.data(), variables.data());
  _exit(127);
}

OwnedFd output_file(const fs::path& path) {
  return OwnedFd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
}

bool is_zombie(const fs::path& process) {
  const std::string stat = content(process / "stat");
  const auto name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.substr(name_end, 3) == ") Z";
}

fs::path let_go_file(const Home& home) { return home.path() / "let-go"; }

}  // namespace

bool eventually(const std::function<bool()>& condition) {
  const Time end = steady_now() + kPatience;
  while (!condition()) {
    if (steady_now() > end) return false;
    poll(nullptr, 0, kLookAgainMs);
  }
  return true;
}

Process::Process(pid_t pid, fs::path out, fs::path err)
    : pid_(pid), out_(std::move(out)), err_(std::move(err)) {}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)) {}

Process::~Process() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const { ASSERT_EQ(kill(pid_, number), 0); }
std::string Process::out() const { return content(out_); }
std::string Process::err() const { return content(err_); }

bool Process::ended() const {
  siginfo_t ended{};
  return waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid != 0;
}

bool Process::said(const std::string& text) const {
  const bool came =
      eventually([&] { return (out() + err()).find(text) != std::string::npos || ended(); });
  const std::string all = out() + err();
  if (came && all.find(text) != std::string::npos) return true;
  ADD_FAILURE() << "it never said \"" << text << "\" but:\n" << all;
  return false;
}

Finished Process::wait() {
  int status = 0;
  const bool ended = eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; });
  if (!ended) {
    ADD_FAILURE() << "pid " << pid_ << " hangs:\n" << out() << err();
    kill(pid_, SIGKILL);
    waitpid(pid_, &status, 0);
  }
  pid_ = 0;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, out(), err()};
}

Home::Home() {
  std::string name = (fs::temp_directory_path() / "tandem-e2e-XXXXXX").string();
  EXPECT_NE(mkdtemp(name.data()), nullptr) << name;
  path_ = name;
}

void Home::lose_node() const {
  const nlohmann::json ranks = json({"get", "actors"});
  fs::remove(path_ / "node.json");
  ASSERT_EQ(kill(json({"get", "nodes"})[0]["pid"].get<pid_t>(), SIGKILL), 0);
  for (const auto& rank : ranks)
    if (rank["pid"].is_number() && rank["pid"] > 0) kill(rank["pid"].get<pid_t>(), SIGKILL);
}

Home::~Home() {
  for (const pid_t pid : processes()) {
    ADD_FAILURE() << "still running: " << content("/proc/" + std::to_string(pid) + "/cmdline");
    kill(pid, SIGKILL);
  }
  EXPECT_TRUE(eventually([this] { return processes().empty(); }));
  for (const std::string& file : shared_memory()) fs::remove(file);
  if (testing::Test::HasFailure())
    GTEST_LOG_(INFO) << "kept for a look: " << path_;
  else
    fs::remove_all(path_);
}

Process Home::start_program(const Words& argv) const {
  const std::string number = std::to_string(++started_);
  const fs::path out = path_ / ("out." + number), err = path_ / ("err." + number);
  const OwnedFd out_fd = output_file(out), err_fd = output_file(err);
  Words words = argv, variables = environment(path_);
  std::vector<char*> arguments = pointers(words), environment_pointers = pointers(variables);
  const pid_t pid = fork();
  if (pid == 0) become(arguments, environment_pointers, out_fd.get(), err_fd.get());
  EXPECT_GT(pid, 0);
  return Process(pid, out, err);
}

Process Home::start(const Words& words) const {
  return start_program(prefix_ + Words{TANDEM_BINARY} + words);
}
Finished Home::run(const Words& words) const { return start(words).wait(); }

nlohmann::json Home::json(Words words) const {
  words.insert(words.end(), {"-o", "json"});
  const Finished done = run(words);
  EXPECT_EQ(done.code, 0) << words.front() << ": " << done.text();
  auto value = parse_json(done.out);
  EXPECT_FALSE(value.is_discarded()) << done.out;
  return value;
}

std::set<std::string> Home::steps_in_timeline(const std::string& job) const {
  const Finished done = run({"timeline", job, "-o", "-"});
  EXPECT_EQ(done.code, 0) << done.err;
  const auto trace = parse_json(done.out);
  EXPECT_TRUE(trace.is_object()) << done.out.substr(0, 1000);
  std::set<std::string> steps;
  if (trace.is_object())
    for (const nlohmann::json& event : trace["traceEvents"])
      if (event["ph"] == "X" && event["cat"] == "train") steps.insert(event["name"]);
  return steps;
}

nlohmann::json Home::train(const std::string& job, const Words& words) const {
  const Finished done = run(Words{"run"} + words);
  EXPECT_EQ(done.code, 0) << done.text();
  expect_nothing_left();
  return result_of(job);
}

nlohmann::json Home::result_of(const std::string& job) const {
  auto result = parse_json(content(run_dir(job) / "result.json"));
  EXPECT_TRUE(result.is_object()) << run_dir(job) << " has no result.json";
  return result;
}

void Home::up() const {
  const Finished done = run({"up", "--port", "0"});
  ASSERT_EQ(done.code, 0) << done.text();
}

void Home::down() const {
  const Finished done = run({"down"});
  EXPECT_EQ(done.code, 0) << done.text();
  EXPECT_FALSE(fs::exists(path_ / "controller.json"));
}

nlohmann::json Home::address() const { return parse_json(content(path_ / "controller.json")); }

bool Home::next_controller(std::int64_t epoch) const {
  return eventually([&] {
    const auto now = address();
    return now.is_object() && now.value("epoch", std::int64_t{0}) > epoch;
  });
}

std::vector<pid_t> Home::processes() const {
  const std::string mark = "TANDEM_HOME=" + path_.string();
  std::vector<pid_t> found;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool process = name.find_first_not_of("0123456789") == std::string::npos;
    if (!process || is_zombie(entry->path())) continue;
    const std::string variables = '\0' + content(entry->path() / "environ");
    if (variables.find('\0' + mark + '\0') != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

std::vector<std::string> Home::shared_memory() const {
  std::vector<std::string> found;
  std::error_code none;  // a state folder without runs
  for (const auto& run : fs::directory_iterator(path_ / "runs", none)) {
    const std::string name = weights::weights_name(run.path().filename().string(), run.path());
    const std::string file = "/dev/shm/tandem-weights." + name;
    if (fs::exists(file)) found.push_back(file);
  }
  return found;
}

void Home::expect_nothing_left() const {
  EXPECT_TRUE(eventually([this] { return processes().empty(); })) << "processes are left";
  EXPECT_EQ(shared_memory(), std::vector<std::string>{});
}

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Words sets(const Words& settings) {
  Words words;
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  return words;
}

Words small_job(int steps, const Words& settings) {
  return Words{"configs/arithmetic.yaml"} +
         sets({"learner.total_training_steps=" + std::to_string(steps),
               "data.train_batch_size=" + std::to_string(kGroupsPerStep), "warm_start.max_steps=40",
               "warm_start.until=null", "reward.type=regex", "reward.pattern=^0"}) +
         sets(settings);
}

Words emulated_gpu_job(int steps, const Words& settings) {
  return small_job(
      steps, Words{"rollout.n=4", "rollout.max_num_seqs=16", "rollout.max_num_batched_tokens=512",
                   "learner.max_token_len=512", "warm_start.max_steps=2",
                   "warm_start.batch_size=16", "data.val_files=[]", "data.train_batch_size=2",
                   "data.max_response_length=4", "reward.pattern=^[0-4]"} +
                 settings);
}

Words held(const Home& home, int steps) {
  const fs::path script = fs::path(TANDEM_SOURCE_DIR) / "tests/e2e/held_reward.py";
  const nlohmann::json command{"python3", script, home.run_dir(kSmallId) / "metrics.jsonl",
                               std::to_string(steps), let_go_file(home)};
  return sets({"reward.type=command", "reward.pattern=null", "reward.command=" + command.dump(),
               "reward.timeout_s=600"});
}

void let_go(const Home& home) { ASSERT_TRUE(std::ofstream(let_go_file(home))); }

void run_and_kill(const Home& home, const Words& words, int step) {
  Process run = home.start(Words{"run"} + words + held(home, step + 15));
  const fs::path dir = home.run_dir(kSmallId);
  const fs::path checkpoint = dir / "checkpoints" / ("step-" + std::to_string(step));
  ASSERT_TRUE(eventually([&] { return fs::exists(checkpoint); })) << run.err();
  run.signal(SIGKILL);
  ASSERT_EQ(run.wait().code, 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return home.processes().empty(); })) << "ranks are left";
  ASSERT_FALSE(fs::exists(dir / "result.json"));
}

std::vector<nlohmann::json> lines_of(const fs::path& file) {
  std::vector<nlohmann::json> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) lines.push_back(parse_json(line));
  return lines;
}

std::int64_t journal_value(const fs::path& run_dir, const std::string& query) {
  auto journal = sqlite::Sqlite::open((run_dir / "journal.sqlite").string(), "");
  if (!journal) {
    ADD_FAILURE() << journal.error().message;
    return -1;
  }
  std::optional<std::int64_t> value;
  const auto done = (*journal)->query(query, [&](const sqlite::Sqlite::Row& row) {
    EXPECT_FALSE(value.has_value()) << query;
    if (const auto* number = std::get_if<std::int64_t>(&row.at(0))) value = *number;
  });
  EXPECT_TRUE(done) << query;
  EXPECT_TRUE(value.has_value()) << query;
  return value.value_or(-1);
}

// DU-2: the state that the journal gives offline is the one that the run had.
void expect_journal_replays(const fs::path& run_dir) {
  const auto journal = runs::RunJournal::open_to_read(run_dir.string());
  ASSERT_TRUE(journal.has_value()) << journal.error().message;
  exchange::JournalReplay replay;
  bool ends_with_hash = false, saved = false;
  const auto read = journal->read([&](const exchange::JournalEntry& entry) {
    replay.take(entry);
    ends_with_hash = std::holds_alternative<exchange::StateHashed>(entry.event);
    saved = saved || std::holds_alternative<exchange::CheckpointKept>(entry.event);
  });
  EXPECT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(replay.differs_at(), std::nullopt) << "DU-2";
  EXPECT_TRUE(ends_with_hash);
  EXPECT_GE(replay.hashes(), saved ? 2 : 1) << "those of a checkpoint and of the end";
}

void expect_ledger_balances(const fs::path& run_dir, const nlohmann::json& result) {
  expect_journal_replays(run_dir);
  // Selects the last row that settles each group; SQLite takes the other columns from max()'s row.
  const std::string settled =
      "(SELECT group_id, kind, max(seq) FROM journal WHERE kind IN ('trained','discarded') "
      "GROUP BY group_id)";
  const auto& ledger = result["ledger"];
  std::int64_t discarded = 0;
  for (const auto& [reason, count] : ledger["discarded"].items())
    discarded += count.get<std::int64_t>();
  const auto issued = journal_value(
      run_dir, "SELECT count(DISTINCT group_id) FROM journal WHERE kind = 'admitted'");
  const auto trained =
      journal_value(run_dir, "SELECT count(*) FROM " + settled + " WHERE kind = 'trained'");
  EXPECT_EQ(issued, ledger["issued"]);
  EXPECT_EQ(trained, ledger["trained"]);
  EXPECT_EQ(journal_value(run_dir, "SELECT count(*) FROM " + settled + " WHERE kind = 'discarded'"),
            discarded);
  EXPECT_EQ(ledger["live"], 0);
  EXPECT_EQ(issued, trained + discarded) << "LG-1";
  EXPECT_EQ(
      journal_value(run_dir,
                    "SELECT count(*) FROM journal WHERE kind = 'admitted' AND group_id NOT IN "
                    "(SELECT group_id FROM " +
                        settled + ")"),
      0);
  EXPECT_LE(result["staleness"]["max"], result["staleness"]["bound"]) << "LG-4";
}

nlohmann::json actor(const Home& home, const std::string& name, const Words& options) {
  return home.json(options + Words{"get", "actors", name});
}

void kill_rank(const nlohmann::json& actor) {
  ASSERT_TRUE(actor["pid"].is_number_integer()) << actor;
  ASSERT_EQ(kill(actor["pid"].get<pid_t>(), SIGKILL), 0) << actor;
}

}  // namespace tandem::e2e
