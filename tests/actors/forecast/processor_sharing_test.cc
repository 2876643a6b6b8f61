// Tests actors/forecast/processor_sharing.h.
#include "actors/forecast/processor_sharing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/rng.h"

namespace tandem::forecast {
namespace {

using namespace std::chrono_literals;

Time at(double s) { return Time{} + Duration(std::llround(s * 1e9)); }

// A learner's second of work, beside which a rollout of one thread works for half a second, with
// cores for two of their three threads.
TEST(ProcessorSharing, PiecesThatWantMoreThanThereIsAdvanceAtOneRate) {
  ProcessorSharing sharing(2);
  const WorkerId learner = sharing.add_worker(2), rollout = sharing.add_worker(1);
  const PieceId step = sharing.begin(at(0), learner, 1s);
  EXPECT_EQ(sharing.rate(), 1);
  const PieceId decode = sharing.begin(at(0), rollout, 500ms);
  EXPECT_DOUBLE_EQ(sharing.rate(), 2.0 / 3);
  EXPECT_EQ(sharing.next_end(at(0)), at(0.75));
  EXPECT_EQ(sharing.done(at(0.3), step), 200ms);
  EXPECT_EQ(sharing.take_ended(at(0.75)), std::vector{decode});
  EXPECT_EQ(sharing.rate(), 1);
  EXPECT_EQ(sharing.next_end(at(0.75)), at(1.25));
  EXPECT_EQ(sharing.take_ended(at(1.25)), std::vector{step});
  EXPECT_EQ(sharing.next_end(at(2)), std::nullopt);
}

TEST(ProcessorSharing, AWorkersPiecesAdvanceSideBySideOnItsThreads) {
  ProcessorSharing sharing(1);
  const WorkerId reward = sharing.add_worker(0.5), learner = sharing.add_worker(1);
  sharing.begin(at(0), reward, 1s);
  sharing.begin(at(0), reward, 1s);
  EXPECT_EQ(sharing.rate(), 1);  // half a thread, however many there are
  sharing.begin(at(0), learner, 1s);
  EXPECT_DOUBLE_EQ(sharing.rate(), 1 / 1.5);
  EXPECT_EQ(sharing.remove_worker(at(1), reward).size(), 2u);
  EXPECT_EQ(sharing.rate(), 1);
  EXPECT_EQ(sharing.running(), 1u);
}

TEST(ProcessorSharing, APieceMayBecomeShorterAndLonger) {
  ProcessorSharing sharing(0);
  const WorkerId rollout = sharing.add_worker(8);
  const PieceId piece = sharing.begin(at(1), rollout, 10s);
  sharing.resize(at(3), piece, 4s);
  EXPECT_EQ(sharing.next_end(at(3)), at(5));
  sharing.resize(at(3), piece, 6s);
  EXPECT_EQ(sharing.next_end(at(4)), at(7));
  sharing.resize(at(4), piece, 1s);  // all of it has been done
  EXPECT_EQ(sharing.next_end(at(4)), at(4));
  EXPECT_EQ(sharing.take_ended(at(4)), std::vector{piece});
}

struct Arrival {
  double at_s = 0, work_s = 0;
  std::size_t worker = 0;
};
struct Load {
  double cores = 0;
  std::vector<double> threads;  // of each worker
  std::vector<Arrival> pieces;  // by time
};

Load random_load(Rng& rng) {
  Load load{.cores = 0.5 + static_cast<double>(rng.below(8)) / 2, .threads = {}, .pieces = {}};
  for (std::uint64_t i = 0; i < 1 + rng.below(8); ++i)
    load.threads.push_back(0.1 * static_cast<double>(1 + rng.below(40)));
  for (std::uint64_t i = 0; i < 1 + rng.below(60); ++i)
    load.pieces.push_back({.at_s = 0.25 * static_cast<double>(rng.below(40)),
                           .work_s = 2 * rng.unit(),
                           .worker = rng.below(load.threads.size())});
  std::ranges::stable_sort(load.pieces, {}, &Arrival::at_s);
  return load;
}

// When each piece ends, in the order of load.pieces. Between two changes at most min(cores, threads
// wanted) threads advance, which is checked against `core_s`, the core seconds of the same time.
std::vector<double> ends_of(const Load& load, double* core_s = nullptr) {
  ProcessorSharing sharing(load.cores);
  std::vector<WorkerId> workers;
  for (const double threads : load.threads) workers.push_back(sharing.add_worker(threads));
  std::vector<double> ends(load.pieces.size());
  std::map<PieceId, std::size_t> running;
  std::size_t next = 0;
  Time now = at(0);
  while (next < load.pieces.size() || !running.empty()) {
    const auto ending = sharing.next_end(now);
    Time then = next < load.pieces.size() ? at(load.pieces[next].at_s) : *ending;
    if (ending) then = std::min(then, *ending);
    if (core_s) {
      std::map<std::size_t, double> wanted;
      for (const auto& [piece, index] : running)
        wanted[load.pieces[index].worker] = load.threads[load.pieces[index].worker];
      double sum = 0;
      for (const auto& [worker, threads] : wanted) sum += threads;
      EXPECT_NEAR(sharing.rate() * sum, std::min(load.cores, sum), 1e-5);
      *core_s += std::min(load.cores, sum) * tandem::seconds(then - now);
    }
    now = then;
    for (const PieceId piece : sharing.take_ended(now)) {
      ends[running.at(piece)] = tandem::seconds(now - at(0));
      running.erase(piece);
    }
    for (; next < load.pieces.size() && at(load.pieces[next].at_s) == now; ++next)
      running[sharing.begin(now, workers[load.pieces[next].worker],
                            Duration(std::llround(load.pieces[next].work_s * 1e9)))] = next;
  }
  return ends;
}

// HC-1 and HC-2: where each worker has one piece at a time, the core seconds that have been given
// are those of the work, and no piece ends before its own time.
TEST(ProcessorSharing, NoWorkIsLostAndNoCoreWaits) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    Load load = random_load(rng);
    std::vector<double> threads;
    for (Arrival& piece : load.pieces) {  // a worker for each
      threads.push_back(load.threads[piece.worker]);
      piece.worker = threads.size() - 1;
    }
    load.threads = threads;
    double given = 0, work = 0;
    const std::vector<double> ends = ends_of(load, &given);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      work += load.threads[i] * load.pieces[i].work_s;
      EXPECT_GE(ends[i], load.pieces[i].at_s + load.pieces[i].work_s - 1e-8);
    }
    EXPECT_NEAR(given, work, 1e-5 * work + 1e-6);
  }
}

