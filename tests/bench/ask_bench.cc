// Remote calls over TCP loopback between processes, each shape beside bare ZeroMQ in the same run:
//   ask/sync_1_1    one caller, one actor, one call at a time; p50_us
//   ask/async_1_1   one caller, one actor, batches of 1,000 calls
//   ask/async_1_n   one caller, 4 actors, 1,000 calls to each
//   ask/async_n_n   4 callers, 4 actors, 5,000 calls of each caller
// `ratio` is the rate over that of the raw_zmq twin.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>
#include <vector>

#include "runtime/base/log.h"
#include "tests/bench/ask_processes.h"
#include "tests/bench/ask_raw_zmq.h"
#include "tests/bench/must.h"

namespace tandem::bench {
namespace {

constexpr int kMany = 4;
constexpr std::int64_t kBatch = 1'000;  // per actor
constexpr std::int64_t kCallsOfEach = 5'000;

// The rates that the raw twins reached, by the name of the shape.
using Rates = std::map<std::string, double>;

struct Shape {
  std::string name;
  std::int64_t calls;  // per iteration
  bool raw = false;
};

// Runs `iteration` as the benchmark says and fills in the counters.
template <class Iteration>
void measure(benchmark::State& state, const Shape& shape, Rates& rates, Iteration iteration) {
  std::vector<double> microseconds;
  const Time begin = steady_now();
  Time before = begin;
  for (auto _ : state) {
    iteration();
    const Time now = steady_now();
    if (shape.calls == 1) microseconds.push_back(seconds(now - before) * 1e6);
    before = now;
  }
  const std::int64_t calls = state.iterations() * shape.calls;
  state.SetItemsProcessed(calls);
  if (!microseconds.empty()) {
    const auto middle = microseconds.begin() + static_cast<std::ptrdiff_t>(microseconds.size() / 2);
    std::nth_element(microseconds.begin(), middle, microseconds.end());
    state.counters["p50_us"] = *middle;
  }
  const double rate = static_cast<double>(calls) / seconds(before - begin);
  if (shape.raw) rates[shape.name] = rate;
  if (!shape.raw && rates.contains(shape.name)) state.counters["ratio"] = rate / rates[shape.name];
}

void one_caller(benchmark::State& state, const Shape& shape, Rates& rates, int actors,
                Transport transport) {
  Children children;
  Caller caller(static_cast<std::size_t>(actors), transport);
  children.spawn("echo", actors, {caller.address()});
  const auto refs = caller.actors();
  measure(state, shape, rates, [&] {
    if (shape.calls == 1)
      must(actor::ask_and_wait(refs[0], SmallValue{}, kPatience));
    else
      must(actor::ask_and_wait(caller.driver(), RunCalls{shape.calls}, kPatience));
  });
}

void one_raw_caller(benchmark::State& state, const Shape& shape, Rates& rates, int actors) {
  Children children;
  RawCaller caller;
  children.spawn("raw_echo", actors, {caller.endpoint()});
  caller.wait_for_actors(static_cast<std::size_t>(actors));
  measure(state, shape, rates, [&] {
    if (shape.calls == 1)
      caller.call(0);
    else
      caller.run_calls(shape.calls);
  });
}

template <class Callers, class... Options>
void many_callers(benchmark::State& state, const Shape& shape, Rates& rates, Options... options) {
  Children children;
  Callers callers(children, kMany, kMany, options...);
  measure(state, shape, rates, [&] { callers.run(kCallsOfEach); });
}

template <class Function>
void add(const std::string& name, Function function) {
  benchmark::RegisterBenchmark(name.c_str(), function)
      ->UseRealTime()

      ->Unit(benchmark::kMicrosecond);
}

void add_all(Rates& rates) {
  const auto one = [&rates](const std::string& name, std::int64_t calls, int actors) {
    add(name + "/raw_zmq", [=, &rates](benchmark::State& state) {
      one_raw_caller(state, {name, calls, true}, rates, actors);
    });
    add(name, [=, &rates](benchmark::State& state) {
      one_caller(state, {name, calls}, rates, actors, Transport::kUnix);
    });
    add(name + "/tcp_curve", [=, &rates](benchmark::State& state) {
      one_caller(state, {name, calls}, rates, actors, Transport::kTcpCurve);
    });
  };
  one("ask/sync_1_1", 1, 1);
  one("ask/async_1_1", kBatch, 1);
  one("ask/async_1_n", kMany * kBatch, kMany);
  const std::string many = "ask/async_n_n";
  add(many + "/raw_zmq", [=, &rates](benchmark::State& state) {
    many_callers<RawRemoteCallers>(state, {many, kMany * kCallsOfEach, true}, rates);
  });
  add(many, [=, &rates](benchmark::State& state) {
    many_callers<RemoteCallers>(state, {many, kMany * kCallsOfEach}, rates, Transport::kUnix);
  });
  add(many + "/tcp_curve", [=, &rates](benchmark::State& state) {
    many_callers<RemoteCallers>(state, {many, kMany * kCallsOfEach}, rates, Transport::kTcpCurve);
  });
}

int run(int argc, char** argv) {
  init_logging("ask_bench", LogLevel::kWarnings);
  const std::span<const char* const> words(argv + 1, static_cast<std::size_t>(argc - 1));
  const std::string_view role = words.empty() ? "" : words[0];
  if (role == "echo") return run_echo(words.subspan(1));
  if (role == "caller") return run_caller(words.subspan(1));
  if (role == "raw_echo") return run_raw_echo(words.subspan(1));
  if (role == "raw_caller") return run_raw_caller(words.subspan(1));
  Rates rates;
  add_all(rates);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 64;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) { return tandem::bench::run(argc, argv); }
