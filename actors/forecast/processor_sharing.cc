// `served_` is in double nanoseconds: at rate 1 it is exact for a hundred days of virtual time. It
// begins anew whenever no piece runs.
#include "actors/forecast/processor_sharing.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"

namespace tandem::forecast {
namespace {

constexpr double kMillionth = 1e-6;
constexpr double kNear_ns = 0.5;  // a piece with less work left has ended: times are whole ns

}  // namespace

ProcessorSharing::ProcessorSharing(double cores) : cores_(cores) { CHECK(cores >= 0); }

double ProcessorSharing::rate() const {
  const double wanted = kMillionth * static_cast<double>(wanted_);
  return cores_ > 0 && wanted > cores_ ? cores_ / wanted : 1;
}

double ProcessorSharing::served_at(Time now) const {
  return served_ + rate() * static_cast<double>((now - at_).count());
}

void ProcessorSharing::advance(Time now) {
  CHECK(now >= at_);
  served_ = pieces_.empty() ? 0 : served_at(now);
  at_ = now;
}

WorkerId ProcessorSharing::add_worker(double threads) {
  CHECK(threads >= 0);
  const WorkerId worker{++last_worker_};
  workers_[worker].threads = std::llround(threads / kMillionth);
  return worker;
}

std::vector<PieceId> ProcessorSharing::remove_worker(Time now, WorkerId worker) {
  advance(now);
  const std::set<PieceId>& held = workers_.at(worker).pieces;
  const std::vector<PieceId> pieces(held.begin(), held.end());
  for (const PieceId piece : pieces) drop(piece);
  workers_.erase(worker);
  return pieces;
}

PieceId ProcessorSharing::begin(Time now, WorkerId worker, Duration work) {
  CHECK(work >= Duration::zero());
  advance(now);
  const PieceId piece{++last_piece_};
  Worker& by = workers_.at(worker);
  if (by.pieces.empty()) wanted_ += by.threads;
  by.pieces.insert(piece);
  const double end = served_ + static_cast<double>(work.count());
  pieces_[piece] = {.worker = worker, .begun = served_, .end = end};
  by_end_.emplace(end, piece);
  return piece;
}

void ProcessorSharing::resize(Time now, PieceId piece, Duration work) {
  CHECK(work >= Duration::zero());
  advance(now);
  Piece& of = pieces_.at(piece);
  by_end_.erase({of.end, piece});
  of.end = of.begun + static_cast<double>(work.count());
  by_end_.emplace(of.end, piece);
}

Duration ProcessorSharing::done(Time now, PieceId piece) const {
  CHECK(now >= at_);
  const Piece& of = pieces_.at(piece);
  return Duration(std::llround(std::min(served_at(now), of.end) - of.begun));
}

std::optional<Time> ProcessorSharing::next_end(Time now) const {
  CHECK(now >= at_);
  if (by_end_.empty()) return std::nullopt;
  const double left = std::max(0.0, by_end_.begin()->first - served_at(now));
  return now + Duration(static_cast<std::int64_t>(std::ceil((left - kNear_ns / 2) / rate())));
}

std::vector<PieceId> ProcessorSharing::take_ended(Time now) {
  advance(now);
  std::vector<PieceId> ended;
  while (!by_end_.empty() && by_end_.begin()->first - served_ < kNear_ns) {
    ended.push_back(by_end_.begin()->second);
    drop(ended.back());
  }
  return ended;
}

void ProcessorSharing::drop(PieceId piece) {
  const auto node = pieces_.extract(piece);
  by_end_.erase({node.mapped().end, piece});
  Worker& by = workers_.at(node.mapped().worker);
  by.pieces.erase(piece);
  if (by.pieces.empty()) wanted_ -= by.threads;
}

}  // namespace tandem::forecast
