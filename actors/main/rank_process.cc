// A rank process in the order of its events: begin its session (actors/rank/rank_session.h), wait
// for StartRank on port "rank", build the role (RoleInstance), report RankReady or RankFailed, and
// serve. The main thread only waits for signals. Everything that ends the process, including a
// failed actor and a lost controller, goes through RankSession::end(), so that there is one way
// out.
//
// The order of the objects in run_rank() is the order of their destruction in reverse, and matters:
// engines and threads of the device outlive the actors that use them, and the I/O threads outlive
// the actors whose children and payloads they serve. RoleInstance's header has the details.
#include "actors/main/rank_process.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <utility>

#include "actors/job/load_job.h"
#include "actors/main/background.h"
#include "actors/main/own_build.h"
#include "actors/main/role_instance.h"
#include "actors/main/roles/registry.h"
#include "actors/messages/rank.h"
#include "actors/rank/rank_failure.h"
#include "actors/rank/rank_session.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/node/agent.h"
#include "runtime/node/cpu_wait.h"
#include "runtime/node/resources.h"

namespace tandem::app {

using actor::Delivery;
using messages::RankReady;
using messages::StartRank;

namespace {

constexpr Duration kMeetAgain = std::chrono::milliseconds(10);

std::int64_t threads_of(const job::JobSpec& job, const messages::Role& role) {
  const RoleEntry* entry = find_role(role);
  return entry ? entry->demands(job).threads : 1;
}

std::uint64_t resident_mib() { return node::resident_bytes(getpid()).value_or(0) >> 20; }

void log_start(const StartRank& start, const job::JobSpec& job) {
  const auto machine = node::read_machine_resources();
  log::info(
      "event=rank_started job={} actor={} incarnation={} rank={} ranks={} resume={} model=\"{}\" "
      "threads={} memory_mib={}",
      start.job, start.actor, start.incarnation.value, start.rank, start.ranks, start.resume,
      job.model.path.string(), threads_of(job, start.role),
      machine ? machine->memory_bytes >> 20 : 0);
}

// The actor behind port "rank": builds the role when StartRank arrives, and reports the result. Any
// error that prevents the role is reported as RankFailed. A later controller sends StartRank again:
// the role that is there meets its exchange.
class RankHost {
 public:
  using Inbox = std::variant<StartRank>;

  // `preemptible` is set before the role is ready.
  RankHost(RoleInstance& instance, actor::Ref<messages::RankEvents> controller,
           link::Progress& progress, std::atomic<bool>& preemptible)
      : instance_(instance),
        controller_(std::move(controller)),
        progress_(progress),
        preemptible_(preemptible) {}

  void handle(actor::Context& cx, StartRank start) {
    if (built_) {
      report(RankReady{start.actor, start.incarnation, start.rank, instance_.sandbox()});
      return meet_again(cx);
    }
    const Time began = steady_now();
    progress_.enter("load", began);
    const Result<void> started = start_role(start);
    progress_.enter("idle", steady_now());
    messages::RankEvents event =
        RankReady{start.actor, start.incarnation, start.rank, instance_.sandbox()};
    if (!started) {
      log::error("event=rank_failed message=\"{}\" where=\"{}\"", started.error().message,
                 started.error().where);
      event = rank::rank_failed({start.actor, start.incarnation, start.rank}, started.error());
    } else {
      log::info("event=rank_ready actor={} rank={} seconds={:.2f} resident_mib={}", start.actor,
                start.rank, seconds(steady_now() - began), resident_mib());
    }
    built_ = started.has_value();
    report(std::move(event));
    // begin() comes after the report: the conversation of a role with its exchange begins after
    // RankReady (actors/messages/rank.h).
    if (started) instance_.begin();
  }

