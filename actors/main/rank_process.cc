// A rank process in the order of its events: parse the arguments, arm the parent-death signal,
// start the link, wait for StartRank on port "rank", build the role (RoleHome), report RankReady or
// RankFailed, and serve. The main thread only waits for signals. Everything that ends the process,
// including a failed actor and a lost controller, goes through Signals::raise(), so that there is
// one way out.
//
// The order of the objects in run_rank() is the order of their destruction in reverse, and matters:
// engines and threads of the device outlive the actors that use them, and the I/O threads outlive
// the actors whose children and payloads they serve. RoleHome's header has the details.
#include "actors/main/rank_process.h"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <memory>
#include <utility>

#include "actors/main/job/load_job.h"
#include "actors/main/rank_failure.h"
#include "actors/main/rank_roles.h"
#include "actors/main/signals.h"
#include "actors/messages/rank.h"
#include "actors/messages/wire_build.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/net/link.h"
#include "runtime/net/remote.h"
#include "runtime/node/memory_kills.h"
#include "runtime/node/process_host.h"
#include "runtime/node/resources.h"

namespace tandem::cli {

using actors::RankReady;
using actors::StartRank;
using runtime::Delivery;

namespace {

struct Arguments {
  runtime::RankId id;
  RankNetwork network;
  std::int64_t parent = 0;
};

template <class Number>
bool parse(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<Arguments> parse_arguments(std::span<const char* const> words) {
  Arguments arguments;
  // Three words of rank_arguments(), three places, and the pid of the agent.
  if (words.size() != 7) return std::nullopt;
  arguments.id.actor = words[0];
  const auto endpoint = runtime::parse_endpoint(words[3]);
  if (!parse(words[1], arguments.id.incarnation.value) || !parse(words[2], arguments.id.rank) ||
      !endpoint || !parse(words[6], arguments.parent))
    return std::nullopt;
  arguments.network = {
      .controller = {*endpoint, std::nullopt}, .bind = words[4], .advertise = words[5]};
  // A Unix socket needs no keys: its folder is private to the user.
  if (endpoint->is_local()) return arguments;
  auto keys = runtime::parse_curve_client(runtime::inherited_secret());
  if (!keys) return std::nullopt;
  arguments.network.controller.keys = std::move(*keys);
  return arguments;
}

std::int64_t threads_of(const JobSpec& job, actors::Role role) {
  switch (role) {
    case actors::Role::kRollout:
      return job.pools.rollout.threads_per_actor;
    case actors::Role::kLearner:
      return job.pools.learner.threads_per_actor;
    case actors::Role::kReward:
      return 1;
  }
  CHECK(false);
}

std::uint64_t resident_mib() { return runtime::resident_bytes(getpid()).value_or(0) >> 20; }

void log_start(const StartRank& start, const JobSpec& job) {
  const auto machine = runtime::read_machine_resources();
  log::info(
      "event=rank_started job={} actor={} incarnation={} rank={} ranks={} resume={} model=\"{}\" "
      "threads={} memory_mib={}",
      start.job, start.actor, start.incarnation.value, start.rank, start.ranks, start.resume,
      job.model.path.string(), threads_of(job, start.role),
      machine ? machine->memory_bytes >> 20 : 0);
}

// The actor behind port "rank": builds the role when StartRank arrives, and reports the result. Any
// error that prevents the role is reported as RankFailed.
class RankHost {
 public:
  using Inbox = std::variant<StartRank>;

  RankHost(RoleHome& home, runtime::Ref<actors::RankEvents> controller)
      : home_(home), controller_(std::move(controller)) {}

  void handle(runtime::Context&, StartRank start) {
    const Time began = steady_now();
    const Result<void> started = start_role(start);
    actors::RankEvents event = RankReady{start.actor, start.incarnation, start.rank};
    if (!started) {
      log::error("event=rank_failed message=\"{}\" where=\"{}\"", started.error().message,
                 started.error().where);
      event = rank_failed({start.actor, start.incarnation, start.rank}, started.error());
    } else {
      log::info("event=rank_ready actor={} rank={} seconds={:.2f} resident_mib={}", start.actor,
                start.rank, seconds(steady_now() - began), resident_mib());
    }
    if (controller_.tell(std::move(event)) != Delivery::kAccepted)
      log::warn("event=rank_report_lost actor={}", start.actor);
    // After the report: the conversation of a role with its exchange begins after RankReady
    // (actors/messages/rank.h).
    if (started) home_.begin();
  }

 private:
  Result<void> start_role(const StartRank& start) {
    auto job = parse_job({.yaml = start.job_yaml,
                          .origin = "job.yaml",
                          .base = start.run_dir,
                          .set_base = start.run_dir,
                          .sets = {},
                          .files = Files::kUnchecked});
    if (!job) return of_input(job.error());
    log_start(start, job->spec);
    return home_.build(start, job->spec, controller_);
  }

  RoleHome& home_;
  const runtime::Ref<actors::RankEvents> controller_;
};
static_assert(runtime::Actor<RankHost>);

}  // namespace

std::string rollout_port(const std::string& job) { return actors::exchange_name(job) + "/rollout"; }
std::string learner_port(const std::string& job) { return actors::exchange_name(job) + "/learner"; }
std::string reward_port(const std::string& job) { return actors::exchange_name(job) + "/reward"; }
std::string broadcast_port(const std::string& job) {
  return actors::exchange_name(job) + "/broadcast";
}

std::vector<std::string> rank_arguments(const runtime::RankId& id) {
  return {kRankCommand, id.actor, std::to_string(id.incarnation.value), std::to_string(id.rank)};
}

int run_rank(std::span<const char* const> words) {
  const auto arguments = parse_arguments(words);
  if (!arguments) return exit_code(ErrorCode::kInvalid);
  if (!runtime::arm_parent_death_signal(static_cast<pid_t>(arguments->parent))) return 1;
  runtime::die_first_for_memory();
  Signals signals({SIGTERM, SIGINT});
  const std::string name = actors::rank_name(arguments->id.actor, arguments->id.rank);
  init_logging(name + "#" + std::to_string(arguments->id.incarnation.value), LogLevel::kInfo);

  runtime::Progress progress;
  EngineDevice device;
  runtime::Directory directory;
  runtime::IoThread io("link"), bulk_io("bulk");
  // Two threads, so that orders for a broadcast are carried out while the role trains or generates.
  runtime::ThreadedExecutor executor(2, arguments->id.incarnation.value);
  std::atomic<int> exit_status = 0;
  runtime::LinkClient* link_pointer = nullptr;
  const runtime::ParcelSender to_controller = [&](std::string frame) {
    return link_pointer->send(std::move(frame));
  };
  runtime::System system(executor, [&](const runtime::Address& who, const Error& why) {
    log::error("event=actor_failed actor={} message=\"{}\"", who.name, why.message);
    // The process ends whether or not this message arrives; without it the controller knows no more
    // than the exit code.
    (void)directory.remote<actors::RankEvents>({kRankEventsPort, {}}, to_controller)
        .tell(rank_failed_at_work(arguments->id, why));
    exit_status = 1;
    signals.raise();
  });
  RoleHome home(system, directory, bulk_io, arguments->network, device, to_controller, progress);
  const auto host = system.spawn<RankHost>("rank", [&] {
    auto controller = directory.remote<actors::RankEvents>({kRankEventsPort, {}}, to_controller);
    return std::make_unique<RankHost>(home, std::move(controller));
  });

  directory.expose(kRankPort, runtime::narrow<actors::RankInbox>(host));

  runtime::LinkOptions options;
  options.progress = [&] { return progress.report(); };
  runtime::LinkCallbacks callbacks;
  callbacks.on_parcel = [&](const runtime::PeerId&, std::string& frame) {
    return directory.deliver(frame, to_controller);
  };
  callbacks.on_up = [](const runtime::PeerId&, const runtime::Hello&) {};
  callbacks.on_down = [&](const runtime::PeerId&, const runtime::Down& down) {
    // Nobody waits for the work of a rank without its controller; its payloads have no receiver.
    log::error("event=controller_lost reason={}", runtime::name(down.reason));
    exit_status = 1;
    signals.raise();
  };
  {
    runtime::LinkClient link(io, arguments->network.controller,
                             {.name = name,
                              .incarnation = arguments->id.incarnation,
                              .rank = arguments->id.rank,
                              .pid = 0,
                              .build = actors::wire_build(),
                              .opaque = arguments->id.actor},
                             options, callbacks);
    link_pointer = &link;
    link.start();
    signals.wait();
    log::info("event=rank_ending why=\"{}\" exit_status={} resident_mib={}",
              exit_status == 0 ? "told to end" : "it failed", exit_status.load(), resident_mib());
    // close() ends the process of a follower. For all others no handler runs after stop(), then
    // destroy() ends the payload socket that handlers use. The link is closed last, so that
    // messages which handlers have sent can still leave.
    home.close(exit_status);
    executor.stop();
    home.destroy();
    link.close(std::chrono::milliseconds(200));
  }
  return exit_status;
}

}  // namespace tandem::cli
