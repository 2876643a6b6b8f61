// Storms by their seeds (storm.h), for scripts/simulate, which runs it on every core.
//
//   simulate --from S --seeds N [--fault KIND,…]       prints figures as one line of JSON
//   simulate --seed S [--plan 'FAULTS'] [--trace]      one seed, with another plan than its own
//   simulate --seed S --shrink [--plan 'FAULTS']       the fewest faults with which it fails
//   simulate --kinds                                   the table of faults
//
// A storm may end by a CHECK, or not at all: storms run in child processes, and the seed that a
// child is at is in memory that it shares with its parent.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "tests/actors/controller/fault_kinds.h"
#include "tests/actors/controller/shrink.h"
#include "tests/actors/controller/storm.h"

namespace tandem::controller {
namespace {

struct Options {
  std::uint64_t from = 1, seeds = 1;
  std::optional<std::uint64_t> seed;
  std::vector<FaultKind> kinds;
  std::optional<FaultPlan> plan;
  bool trace = false, shrink = false, list = false;
};

[[noreturn]] void usage(const std::string& why) {
  std::fprintf(stderr, "simulate: %s\n", why.c_str());
  std::exit(64);
}

std::vector<FaultKind> parse_kinds(const std::string& text) {
  std::vector<FaultKind> kinds;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const auto kind = kind_named(std::string_view(text).substr(at, end - at));
    if (!kind) usage("no kind of fault: " + text.substr(at, end - at));
    kinds.push_back(*kind);
    at = end + 1;
  }
  return kinds;
}

Options parse(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) usage(word + " needs a value");
      return words[++i];
    };
    if (word == "--from") {
      options.from = std::stoull(value());
    } else if (word == "--seeds") {
      options.seeds = std::stoull(value());
    } else if (word == "--seed") {
      options.seed = std::stoull(value());
    } else if (word == "--fault") {
      options.kinds = parse_kinds(value());
    } else if (word == "--plan") {
      auto plan = parse_plan(value());
      if (!plan) usage(plan.error().message);
      options.plan = std::move(*plan);
    } else if (word == "--trace") {
      options.trace = true;
    } else if (word == "--shrink") {
      options.shrink = true;
    } else if (word == "--kinds") {
      options.list = true;
    } else {
      usage("unknown: " + word);
    }
  }
  return options;
}

FaultPlan plan_of(const Options& options, std::uint64_t seed) {
  return options.plan ? *options.plan : random_plan(seed, options.kinds);
}

// Runs `work` in a child. Whether it did so without a failure and a crash.
bool in_child(const std::function<void()>& work) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Ends a process that is in one storm for so long; nothing is measured by it.
constexpr unsigned kHangSeconds = 120;

StormOutcome storm(std::uint64_t seed, const FaultPlan& plan) {
  ::alarm(kHangSeconds);
  StormOutcome outcome = run_storm(seed, plan);
  ::alarm(0);
  return outcome;
}

bool fails(std::uint64_t seed, const FaultPlan& plan) {
  return !in_child([&] {
    if (!std::freopen("/dev/null", "w", stdout) || !std::freopen("/dev/null", "w", stderr)) return;
    (void)storm(seed, plan);
  });
}

int run_one(const Options& options) {
  const std::uint64_t seed = *options.seed;
  const FaultPlan plan = plan_of(options, seed);
  std::printf("seed %llu, plan '%s'\n", static_cast<unsigned long long>(seed),
              text_of(plan).c_str());
  const StormOutcome outcome = run_storm(seed, plan, options.trace);
  std::printf("%s, %llu events, %llu effects, trace %016llx\n", outcome.state.c_str(),
              static_cast<unsigned long long>(outcome.steps),
              static_cast<unsigned long long>(outcome.effects),
              static_cast<unsigned long long>(outcome.trace_hash));
  return testing::Test::HasFailure() ? 1 : 0;
}

int shrink_one(const Options& options) {
  const std::uint64_t seed = *options.seed;
  const FaultPlan plan = plan_of(options, seed);
  if (!fails(seed, plan)) {
    std::printf("seed %llu does not fail\n", static_cast<unsigned long long>(seed));
    return 0;
  }
  const FaultPlan smaller =
      shrink(plan, [&](const FaultPlan& tried) { return fails(seed, tried); });
  std::printf("seed %llu fails with %zu of its %zu faults: '%s'\n",
              static_cast<unsigned long long>(seed), smaller.size(), plan.size(),
              text_of(smaller).c_str());
  return 1;
}

int run_many(const Options& options) {
  void* const shared = ::mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) usage("no shared memory");
  auto& at = *static_cast<volatile std::uint64_t*>(shared);
  const bool good = in_child([&] {
    const Time began = steady_now();
    std::uint64_t events = 0, effects = 0;
    std::int64_t asked = 0, answered = 0, trainings_compared = 0;
    std::map<std::string, std::uint64_t> struck, states;
    for (std::uint64_t seed = options.from; seed < options.from + options.seeds; ++seed) {
      at = seed;
      const StormOutcome outcome = storm(seed, plan_of(options, seed));
      if (testing::Test::HasFailure()) return;
      events += outcome.steps;
      effects += outcome.effects;
      asked += outcome.asked;
      answered += outcome.answered;
      trainings_compared += outcome.trainings_compared;
      ++states[outcome.state];
      for (const FaultRow& row : fault_rows())
        struck[row.name] += outcome.struck[static_cast<std::size_t>(row.kind)];
    }
    const nlohmann::json figures{{"seeds", options.seeds},
                                 {"seconds", seconds(steady_now() - began)},
                                 {"events", events},
                                 {"effects", effects},
                                 {"struck", struck},
                                 {"states", states},
                                 {"asked", asked},
                                 {"answered", answered},
                                 {"trainings_compared", trainings_compared}};
    std::printf("%s\n", dump_json(figures).c_str());
  });
  if (good) return 0;
  std::printf("failed seed %llu\n", static_cast<unsigned long long>(at));
  return 1;
}

int list_kinds() {
  for (const FaultRow& row : fault_rows()) std::printf("%-18s %s\n", row.name, row.what);
  return 0;
}

}  // namespace
}  // namespace tandem::controller

int main(int argc, char** argv) {
  using namespace tandem::controller;
  tandem::log::mute();
  int count = 1;
  testing::InitGoogleTest(&count, argv);
  const Options options = parse({argv + 1, argv + argc});
  if (options.list) return list_kinds();
  if (options.seed) return options.shrink ? shrink_one(options) : run_one(options);
  return run_many(options);
}
