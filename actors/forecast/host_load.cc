#include "actors/forecast/host_load.h"

#include <cmath>
#include <utility>

namespace tandem::forecast {

Duration duration_of(double s) { return Duration(std::llround(s * 1e9)); }

WorkerId HostLoad::join(actor::Context& cx, double threads) {
  const WorkerId worker = sharing_.add_worker(threads);
  posters_[worker] = cx.turn_poster();
  return worker;
}

void HostLoad::leave(WorkerId worker) {
  if (posters_.erase(worker) == 0) return;
  for (const PieceId piece : sharing_.remove_worker(executor_.now(), worker)) waits_.erase(piece);
  set_timer();
}

PieceId HostLoad::begin(WorkerId worker, double work_s, actor::Turn then) {
  const PieceId piece = sharing_.begin(executor_.now(), worker, duration_of(work_s));
  waits_[piece] = {.worker = worker, .then = std::move(then)};
  set_timer();
  return piece;
}

void HostLoad::resize(PieceId piece, double work_s) {
  sharing_.resize(executor_.now(), piece, duration_of(work_s));
  set_timer();
}

void HostLoad::set_timer() {
  const auto end = sharing_.next_end(executor_.now());
  if (end && timer_ && timer_->at == *end) return;
  if (timer_) executor_.cancel(timer_->id);
  timer_.reset();
  if (end) timer_ = Timer{.at = *end, .id = executor_.at(*end, [this] { fire(); })};
}

void HostLoad::fire() {
  timer_.reset();
  for (const PieceId piece : sharing_.take_ended(executor_.now())) {
    const auto wait = waits_.extract(piece);
    posters_.at(wait.mapped().worker)(std::move(wait.mapped().then));
  }
  set_timer();
}

}  // namespace tandem::forecast
