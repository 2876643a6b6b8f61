// up: the whole of `tandem up` on an empty state folder, which returns once the controller answers
// and its node has joined. `tandem down` afterwards is not measured.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <latch>

#include "runtime/base/check.h"
#include "runtime/node/process_host.h"
#include "tests/bench/must.h"

namespace tandem::bench {
namespace {

namespace fs = std::filesystem;

// Runs the binary with these arguments to its end, which must be good.
void run_tandem(runtime::PosixProcessHost& host, const fs::path& home,
                std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TANDEM_BINARY);
  std::latch ended(1);
  must(host.spawn({.name = "tandem",
                   .argv = std::move(arguments),
                   .environment = {{"TANDEM_HOME", home.string()}},
                   .log_path = home / "bench.log"},
                  [&](runtime::ProcessId, const runtime::ExitStatus& status) {
                    CHECK(status.code == 0);
                    ended.count_down();
                  }));
  ended.wait();
}

void up(benchmark::State& state) {
  const fs::path home = fs::temp_directory_path() / ("tandem-up-bench-" + std::to_string(getpid()));
  runtime::PosixProcessHost host;
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

}  // namespace
}  // namespace tandem::bench

BENCHMARK_MAIN();
