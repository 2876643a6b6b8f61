// The processor cores that a fleet on one machine shares, as actors of a forecast use them: work
// takes as long as processor_sharing.h says. Fleets with devices of their own have cores 0, and all
// work takes its own time. Used by the one thread of the simulated executor.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "actors/forecast/processor_sharing.h"
#include "runtime/actor/context.h"
#include "runtime/actor/executor.h"

namespace tandem::forecast {

Duration duration_of(double s);  // to the nearest nanosecond

class HostLoad {
 public:
  HostLoad(actor::Executor& executor, double cores) : executor_(executor), sharing_(cores) {}

  // The actor uses so many threads while it has work. Until leave(), which the actor's end needs.
  WorkerId join(actor::Context& cx, double threads);
  void leave(WorkerId worker);

  // `then` runs in the actor's turn when `work_s` seconds of work have been done.
  PieceId begin(WorkerId worker, double work_s, actor::Turn then);
  void resize(PieceId piece, double work_s);  // counted from its beginning
  double done_s(PieceId piece) const { return seconds(sharing_.done(executor_.now(), piece)); }

 private:
  using Poster = std::function<void(actor::Turn)>;
  struct Wait {
    WorkerId worker;
    actor::Turn then;
  };

  void set_timer();
  void fire();

  actor::Executor& executor_;
  ProcessorSharing sharing_;
  std::map<WorkerId, Poster> posters_;
  std::map<PieceId, Wait> waits_;
  struct Timer {
    Time at;
    actor::TimerId id;
  };
  std::optional<Timer> timer_;  // for the piece that ends next
};

}  // namespace tandem::forecast
