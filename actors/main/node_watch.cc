#include "actors/main/node_watch.h"

#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <utility>
#include <variant>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/rng.h"
#include "runtime/node/signals.h"
#include "scheduler/fleet/restart_budget.h"

namespace tandem::app {

namespace {

constexpr Duration kLookAtNode = std::chrono::milliseconds(100);
// As long as a controller waits for a node of its own host (NodeKeeper::kHungAfter).
constexpr Duration kNodeHungAfter = std::chrono::seconds(10);
constexpr int kSignalled = 128;  // and the signal's number: the exit code of a shell

struct NodeEnd {
  int status = 0;         // of waitpid()
  bool asked_to = false;  // this process was told to end
};

NodeEnd watch_child(node::WatchedChild& child, node::Signals& signals) {
  NodeEnd end;
  bool killed = false;
  for (;;) {
    if (const int signal = signals.wait_for(kLookAtNode); signal != 0) {
      end.asked_to = true;
      child.signal(signal);
    }
    if (const auto status = child.ended()) {
      end.status = *status;
      return end;
    }
    if (child.missed() < kNodeHungAfter / kLookAtNode || std::exchange(killed, true)) continue;
    log::warn("event=node_hung pid={} consequence=\"it is killed\"", child.pid());
    child.signal(SIGKILL);
  }
}

}  // namespace

int watch_node(const node::WatchedChild::Work& node, const cli::Console& console) {
  node::Signals signals({SIGINT, SIGTERM});
  init_logging("node_watch", LogLevel::kInfo);
  scheduler::RestartBudget budget({.intensity = 30,
                                   .backoff_first = std::chrono::milliseconds(100),
                                   .backoff_max = std::chrono::seconds(2),
                                   .healthy_after = std::chrono::seconds(2)});
  Rng rng(static_cast<std::uint64_t>(steady_now().ns));
  for (;;) {
    const Time started = steady_now();
    auto child = node::WatchedChild::start(node);
    if (!child) return console.complain(child.error());
    const NodeEnd end = watch_child(*child, signals);
    if (WIFEXITED(end.status)) return WEXITSTATUS(end.status);
    const int code = kSignalled + WTERMSIG(end.status);
    if (end.asked_to) return code;
    const auto next = budget.died({.started = started, .died = steady_now()}, rng);
    const auto* const restart = std::get_if<scheduler::Restart>(&next);
    log::warn("event=node_died signal={} consequence=\"{}\"", WTERMSIG(end.status),
              restart ? "it is started again" : "it has died too often");
    if (!restart) return code;
    if (signals.wait_for(restart->until - steady_now()) != 0) return code;
  }
}

}  // namespace tandem::app
