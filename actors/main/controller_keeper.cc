#include "actors/main/controller_keeper.h"

#include <csignal>

#include "runtime/base/log.h"

namespace tandem::app {

Result<ControllerKeeper> ControllerKeeper::take(ClusterFolder cluster) {
  auto lock =
      FileLock::take(keeper_lock(cluster.path), "the controller of " + cluster.path.string(),
                     "that node keeps it already; start this one without "
                     "--keep-controller");
  if (!lock) return lock.error();
  ControllerKeeper keeper(std::move(cluster), *std::move(lock));
  if (auto known = keeper.adopt(); !known) return known.error();
  return keeper;
}

Result<void> ControllerKeeper::adopt() {
  const auto file = running_controller(cluster_.path);
  if (!file)
    return Error{ErrorCode::kUnreachable, "no controller is up", cluster_.path.string(),
                 "start one with `tandem up`"};
  if (file->arguments.empty())
    return Error{ErrorCode::kFailed, "the controller's file does not say how it was started",
                 (cluster_.path / "controller.json").string(), "`tandem down`, then `tandem up`"};
  words_ = file->arguments;
  pid_ = file->pid;
  end_.emplace(pid_);
  up_since_ = steady_now();
  return {};
}

void ControllerKeeper::end_hung() const {
  if (has_ended()) return;
  log::warn("event=controller_hung pid={} consequence=\"it is killed\"", pid_);
  end_->signal(SIGKILL);
  if (!end_->wait_until(steady_now() + kEndTimeout))
    log::error("event=controller_does_not_end pid={}", pid_);
}

// A controller that does not come up is killed: asked to end, it would cancel its jobs once it is
// up after all.
Result<ControllerKeeper::Start> ControllerKeeper::start(node::Signals& signals) {
  auto daemon = start_role(words_, cluster_.log_of("controller"));
  if (!daemon) return daemon.error();
  Start how = Start::kFailed;
  const auto heard = wait_until_up(*daemon, [&] {
    if (signals.wait_for(Duration::zero()) != 0) how = Start::kSignal;
    return how != Start::kSignal;
  });
  if (heard == node::Heard::kWord) how = Start::kUp;
  if (how != Start::kUp) {
    const node::ProcessEnd end(daemon->pid);
    end.signal(SIGKILL);
    end.wait_until(steady_now() + kEndTimeout);
    reap(*daemon);
    return how;
  }
  daemon_ = *std::move(daemon);
  if (auto known = adopt(); !known) return known.error();
  return how;
}

Result<bool> ControllerKeeper::bring_back(node::Signals& signals) {
  end_hung();
  if (daemon_) reap(*daemon_);
  daemon_.reset();
  bool was_up = true;
  for (;;) {
    if (running_controller(cluster_.path)) {  // a user has started one: `tandem up`
      if (auto known = adopt(); !known) return known.error();
      return true;
    }
    const Time died = steady_now();
    const auto next = budget_.died({.started = was_up ? up_since_ : died, .died = died}, rng_);
    const auto* restart = std::get_if<scheduler::Restart>(&next);
    if (!restart)
      return Error{ErrorCode::kFailed,
                   "the controller died " +
                       std::to_string(std::get<scheduler::Exhausted>(next).restarts + 1) +
                       " times in a short time and is not started again",
                   cluster_.log_of("controller").string(),
                   cluster_.of_run
                       ? "the lines above say why; `tandem run --resume RUN` goes on"
                       : "its log says why; `tandem up` starts it, and it takes its jobs up"};
    log::warn("event=controller_restarts n={} of={} in_s={:.1f}", restart->n, restart->max,
              seconds(restart->until - died));
    if (signals.wait_for(restart->until - died) != 0) return false;
    const auto started = start(signals);
    if (!started) return started.error();
    if (*started == Start::kSignal) return false;
    if (*started == Start::kUp) return true;
    was_up = false;
  }
}

}  // namespace tandem::app
