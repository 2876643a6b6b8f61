#include "tests/actors/controller/simulated_rank.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "actors/learner/learner_actor.h"
#include "actors/rank/rank_failure.h"
#include "actors/reward/reward_actor.h"
#include "actors/rollout/rollout_actor.h"
#include "runtime/actor/system.h"
#include "runtime/base/json.h"
#include "runtime/base/rng.h"
#include "runtime/link/remote.h"
#include "scheduler/fleet/hang_timeout.h"
#include "tests/actors/controller/process_executor.h"
#include "tests/actors/controller/simulated_broadcast.h"

namespace tandem::controller {

using actor::Delivery;

namespace {

constexpr int kSubscriberCalls = 3;  // progress() calls that a copy takes

Duration draw(actor::SimulatedExecutor& executor, Duration max) {
  return Duration(executor.rng().below(static_cast<std::uint64_t>(max.count()) + 1));
}

// A simulated process, shared by its closures. Once `alive` is false nothing of it reaches anybody.
struct Process {
  explicit Process(const RankDependencies& given) : dependencies(given), executor(given.executor) {}
  const RankDependencies dependencies;
  ProcessExecutor executor;
  node::RankId id;
  ActorId peer;
  std::shared_ptr<SimulatedRun> run;
  link::Directory directory;
  std::unique_ptr<actor::System> system;
  actor::Ref<SimulatedBroadcast::Inbox> broadcast;  // in a job with broadcasts
  bool alive = true;
  bool linked = false;
  std::uint64_t link_changes = 0;
  int hangs = 0;              // the actors do nothing while the links live
  bool engine_hangs = false;  // the same, by a prompt and for ever

  // The way to the controller's process.
  static link::ParcelSender out(const std::weak_ptr<Process>& self) {
    return [self](std::string frame) {
      const auto process = self.lock();
      if (!process || !process->alive) return link::Sent::kGone;
      return process->dependencies.network.to_server(process->peer, std::move(frame));
    };
  }
  template <class Inbox>
  actor::Ref<Inbox> remote(const std::string& port, const std::weak_ptr<Process>& self) {
    return directory.remote<Inbox>({port, {}}, out(self));
  }
};
using SharedProcess = std::shared_ptr<Process>;

// The payloads' way to the store and back: it takes time, and may fail.
template <class Work, class Done>
void carry(const std::weak_ptr<Process>& weak, Work work, Done done) {
  const SharedProcess process = weak.lock();
  auto& simulation = process->dependencies.executor;
  auto& executor = process->executor;
  const bool fails = simulation.rng().unit() < process->run->job.payload_fails;
  executor.at(executor.now() + draw(simulation, process->run->job.payload_max),
              [weak, fails, work = std::move(work), done = std::move(done)] {
                const SharedProcess then = weak.lock();
                if (!then || !then->alive) return;
                if (fails) return done(Error{ErrorCode::kFailed, "the payload socket is gone"});
                done(work(*then->run));
              });
}

payload::PayloadWriter writer_of(const std::weak_ptr<Process>& process) {
  return [process](std::vector<std::string> payloads, payload::WriteDone done) {
    carry(
        process,
        [payloads = std::move(payloads)](SimulatedRun& run) {
          std::vector<wire::PayloadRef> refs;
          for (const std::string& payload : payloads)
            refs.push_back(run.payload_store.put(payload));
          return Result<std::vector<wire::PayloadRef>>(std::move(refs));
        },
        std::move(done));
  };
}

payload::PayloadReader reader_of(const std::weak_ptr<Process>& process) {
  return [process](std::vector<wire::PayloadRef> refs, payload::ReadDone done) {
    carry(
        process,
        [refs = std::move(refs)](SimulatedRun& run) -> Result<std::vector<std::string>> {
          std::vector<std::string> payloads;
          for (const wire::PayloadRef& ref : refs) {
            auto payload = run.payload_store.read(ref);
            if (!payload) return payload.error();
            payloads.push_back(std::move(*payload));
          }
          return payloads;
        },
        std::move(done));
  };
}

// A score follows from the completion's text alone.
class TextVerifier final : public reward::Verifier {
 public:
  explicit TextVerifier(const SimulatedScorer& scorer) : scorer_(scorer) {}
  void score(actor::Context& cx, reward::ScoreItem item, Done done) override {
    Rng rng(derive_seed(0, item.completion));
    const std::uint64_t value = rng.below(scorer_.values);
    messages::TrajectoryScore score = messages::Scored{static_cast<double>(value)};
    if (scorer_.says_more)
      score = messages::Scored{static_cast<double>(value), value,
                               "{\"part\": " + std::to_string(value) + "}"};
    if (rng.unit() < scorer_.fails)
      score = messages::ScoreFailed{"the simulated scorer cannot judge it"};
    const auto max = static_cast<std::uint64_t>(scorer_.score_max.count());
    cx.after(Duration(cx.rng().below(max + 1)), [done = std::move(done), score = std::move(score)](
                                                    actor::Context& then) { done(then, score); });
  }

