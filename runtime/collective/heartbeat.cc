#include "runtime/collective/heartbeat.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace tandem::collective {
namespace {

// "61 s", "0.25 s"
std::string in_seconds(Duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds(time));
  return text;
}

Error hung(std::string what, Duration time, int rank, const std::string& awaited) {
  return {.code = ErrorCode::kTimedOut,
          .message = "rank 0 of the gang " + std::move(what) + " for " + in_seconds(time) +
                     " while rank " + std::to_string(rank) + " waited for " + awaited,
          .where = {},
          .help = {}};
}

}  // namespace

HeartbeatSender::HeartbeatSender(Duration every, std::function<Heartbeat()> report,
                                 std::vector<FrameWriter*> writers)
    : report_(std::move(report)),
      writers_(std::move(writers)),
      thread_([this, every] { run(every); }) {}

HeartbeatSender::~HeartbeatSender() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ending_changed_.notify_all();
  thread_.join();
}

void HeartbeatSender::run(Duration every) {
  std::unique_lock lock(mutex_);
  while (!ending_changed_.wait_for(lock, every, [this] { return ending_; })) {
    // mutex_ is held here. Only the destructor wants it besides, and joins this thread anyway.
    const Heartbeat heartbeat = report_();
    for (FrameWriter* writer : writers_) writer->beat(heartbeat);
  }
}

void RankZeroWatch::begin_call() { silent_ = unmoved_ = {}; }

void RankZeroWatch::heard(const Heartbeat& heartbeat) {
  heard();
  if (!newest_ || *newest_ != heartbeat) unmoved_ = {};
  newest_ = heartbeat;
}

void RankZeroWatch::listened(Duration time) {
  // A wait takes at most one pace (SocketSpoke::listen). A longer one means that this process was
  // stopped.
  time = std::min(time, limits_.heartbeat_every);
  silent_ += time;
  unmoved_ += time;
}

std::optional<Error> RankZeroWatch::verdict(int rank, const std::string& awaited) const {
  if (silent_ >= limits_.silence_max) return hung("has been silent", silent_, rank, awaited);
  // Silence is checked first: a rank 0 that is silent has told nothing about its phase.
  if (!newest_ || !limits_.stuck_max) return std::nullopt;
  const std::string phase(phase_of(*newest_));
  const std::optional<Duration> allowed = limits_.stuck_max(phase);
  if (!allowed || unmoved_ < *allowed) return std::nullopt;
  Error error = hung("has made no progress", unmoved_, rank, awaited);
  error.message += " (phase " + phase + ")";
  return error;
}

}  // namespace tandem::collective
