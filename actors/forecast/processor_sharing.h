// Processor cores that pieces of work share evenly: each piece that runs advances by
//   rate = min(1, cores / (threads that all workers with a piece want))
// seconds of its work per second. A worker is a process with as many threads as it uses while it
// has at least one piece; its pieces advance side by side. Pure; one thread.
//
// All pieces have one rate, so that each ends when the sum of rate · time since its beginning has
// reached its work. A change of the rate moves one sum, and no piece: every call costs O(log n).
//
//   HC-1  Work conservation: the threads that run advance by min(cores, threads wanted) core
//         seconds per second, as long as any piece runs.
//   HC-2  No loss: a piece ends when exactly its work has been done, to a nanosecond.
//   HC-3  Order independence: calls of one moment may come in any order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"

namespace tandem::forecast {

using WorkerId = Id<struct WorkerTag>;
using PieceId = Id<struct PieceTag>;

class ProcessorSharing {
 public:
  // `cores` 0: as many as are wanted, so that the rate is always 1.
  explicit ProcessorSharing(double cores);

  // The time of each call is not before that of the one before (CHECKed).
  WorkerId add_worker(double threads);
  // Returns the worker's pieces, which never end.
  std::vector<PieceId> remove_worker(Time now, WorkerId worker);

  // `work` is how long the piece takes at rate 1.
  PieceId begin(Time now, WorkerId worker, Duration work);
  // The piece has another amount of work, counted from its beginning.
  void resize(Time now, PieceId piece, Duration work);
  Duration done(Time now, PieceId piece) const;  // of its work

  // When the next piece ends if no call comes before; nullopt where none runs.
  std::optional<Time> next_end(Time now) const;
  // The pieces whose work is done are removed, and returned in the order of their ends.
  std::vector<PieceId> take_ended(Time now);

  double rate() const;
  std::size_t running() const { return pieces_.size(); }

 private:
  struct Worker {
    std::int64_t threads = 0;  // in millionths: sums do not depend on their order
    std::set<PieceId> pieces;
  };
  struct Piece {
    WorkerId worker;
    double begun = 0, end = 0;  // as served_
  };

  double served_at(Time now) const;
  void advance(Time now);
  void drop(PieceId piece);

  const double cores_;
  Time at_{};
  double served_ = 0;        // nanoseconds of work that a piece which has run all the time has had
  std::int64_t wanted_ = 0;  // threads, in millionths
  std::uint64_t last_worker_ = 0, last_piece_ = 0;
  std::map<WorkerId, Worker> workers_;
  std::map<PieceId, Piece> pieces_;
  std::set<std::pair<double, PieceId>> by_end_;
};

}  // namespace tandem::forecast