 private:
  const SimulatedScorer scorer_;
};

class SimulatedSubscriber final : public rollout::FakeWeightSubscriber {
 public:
  SimulatedSubscriber(std::shared_ptr<SimulatedRun> run, ActorId self)
      : rollout::FakeWeightSubscriber(run->weights.board, kSubscriberCalls),
        run_(std::move(run)),
        epochs_(run_->epochs),
        self_(std::move(self)) {}
  void expect(PolicyVersion version, std::uint64_t checksum,
              const wire::BroadcastPlace& place) override {
    epochs_->check(self_, version, place);
    const auto content = run_->weights.contents.find(version);
    if (content != run_->weights.contents.end() && content->second != checksum)
      epochs_->wrong.push_back(self_.name + " is told another checksum");
  }

 private:
  const std::shared_ptr<SimulatedRun> run_;
  // Those of the exchange that started this process, which may wake up beside the next one's.
  const std::shared_ptr<SimulatedEpochs> epochs_;
  const ActorId self_;
};

// A role, or its part in broadcasts: how it begins, and how it meets an exchange that follows
// another one.
struct Built {
  std::function<void()> begin;
  std::function<void()> meet_again;  // a role that has failed hears nothing, and its process ends
};

// The turn that is under way goes on to its end.
void hang(const std::weak_ptr<Process>& weak) {
  const SharedProcess process = weak.lock();
  process->executor.stop();
  process->engine_hangs = true;
}

// The rank's part in broadcasts; nothing in a job without them.
Built build_broadcast(const SharedProcess& process, const messages::StartRank& start) {
  if (!process->run->job.broadcasts) return {[] {}, [] {}};
  const auto exchange = process->remote<messages::BroadcastEvents>(
      messages::exchange_port<messages::BroadcastPeer>(start.job), process);
  const auto wake = [weak = std::weak_ptr(process)](std::uint64_t epoch) {
    const SharedProcess then = weak.lock();
    if (then && then->alive) (void)then->broadcast.tell(SimulatedBroadcast::AllThere{epoch});
  };
  const ActorId name{start.actor, start.incarnation};
  process->broadcast =
      process->system->spawn<SimulatedBroadcast>("broadcast", [=, run = process->run] {
        return std::make_unique<SimulatedBroadcast>(name, *run->job.broadcasts, run->epochs,
                                                    exchange, wake);
      });
  process->directory.expose(messages::kBroadcastPort,
                            actor::narrow<messages::BroadcastInbox>(process->broadcast));
  return {[self = process->broadcast] {
            CHECK(self.tell(SimulatedBroadcast::Begin{}) == Delivery::kAccepted);
          },
          [self = process->broadcast] { (void)self.tell(SimulatedBroadcast::MeetAgain{}); }};
}

Built build_rollout(const SharedProcess& process, const messages::StartRank& start) {
  const SimulatedJob& job = process->run->job;
  const rollout::RolloutConfig config{
      .self = {start.actor, start.incarnation},
      .group_size = job.exchange.n,
      .capacity = job.rollout_capacity,
      .max_num_seqs = static_cast<std::int32_t>(job.engine.engine.args.max_num_seqs)};
  rollout::RolloutActor::Connections connections{
      .exchange = process->remote<messages::RolloutEvents>(
          messages::exchange_port<messages::RolloutPeer>(start.job), process),
      .write = writer_of(process)};
  const std::weak_ptr<Process> weak = process;
  const auto role = process->system->spawn<rollout::RolloutActor>("role", [=, run = process->run] {
    rollout::FakeEngineConfig engine = run->job.engine;
    if (run->job.prompts_unservable > 0) engine.unservable_prompt = kUnservablePrompt;
    if (run->job.deadly_position || run->job.deadly_validation)
      engine.failing_prompt = kDeadlyPrompt;
    if (run->job.deadly_hangs) engine.hang = [weak] { hang(weak); };
    return std::make_unique<rollout::RolloutActor>(
        config, std::make_unique<rollout::FakeEngine>(engine),
        std::make_unique<SimulatedSubscriber>(run, config.self), connections);
  });
  process->directory.expose(messages::kRolePort, actor::narrow<messages::RolloutInbox>(role));
  const Built broadcast = build_broadcast(process, start);
  return {[role, broadcast] {
            broadcast.begin();
            CHECK(role.tell(rollout::StartRollout{
                      actor::narrow<std::variant<rollout::Step>>(role)}) == Delivery::kAccepted);
          },
          [role, broadcast] {
            broadcast.meet_again();
            (void)role.tell(rollout::MeetAgain{});
          }};
}

Built build_learner(const SharedProcess& process, const messages::StartRank& start) {
  if (start.rank > 0) return {[] {}, [] {}};
  const auto exchange = process->remote<messages::LearnerEvents>(
      messages::exchange_port<messages::LearnerPeer>(start.job), process);
  const learner::LearnerActorConfig config{.self = {start.actor, start.incarnation}};
  const auto role = process->system->spawn<learner::LearnerActor>(
      "role",
      [=, run = process->run, node = process->dependencies.node, read = reader_of(process)] {
        learner::FakeTrainerConfig trainer = run->job.trainer;
        if (run->job.exchange.fixed_lag)
          trainer.older_versions = run->job.exchange.budget.max_staleness;
        return std::make_unique<learner::LearnerActor>(
            config, std::make_unique<learner::FakeTrainer>(trainer, run->checkpoints),
            make_publisher(run, node, start.incarnation), read, exchange);
      });
  process->directory.expose(messages::kRolePort, actor::narrow<messages::LearnerInbox>(role));
  process->run->epochs->in_use.reset();  // an earlier incarnation's
  const Built broadcast = build_broadcast(process, start);
  return {[role, broadcast] {
            broadcast.begin();
            CHECK(role.tell(learner::MeetExchange{}) == Delivery::kAccepted);
          },
          [role, broadcast] {
            broadcast.meet_again();
            (void)role.tell(learner::MeetAgain{});
          }};
}

Built build_reward(const SharedProcess& process, const messages::StartRank& start) {
  const reward::RewardConfig config{.self = {start.actor, start.incarnation},
                                    .capacity = process->run->job.scorer.capacity};
  reward::RewardActor::Connections connections{
      .exchange = process->remote<messages::RewardEvents>(
          messages::exchange_port<messages::RewardPeer>(start.job), process),
      .read = reader_of(process)};
  const auto role = process->system->spawn<reward::RewardActor>("role", [=, run = process->run] {
    return std::make_unique<reward::RewardActor>(
        config, std::make_unique<TextVerifier>(run->job.scorer), connections);
  });
  process->directory.expose(messages::kRolePort, actor::narrow<messages::RewardInbox>(role));
  return {[role] { CHECK(role.tell(reward::StartReward{}) == Delivery::kAccepted); },
          [role] { (void)role.tell(reward::MeetAgain{}); }};
}

class RankHost {
 public:
  using Inbox = std::variant<messages::StartRank>;
  RankHost(std::weak_ptr<Process> process, actor::Ref<messages::RankEvents> controller)
      : process_(std::move(process)), controller_(std::move(controller)) {}