 private:
  Result<void> start_role(const StartRank& start) {
    auto job = job::parse_job({.yaml = start.job_yaml,
                               .origin = "job.yaml",
                               .base = start.run_dir,
                               .set_base = start.run_dir,
                               .sets = {},
                               .files = job::Files::kUnchecked});
    if (!job) return rank::of_input(job.error());
    log_start(start, job->spec);
    preemptible_ = start.role == messages::Role::kRollout && job->spec.pools.rollout.preemptible;
    return instance_.build(start, job->spec, controller_);
  }

  void meet_again(actor::Context& cx) {
    if (!instance_.meet_again())
      cx.after(kMeetAgain, [this](actor::Context& later) { meet_again(later); });
  }
  // A report that a controller does not hear is made to the next one.
  void report(messages::RankEvents event) {
    if (controller_.tell(std::move(event)) != Delivery::kAccepted)
      log::warn("event=rank_report_lost");
  }

  RoleInstance& instance_;
  const actor::Ref<messages::RankEvents> controller_;
  link::Progress& progress_;  // the role's actor writes it once the role is built
  std::atomic<bool>& preemptible_;
  bool built_ = false;
};
static_assert(actor::Actor<RankHost>);

// Returns when the process is to end. Where an engine tells all processes of its hosts at once, the
// controller ends this one when its job has saved. One that may be preempted works on for a while
// after a SIGTERM from outside: the controller drains it, and has its agent end it.
void wait_for_end(rank::RankSession& session, const std::atomic<bool>& preemptible) {
  const bool together = std::getenv(kTogetherVariable) != nullptr;
  do session.wait();
  while (together && session.told_from_outside());
  if (!preemptible || !session.told_from_outside()) return;
  const node::RankId& id = session.words().id;
  log::warn("event=preempted actor={} consequence=\"it hands back its work and ends\"", id.actor);
  if (session.controller().tell(messages::RankPreempted{id.actor, id.incarnation, id.rank}) ==
      Delivery::kAccepted)
    session.wait_for(messages::kPreemptionGrace);
}

}  // namespace

std::vector<std::string> rank_arguments(const node::RankId& id) {
  std::vector<std::string> words = node::id_words(id);
  words.insert(words.begin(), kRankCommand);
  return words;
}

int run_rank(std::span<const char* const> arguments) {
  const std::vector<std::string> texts(arguments.begin(), arguments.end());
  auto words = rank::parse_rank_words(texts);
  if (!words) return exit_code(ErrorCode::kInvalid);
  link::Progress progress;
  link::Stillness stillness([] { return node::cpu_wait(); });
  EngineDevice device;
  auto begun = rank::RankSession::begin(
      std::move(*words), [&] { return stillness.look(progress.report(), steady_now()); }, {},
      own_build());
  if (!begun) return exit_code(begun.error().code);
  rank::RankSession& session = **begun;
  const node::RankId& id = session.words().id;
  link::IoThread bulk_io("bulk");
  // Two threads, so that orders for a broadcast are carried out while the role trains or generates.
  actor::ThreadedExecutor executor(2, id.incarnation.value);
  actor::System system(executor,
                       [&](const ActorId& who, const Error& why) { session.failed(who, why); });
  RoleInstance instance(system, session.directory(), bulk_io, session.words().network, device,
                        session.to_controller(), progress);
  std::atomic<bool> preemptible = false;
  const auto host = system.spawn<RankHost>("rank", [&] {
    return std::make_unique<RankHost>(instance, session.controller(), progress, preemptible);
  });
  session.directory().expose(rank::kRankInboxPort, actor::narrow<messages::RankInbox>(host));
  session.start();
  wait_for_end(session, preemptible);
  log::info("event=rank_ending why=\"{}\" exit_status={} resident_mib={}",
            session.exit_status() == 0 ? "told to end" : "it failed", session.exit_status(),
            resident_mib());
  // close() ends the process of a follower. For all others no handler runs after stop(), then
  // destroy() ends the payload socket that handlers use. The link is closed last, so that messages
  // which handlers have sent can still leave.
  instance.close(session.exit_status());
  executor.stop();
  instance.destroy();
  session.close();
  return session.exit_status();
}

}  // namespace tandem::app
