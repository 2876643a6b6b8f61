// spawn: from posix_spawn of a rank process, which has no role yet and no model, until it has
// introduced itself at the controller's link and can be told what to be. This executable is its own
// rank, as the binary is: same libraries, same start.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <latch>

#include "actors/main/rank_process.h"
#include "actors/messages/wire_build.h"
#include "runtime/base/log.h"
#include "runtime/link/link.h"
#include "runtime/node/agent.h"
#include "runtime/node/process_host.h"
#include "tests/bench/link_peers.h"
#include "tests/bench/must.h"

namespace tandem::bench {
namespace {

void spawn(benchmark::State& state) {
  const auto log = std::filesystem::temp_directory_path() /
                   ("tandem-spawn-bench-" + std::to_string(getpid()) + ".log");
  link::IoThread io("link");
  std::latch* up = nullptr;
  const link::LinkCallbacks callbacks{
      .on_parcel = [](const ActorId&, std::string&) { return link::Offer::kTaken; },
      .on_up = [&](const ActorId&, const link::Hello&) { up->count_down(); },
      .on_down = [](const ActorId&, const link::Down&) {}};
  ServerAddress address(Transport::kUnix);
  const auto server = must(link::LinkServer::listen(
      io, {address.binding()},
      {.name = "controller", .incarnation = {1}, .build = messages::wire_build()}, {}, callbacks));
  server->start();
  node::PosixProcessHost host;
  std::uint64_t life = 0;
  for (auto _ : state) {
    std::latch introduced(1), ended(1);
    io.run([&] { up = &introduced; });
    std::vector<std::string> argv = app::rank_arguments({"bench/rollout/0", {++life}, 0});
    argv.insert(argv.begin(), "/proc/self/exe");
    for (std::string& word : node::rank_words({.controller = to_string(server->endpoint())}))
      argv.push_back(std::move(word));
    const Time begin = steady_now();
    const auto rank =
        must(host.spawn({.name = "rank", .argv = std::move(argv), .log_path = log},
                        [&](node::ProcessId, const node::ExitStatus&) { ended.count_down(); }));
    introduced.wait();
    state.SetIterationTime(seconds(steady_now() - begin));
    host.stop(rank.id, std::chrono::seconds(1));
    ended.wait();
  }
  server->close(Duration::zero());
  std::filesystem::remove(log);
}
BENCHMARK(spawn)->UseManualTime()->Unit(benchmark::kMillisecond);

int run(int argc, char** argv) {
  const std::span<const char* const> words(argv + 1, static_cast<std::size_t>(argc - 1));
  if (!words.empty() && std::string_view(words[0]) == app::kRankCommand)
    return app::run_rank(words.subspan(1));
  init_logging("spawn_bench", LogLevel::kWarnings);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 64;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) { return tandem::bench::run(argc, argv); }
