#include "actors/main/turn_watch.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/node/cpu_wait.h"
#include "scheduler/fleet/hang_timeout.h"

namespace tandem::app {

namespace {

thread_local link::Progress* progress_of_thread = nullptr;

}  // namespace

struct TurnWatch::Thread {
  explicit Thread(std::function<Duration()> waited) : stillness(std::move(waited)) {}
  link::Progress progress;
  link::Stillness stillness;
};

TurnWatch::TurnWatch(int threads, const std::function<Duration()>& waited) {
  for (int i = 0; i < threads; ++i) threads_.push_back(std::make_unique<Thread>(waited));
}

TurnWatch::~TurnWatch() = default;

actor::ThreadedExecutor::OnTurn TurnWatch::on_turn() {
  return [this](int thread, bool begins) {
    progress_of_thread = &threads_[static_cast<std::size_t>(thread)]->progress;
    progress_of_thread->enter(begins ? "turn" : "idle", steady_now());
  };
}

void TurnWatch::beat() {
  if (progress_of_thread) progress_of_thread->beat(steady_now());
}

// What one thread's turns have needed says nothing less of the others'.
std::optional<Duration> TurnWatch::hung(Time now) {
  std::vector<link::ProgressReport> reports;
  scheduler::PhaseHistory history;
  for (const auto& thread : threads_) {
    reports.push_back(thread->stillness.look(thread->progress.report(), now));
    history.pieces += reports.back().pieces;
    history.longest = std::max(history.longest, reports.back().longest);
  }
  for (const link::ProgressReport& report : reports)
    if (scheduler::is_hung(report.phase, report.still, history)) return report.still;
  return std::nullopt;
}

void TurnWatch::end_if_hung(const char* process) {
  const auto still = hung(steady_now());
  if (!still) return;
  log::error(
      "event={}_hung pid={} still_s={:.1f} message=\"a handler makes no progress\" "
      "consequence=\"this process ends, and the next one takes its work up\"",
      process, ::getpid(), seconds(*still));
  std::raise(SIGKILL);  // an orderly end would wait for the handler
}

WatchedExecutor::WatchedExecutor(int threads, std::uint64_t seed)
    : watch(threads, [] { return node::cpu_wait(); }), executor(threads, seed, watch.on_turn()) {}

}  // namespace tandem::app
