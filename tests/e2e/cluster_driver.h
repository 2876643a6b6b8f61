// Drives the real binary: a state folder of its own for each test, commands with their output and
// exit code, looks into a running cluster as JSON, and the proof that nothing is left.
//
// Waiting is by condition with a deadline that only ends a hang; it measures nothing. A deadline
// that passes fails the test with the command's output.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"

namespace tandem::e2e {

using Words = std::vector<std::string>;

inline constexpr Duration kPatience = std::chrono::seconds(90);

// Looks again and again until the condition holds; false when patience ends.
bool eventually(const std::function<bool()>& condition);

struct Finished {
  int code = 0;  // exit code; 128 + the signal that ended it
  std::string out, err;
  std::string text() const { return out + err; }
};

// One running command. It is killed with the object.
class Process {
 public:
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  std::string out() const;  // so far
  std::string err() const;
  bool said(const std::string& text) const;  // on stdout or stderr, before patience ends
  bool ended() const;                        // without waiting
  Finished wait();

 private:
  friend class Home;
  Process(pid_t pid, std::filesystem::path out, std::filesystem::path err);
  pid_t pid_;  // 0: waited for
  std::filesystem::path out_, err_;
};

// A TANDEM_HOME in a temporary folder. The destructor kills processes that still run in it, which
// is a failure.
class Home {
 public:
  Home();
  ~Home();
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  // Commands are started by these words from now on: "ip netns exec HOST" for instance.
  void start_by(Words prefix) { prefix_ = std::move(prefix); }

  // The machine of the only node is gone, with its agent and all ranks; nobody starts it again.
  void lose_node() const;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path run_dir(const std::string& job) const { return path_ / "runs" / job; }

  // `tandem WORDS…` in the repository's root.
  Process start(const Words& words) const;
  Finished run(const Words& words) const;
  Process start_program(const Words& argv) const;  // any program, in the same surroundings
  // The JSON that `tandem WORDS… -o json` prints; fails unless it is valid and the exit code is 0.
  nlohmann::json json(Words words) const;
  // The learner's spans ("step 1" …) of the run's trace, which `tandem timeline` has to make.
  std::set<std::string> steps_in_timeline(const std::string& job) const;

  // Starts, follows and expects success; its result.json. The job's id is `job`.
  nlohmann::json train(const std::string& job, const Words& words) const;
  nlohmann::json result_of(const std::string& job) const;

  // Starts a cluster on free ports.
  void up() const;
  void down() const;
  nlohmann::json address() const;  // controller.json; null where there is none
  // Whether a controller of a later epoch is up before patience ends.
  bool next_controller(std::int64_t epoch) const;

  // The pids of the processes with this TANDEM_HOME in their environment, without zombies.
  std::vector<pid_t> processes() const;
  // The shared memory of the runs in this TANDEM_HOME.
  std::vector<std::string> shared_memory() const;
  void expect_nothing_left() const;

 private:
  std::filesystem::path path_;
  Words prefix_;
  mutable int started_ = 0;
};

// "--set k=v" for each.
Words sets(const Words& settings);
Words operator+(Words left, const Words& right);
// The quickstart's job in small: `run` or `submit` it with the settings on top. It learns to begin
// its answers with a 0, which a short warm start does half of the time, so that every step has
// something to learn from.
inline constexpr int kForever = 1'000'000;  // steps: more than a test waits for

Words small_job(int steps, const Words& settings = {});
// Smaller still: each thread of an emulated GPU is a fiber, and for each kernel all memory of the
// GPU that is in use is opened and closed. Two groups a step.
Words emulated_gpu_job(int steps, const Words& settings = {});
inline constexpr int kGroupsPerStep = 16;  // groups per step of a small job
inline constexpr const char* kSmallId = "arithmetic-grpo-1";

// Settings by which the run kSmallId of a small job waits for the test: from `steps` trained steps
// on its reward scores nothing until let_go(). Groups that were scored before may still be trained.
Words held(const Home& home, int steps);
void let_go(const Home& home);

// Starts `tandem run WORDS…` of a small job and kills it, the command itself, once it has written
// the checkpoint of `step`; its ranks end with it, and no result.json is there.
void run_and_kill(const Home& home, const Words& words, int step = 10);

// The lines of a file, each as JSON.
std::vector<nlohmann::json> lines_of(const std::filesystem::path& file);

// The only value that `query` finds in the run's journal.
std::int64_t journal_value(const std::filesystem::path& run_dir, const std::string& query);
// Fails unless each admitted group's last word in the journal is trained or discarded, as often as
// `result` counts them, and `steps` batches were trained (LG-1).
void expect_ledger_balances(const std::filesystem::path& run_dir, const nlohmann::json& result);

// The API's JSON of an actor, "rollout/0" for instance.
nlohmann::json actor(const Home& home, const std::string& name, const Words& options = {});
void kill_rank(const nlohmann::json& actor);

}  // namespace tandem::e2e