  void handle(actor::Context& cx, messages::StartRank start) {
    const SharedProcess process = process_.lock();
    // A real one tells this as soon as it has a link.
    if (start.ranks > 1 && start.rank == 0)
      report(messages::RankListening{start.actor, start.incarnation, "tcp://simulated:1"});
    CHECK(start.rank == 0 || !start.gang_endpoint.empty());
    if (std::exchange(starting_, true)) {
      if (!role_)
        meets_again_ = true;  // it is loading, and handles this afterwards
      else
        meet_again(start);
      return;
    }
    CHECK(process && start.actor == process->id.actor &&
          start.incarnation == process->id.incarnation);
    process->run = process->dependencies.run_of(start.job);
    const auto load_max = static_cast<std::uint64_t>(process->run->job.load_max.count());
    cx.after(Duration(cx.rng().below(load_max + 1)),
             [this, start](actor::Context&) { begin(start); });
  }

 private:
  void begin(const messages::StartRank& start) {
    const SharedProcess process = process_.lock();
    static const std::map<messages::Role, decltype(&build_rollout)> kBuild{
        {messages::Role::kRollout, build_rollout},
        {messages::Role::kLearner, build_learner},
        {messages::Role::kReward, build_reward}};
    role_ = kBuild.at(start.role)(process, start);
    report(messages::RankReady{start.actor, start.incarnation, start.rank});
    role_->begin();
    if (meets_again_) meet_again(start);
  }
  void meet_again(const messages::StartRank& start) {
    report(messages::RankReady{start.actor, start.incarnation, start.rank});
    role_->meet_again();
  }
  void report(messages::RankEvents event) { (void)controller_.tell(std::move(event)); }

