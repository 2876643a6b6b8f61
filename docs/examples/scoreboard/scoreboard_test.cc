// A board, two players and one that stumbles: it fails, is started again, and goes on from its sum.
#include "scoreboard.h"

#include <tandem/testing.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace {

using namespace scoreboard;

bool everybody_comes_to_a_hundred(std::uint64_t seed) {
  const tandem::Program program = scoreboard::program();
  tandem::SimulatedJob job(program, seed);
  job.start("player/0");  // before the board, for which it waits
  job.start("stumbler/0", {{"stumbles_at", 50}});
  job.start("board/0");
  job.start("player/1");
  const auto board = job.find<Board::Inbox>("board/0");
  Standings standings;
  const auto done = [&] {
    const auto now = job.ask(board, GetStandings{});
    if (now) standings = *now;
    return standings.sums.size() == 3 &&
           std::all_of(standings.sums.begin(), standings.sums.end(),
                       [](const auto& player) { return player.second >= 100; });
  };
  for (int second = 0; second < 60 && !done(); ++second) job.run_for(std::chrono::seconds(1));
  return done() && job.starts("stumbler/0") == 2 && job.starts("player/0") == 1 &&
         job.failures().size() == 1;
}

}  // namespace

int main(int argc, char** argv) {
  tandem::log::mute();
  const std::uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const std::uint64_t last = argc > 1 ? first : 50;
  for (std::uint64_t seed = first; seed <= last; ++seed)
    if (!everybody_comes_to_a_hundred(seed)) {
      std::cerr << "failed with seed " << seed << "\n";
      return 1;
    }
  std::cout << "passed with seeds " << first << " to " << last << "\n";
  return 0;
}
