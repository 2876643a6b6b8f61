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

constexpr const char* kTurn = "turn";
constexpr unsigned kLogPatienceS = 10;

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
  using Step = actor::ThreadedExecutor::Step;
  return [this](int thread, Step step) {
    link::Progress& progress = threads_[static_cast<std::size_t>(thread)]->progress;
    progress_of_thread = &progress;
    const Time now = steady_now();
    if (step == Step::kHandled)
      progress.beat(now);
    else
      progress.enter(step == Step::kBegins ? kTurn : "idle", now);
  };
}

TurnWatch::Reading::Reading() {
  if (progress_of_thread) progress_of_thread->enter("load", steady_now());
}

TurnWatch::Reading::~Reading() {
  if (progress_of_thread) progress_of_thread->enter(kTurn, steady_now());
}

// Handlers are measured by the longest one of all threads. A reading is not measured by those
// before it, since each reads something else.
std::optional<Duration> TurnWatch::hung(Time now) {
  std::vector<link::ProgressReport> reports;
  scheduler::PhaseHistory turns;
  for (const auto& thread : threads_) {
    reports.push_back(thread->stillness.look(thread->progress.report(), now));
    if (reports.back().phase != kTurn) continue;
    turns.pieces += reports.back().pieces;
    turns.longest = std::max(turns.longest, reports.back().longest);
  }
  for (const link::ProgressReport& report : reports) {
    const auto history = report.phase == kTurn ? turns : scheduler::PhaseHistory{};
    if (scheduler::is_hung(report.phase, report.still, history)) return report.still;
  }
  return std::nullopt;
}

// An orderly end would wait for the handler. The log may be on the disk that the handler waits for.
void TurnWatch::end_if_hung(const char* process) {
  const auto still = hung(steady_now());
  if (!still) return;
  ::alarm(kLogPatienceS);
  log::error(
      "event={}_handler_hung pid={} still_s={:.1f} consequence=\"this process ends, and the next "
      "one takes its work up\"",
      process, ::getpid(), seconds(*still));
  std::raise(SIGKILL);
}

WatchedExecutor::WatchedExecutor(int threads, std::uint64_t seed)
    : watch(threads, [] { return node::cpu_wait(); }), executor(threads, seed, watch.on_turn()) {}

}  // namespace tandem::app
