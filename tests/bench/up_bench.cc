// up: the whole of `tandem up` on an empty state folder, which returns once the controller answers
// and its node has joined. `tandem down` afterwards is not measured.
// scale/first_token: from `tandem scale` to the first token of the new rollout, beside a job that
// trains on all processors.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <latch>

#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/node/log_files.h"
#include "runtime/node/process_host.h"
#include "tests/bench/must.h"

namespace tandem::bench {
namespace {

namespace fs = std::filesystem;

// Runs the binary with these arguments to its end, which must be good.
void run_tandem(node::PosixProcessHost& host, const fs::path& home,
                std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TANDEM_BINARY);
  std::latch ended(1);
  must(host.spawn({.name = "tandem",
                   .argv = std::move(arguments),
                   .environment = {{"TANDEM_HOME", home.string()}},
                   .log_path = home / "bench.log"},
                  [&](node::ProcessId, const node::ExitStatus& status) {
                    CHECK(status.code == 0);
                    ended.count_down();
                  }));
  ended.wait();
}

void up(benchmark::State& state) {
  const fs::path home = fs::temp_directory_path() / ("tandem-up-bench-" + std::to_string(getpid()));
  node::PosixProcessHost host;
  for (auto _ : state) {
    fs::remove_all(home);
    fs::create_directories(home);
    const Time begin = steady_now();
    run_tandem(host, home, {"up", "--port", "0"});
    state.SetIterationTime(seconds(steady_now() - begin));
    run_tandem(host, home, {"down"});
  }
  fs::remove_all(home);
}
BENCHMARK(up)->UseManualTime()->Unit(benchmark::kMillisecond);

constexpr const char* kJob = "arithmetic-grpo-1";

// When the newest incarnation of the second rollout logged its first token; none if it did not.
std::optional<std::int64_t> first_token_ms(const fs::path& logs) {
  const auto incarnations = node::log_incarnations(logs, "rollout/1");
  if (incarnations.empty()) return std::nullopt;
  const std::string text = must(read_file(node::log_path(logs, "rollout/1", incarnations.back())));
  const auto at = text.find("event=first_token");
  if (at == std::string::npos) return std::nullopt;
  return node::line_time_ms(std::string_view(text).substr(text.rfind('\n', at) + 1));
}

void scale_first_token(benchmark::State& state) {
  const fs::path home =
      fs::temp_directory_path() / ("tandem-scale-bench-" + std::to_string(getpid()));
  node::PosixProcessHost host;
  fs::remove_all(home);
  fs::create_directories(home);
  run_tandem(host, home, {"up", "--port", "0"});
  run_tandem(host, home,
             {"submit", TANDEM_SOURCE_DIR "/configs/arithmetic.yaml", "--set",
              "learner.total_training_steps=1000000", "--set", "warm_start.max_steps=10", "--set",
              "warm_start.until=null"});
  run_tandem(host, home, {"wait", kJob, "--for", "Running", "--timeout", "120s"});
  for (auto _ : state) {
    const std::int64_t begin = unix_ms();
    run_tandem(host, home, {"scale", kJob, "rollout=2", "--wait"});
    run_tandem(host, home, {"scale", kJob, "rollout=1", "--wait"});  // once it has done its work
    if (const auto first = first_token_ms(home / "runs" / kJob / "logs"))
      state.SetIterationTime(static_cast<double>(*first - begin) / 1000);
    else
      state.SkipWithError("the new rollout generated nothing");
  }
  run_tandem(host, home, {"down"});
  fs::remove_all(home);
}
BENCHMARK(scale_first_token)
    ->Name("scale/first_token")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem::bench

BENCHMARK_MAIN();