// HC-2: as many cores as are wanted give each piece its own time, to the nanosecond.
TEST(ProcessorSharing, AloneEachPieceTakesItsOwnTime) {
  for (const double cores : {0.0, 1000.0})
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Rng rng(seed);
      Load load = random_load(rng);
      load.cores = cores;
      const std::vector<double> ends = ends_of(load);
      for (std::size_t i = 0; i < ends.size(); ++i)
        EXPECT_NEAR(ends[i], load.pieces[i].at_s + load.pieces[i].work_s, 2e-9);
    }
}

// HC-3.
TEST(ProcessorSharing, TheOrderOfCallsOfOneMomentDoesNotCount) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const Load load = random_load(rng);
    Load turned = load;
    std::ranges::reverse(turned.pieces);
    std::ranges::stable_sort(turned.pieces, {}, &Arrival::at_s);
    const auto by_piece = [](const Load& of) {
      const std::vector<double> ends = ends_of(of);
      std::vector<std::vector<double>> all;
      for (std::size_t i = 0; i < ends.size(); ++i)
        all.push_back({of.pieces[i].at_s, of.pieces[i].work_s,
                       static_cast<double>(of.pieces[i].worker), ends[i]});
      std::ranges::sort(all);
      return all;
    };
    EXPECT_EQ(by_piece(load), by_piece(turned));
  }
}

}  // namespace
}  // namespace tandem::forecast
