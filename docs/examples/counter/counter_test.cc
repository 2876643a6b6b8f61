// The counter in the simulated executor. Each seed is another order of events; a failure names its
// seed, and `counter_test SEED` repeats it.
#include "counter.h"

#include <tandem/testing.h>

#include <cstdlib>
#include <iostream>

namespace {

bool counts_and_starts_anew(const tandem::Program& program, std::uint64_t seed) {
  tandem::SimulatedJob job(program, seed);
  job.start("counter/0", {{"from", 10}});
  const auto counter = job.find<Counter::Inbox>("counter/0");
  const auto twelve = job.ask(counter, Add{2});
  const auto fifteen = job.ask_json("counter/0", {{"add", 3}});  // as `tandem ask` does
  job.kill("counter/0");
  const auto nobody = job.ask(counter, GetTotal{});
  job.run_until([&] { return job.running("counter/0"); });
  const auto ten = job.ask(counter, GetTotal{});
  return twelve && *twelve == 12 && fifteen && *fifteen == 15 && !nobody && ten && *ten == 10;
}

}  // namespace

int main(int argc, char** argv) {
  tandem::log::mute();
  const tandem::Program program = tandem::Program().actor<Counter>("counter");
  const std::uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const std::uint64_t last = argc > 1 ? first : 100;
  for (std::uint64_t seed = first; seed <= last; ++seed)
    if (!counts_and_starts_anew(program, seed)) {
      std::cerr << "failed with seed " << seed << "\n";
      return 1;
    }
  std::cout << "passed with seeds " << first << " to " << last << "\n";
  return 0;
}