  const std::weak_ptr<Process> process_;
  const actor::Ref<messages::RankEvents> controller_;
  bool starting_ = false, meets_again_ = false;
  std::optional<Built> role_;
};
static_assert(actor::Actor<RankHost>);

class ProgramHost {
 public:
  using Inbox = messages::ProgramInbox;
  ProgramHost(actor::Ref<messages::RankEvents> controller, ExitSelf exit)
      : controller_(std::move(controller)), exit_(std::move(exit)) {}

  void handle(actor::Context&, messages::StartActor start) {
    (void)controller_.tell(messages::RankReady{start.actor, start.incarnation, 0});
  }
  void handle(actor::Context&, actor::Ask<messages::AskJson> ask) {
    const nlohmann::json question = parse_json(ask.question.body);
    if (question.contains("end")) return exit_(question["end"].get<int>());
    sum_ += question.value("add", 0);
    ask.reply(messages::AskedJson{std::to_string(sum_)});
  }
  void handle(actor::Context&, messages::DrainProgram) { exit_(0); }

 private:
  const actor::Ref<messages::RankEvents> controller_;
  const ExitSelf exit_;
  int sum_ = 0;
};
static_assert(actor::Actor<ProgramHost>);

class RankProcess final : public SimulatedProcess {
 public:
  enum class Of { kOurs, kUsers };
  RankProcess(const RankDependencies& dependencies, const node::RankId& id, Of of, ExitSelf exit)
      : process_(std::make_shared<Process>(dependencies)), exit_(std::move(exit)) {
    process_->id = id;
    process_->peer = {messages::rank_name(id.actor, id.rank), id.incarnation};
    const std::weak_ptr<Process> weak = process_;
    const auto controller =
        process_->remote<messages::RankEvents>(rank::kControllerRanksPort, weak);
    process_->system = std::make_unique<actor::System>(
        process_->executor, [exit = exit_, id, controller](const ActorId&, const Error& why) {
          (void)controller.tell(rank::rank_failed_at_work(id, why));
          exit(1);
        });
    if (of == Of::kOurs)
      process_->directory.expose(rank::kRankInboxPort,
                                 actor::narrow<messages::RankInbox>(
                                     process_->system->spawn<RankHost>("rank", [weak, controller] {
                                       return std::make_unique<RankHost>(weak, controller);
                                     })));
    else
      process_->directory.expose(
          rank::kRankInboxPort,
          process_->system->spawn<ProgramHost>("rank", [controller, exit = exit_] {
            return std::make_unique<ProgramHost>(controller, exit);
          }));
    dial(of);
  }

  ~RankProcess() override {
    process_->alive = false;
    process_->dependencies.network.cut(process_->peer);
    process_->system.reset();
  }

  void stop(Stop what) override {
    process_->executor.stop();
    if (what == Stop::kAll)
      process_->dependencies.network.stop(process_->peer);
    else
      ++process_->hangs;
  }
  void go_on(Stop what) override {
    process_->executor.go_on();
    if (what == Stop::kAll)
      process_->dependencies.network.go_on(process_->peer);
    else
      --process_->hangs;
  }
  void jump_clock(Duration forward) override { process_->executor.jump(forward); }

 private:
  // It ends where its link has not changed by the end of the grace.
  static void end_alone(const SharedProcess& process, std::uint64_t changes, const ExitSelf& exit) {
    const Duration grace = process->dependencies.network.conditions().grace;
    process->executor.at(process->executor.now() + grace,
                         [weak = std::weak_ptr(process), exit, changes] {
                           const SharedProcess then = weak.lock();
                           if (then && !then->linked && then->link_changes == changes) exit(1);
                         });
  }

  void dial(Of of) {
    end_alone(process_, 0, exit_);  // where it is never heard
    const std::weak_ptr<Process> weak = process_;
    link::LinkCallbacks callbacks;
    callbacks.on_up = [weak](const ActorId&, const link::Hello&) {
      const SharedProcess process = weak.lock();
      if (!process) return;
      process->linked = true;
      ++process->link_changes;
    };
    callbacks.on_down = [weak, exit = exit_](const ActorId&, const link::Down& down) {
      const SharedProcess process = weak.lock();
      if (!process) return;
      process->directory.fail_asks(down.error);
      process->linked = false;
      const std::uint64_t changes = ++process->link_changes;
      const NetworkConditions& network = process->dependencies.network.conditions();
      if (!rank::may_come_back(down.reason, network.remote)) return exit(1);
      end_alone(process, changes, exit);
    };
    callbacks.on_parcel = [weak](const ActorId&, std::string& frame) {
      const SharedProcess process = weak.lock();
      return process ? process->directory.deliver(frame, Process::out(weak)) : link::Offer::kTaken;
    };
    // A process that hangs is at work for ever. Of every second one it is known how long its work
    // takes.
    const auto progress = [weak, of] {
      const SharedProcess process = weak.lock();
      const bool hangs = process && process->hangs > 0 && of == Of::kOurs;
      std::string phase = hangs ? "train" : "idle";
      if (process && process->engine_hangs) phase = scheduler::kDecodePhase;
      const std::uint64_t handled = process ? process->executor.messages_handled() : 0;
      const bool known = process && process->id.incarnation.value % 2 == 0;
      return link::ProgressReport{.counter = handled,
                                  .phase = phase,
                                  .pieces = known ? handled : 0,
                                  .longest = std::chrono::milliseconds(100)};
    };
    process_->dependencies.network.dial(process_->dependencies.node,
                                        {.name = process_->peer.name,
                                         .incarnation = process_->id.incarnation,
                                         .rank = process_->id.rank,
                                         .opaque = process_->id.actor},
                                        std::move(callbacks), progress);
  }

  const SharedProcess process_;
  const ExitSelf exit_;
};

}  // namespace

std::vector<std::string> rank_arguments(const node::RankId& id) {
  return {id.actor, std::to_string(id.incarnation.value), std::to_string(id.rank)};
}

node::RankId rank_of_arguments(const std::vector<std::string>& argv) {
  return {argv.at(1), Incarnation{std::stoull(argv.at(2))}, std::stoi(argv.at(3))};
}

std::unique_ptr<SimulatedProcess> start_rank(const RankDependencies& dependencies,
                                             const std::vector<std::string>& argv, ExitSelf exit) {
  const auto of = argv.front() == kUsersProgram ? RankProcess::Of::kUsers : RankProcess::Of::kOurs;
  return std::make_unique<RankProcess>(dependencies, rank_of_arguments(argv), of, std::move(exit));
}

}  // namespace tandem::controller
