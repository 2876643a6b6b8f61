// The actor turns messages into events of ControllerCore and effects into messages. It decides
// nothing: an effect that cannot be carried out (a node that cannot be reached, an exchange that
// does not open) is reported to the core as the event that it amounts to, and never handled here,
// unless another event tells of it anyway or it is only for people.
//
// Such an event is queued in brought_about_ and taken after all effects of the current one, so that
// effects are carried out in the order in which the core decided them.
#include "actors/controller/controller.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "actors/controller/allocation.h"
#include "actors/controller/result_json.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"

namespace tandem::controller {

namespace {

constexpr Duration kJournalAgain = std::chrono::seconds(1);
// So long the answer to a wish waits for the journal: less than askers of the API wait for it.
constexpr Duration kJournalWait = std::chrono::seconds(2);
constexpr Duration kAskAgain = std::chrono::seconds(1);  // where the link to an agent is full

Result<Nothing> taken_or_error(const Result<void>& taken) {
  if (!taken) return taken.error();
  return Nothing{};
}

Error no_job_meanwhile(const Error& why) {
  return {
      .code = ErrorCode::kFailed,
      .message = "the controller cannot write its journal, and takes no new job: " + why.message,
      .where = why.where,
      .help = "make room on that disk, or make it writable, and submit again"};
}

Error not_journalled(const std::string& wish, const Error& why) {
  return {.code = ErrorCode::kTimedOut,
          .message = wish + " stands, but the controller cannot write its journal: " + why.message,
          .where = why.where,
          .help =
              "make room on that disk, or make it writable: then it is journalled, and need not "
              "be asked again; it is lost if the controller ends before"};
}

// Writes, and notes how long that took.
Result<void> timed(actor::Context& cx, RecentMax& seconds_taken,
                   const std::function<Result<void>()>& write) {
  const Time begun = cx.now();
  auto done = write();
  seconds_taken.add(cx.now(), seconds(cx.now() - begun));
  return done;
}

std::string name_of(const Cordon& wish) {
  if (const auto* const uncordon = std::get_if<UncordonNode>(&wish.request))
    return "uncordoning " + uncordon->node;
  const auto& cordon = std::get<CordonNode>(wish.request);
  return (cordon.drain ? "draining " : "cordoning ") + cordon.node;
}

}  // namespace

Controller::Controller(std::uint64_t seed, ControllerActions actions, const DurableState& restored)
    : actions_(std::move(actions)),
      core_(seed, restored, actions_.rules),
      event_last_(actions_.events_before) {}

Result<void> Controller::take(actor::Context& cx, const ControllerEvent& event) {
  auto effects = core_.step(event, cx.now());
  if (!effects) return effects.error();
  carry_out_all(cx, *std::move(effects));
  while (!brought_about_.empty()) {
    const ControllerEvent next = std::move(brought_about_.front());
    brought_about_.pop_front();
    auto then = core_.step(next, cx.now());
    CHECK(then.has_value());  // only what users ask for is refused
    carry_out_all(cx, *std::move(then));
  }
  answer_awaits();
  return {};
}

bool Controller::holds(ClusterCondition condition) const {
  switch (condition) {
    case ClusterCondition::kNodeReady:
      return !core_.lookups().room.empty();
    case ClusterCondition::kNoJobRuns:
      return core_.idle();
  }
  CHECK(false && "a condition of no kind");
  return false;
}

void Controller::answer_awaits() {
  std::erase_if(awaits_, [this](const actor::Ask<Await>& ask) {
    if (!holds(ask.question.until)) return false;
    ask.reply(Nothing{});
    return true;
  });
}

actor::Ref<node::AgentInbox> Controller::agent_of(const std::string& node) const {
  return actions_.agent(node, core_.nodes().at(node).incarnation);
}

void Controller::carry_out_all(actor::Context& cx, std::vector<ControllerEffect> effects) {
  // The result of a job is there before the journal forgets the job.
  for (ControllerEffect& effect : effects)
    if (auto* const write = std::get_if<WriteResult>(&effect)) carry_out(cx, std::move(*write));
  // Changes are journalled before the messages that tell of them leave.
  for (ControllerEffect& effect : effects)
    if (auto* const change = std::get_if<Remember>(&effect))
      unremembered_.push_back(std::move(change->event));
  if (!journal_fails_) journal_changes(cx);
  for (ControllerEffect& effect : effects)
    std::visit(
        [&]<class One>(One& one) {
          if constexpr (!std::is_same_v<One, Remember> && !std::is_same_v<One, WriteResult>)
            carry_out(cx, std::move(one));
        },
        effect);
}

void Controller::carry_out(actor::Context&, SpawnRankOn spawn) {
  if (journal_fails_) {  // a node that is back is told again of what it was not told
    if (std::ranges::find(held_, spawn.id, &SpawnRankOn::id) == held_.end())
      held_.push_back(std::move(spawn));
    return;
  }
  // The order matters: the process may dial as soon as the agent has the message.
  actions_.expect(spawn.node, spawn.id);
  node::SpawnRank message{.id = spawn.id,
                          .log_path = std::move(spawn.log_path),
                          .gpus = std::move(spawn.gpus),
                          .program = std::move(spawn.program.command),
                          .environment = std::move(spawn.program.environment),
                          .working_directory = std::move(spawn.working_directory)};
  message.arguments = message.program.empty() ? actions_.rank_arguments(spawn.id)
                                              : std::move(spawn.program.launcher);
  if (agent_of(spawn.node).tell(message) != actor::Delivery::kAccepted)
    brought_about_.push_back(node::RankSpawnFailed{spawn.id, spawn.node + " cannot be reached"});
}

void Controller::carry_out(actor::Context&, const ExpectRank& expect) {
  actions_.expect(expect.node, expect.id);
}

void Controller::carry_out(actor::Context&, KillRankOn kill) {
  if (std::erase_if(held_, [&](const SpawnRankOn& held) { return held.id == kill.id; }) > 0)
    return brought_about_.push_back(
        node::RankSpawnFailed{kill.id, "the controller could not write its journal"});
  const auto told = agent_of(kill.node).tell(node::StopRankProcess{kill.id, kill.grace_ms});
  if (told != actor::Delivery::kAccepted) actions_.cut_link(kill.id);  // its agent is lost
}

void Controller::carry_out(actor::Context&, const CutLink& cut) { actions_.cut_link(cut.id); }

void Controller::carry_out(actor::Context& cx, const AskNode& ask) {
  const auto told = actions_.agent(ask.node, ask.incarnation).tell(node::IntroduceNode{});
  // After a long silence its link may be at its limit.
  if (told == actor::Delivery::kFull)
    cx.after(kAskAgain, [this, ask](actor::Context& again) { carry_out(again, ask); });
}

void Controller::carry_out(actor::Context&, RefuseNode refuse) {
  (void)actions_.agent(refuse.node, refuse.incarnation).tell(node::NodeRefused{refuse.pid_up});
}

// A process that is never told what it is would wait for ever. One that is gone is ending, and its
// exit is reported.
template <class Peer, class Start>
void Controller::tell_start(const node::RankId& id, const actor::Ref<Peer>& rank,
                            const Start& start) {
  const actor::Delivery sent = rank.tell(start);
  if (sent == actor::Delivery::kAccepted || sent == actor::Delivery::kGone) return;
  const Error why = sent == actor::Delivery::kTooLarge ? rank.too_large(start)
                                                       : actor::undelivered(id.actor, sent);
  brought_about_.push_back(
      messages::RankFailed{id.actor, id.incarnation, id.rank, why.message, why.code});
}

void Controller::carry_out(actor::Context&, SendStart start) {
  start.start.bulk_endpoints = actions_.bulk_endpoints(start.start.job);
  tell_start(start.id, actions_.rank(start.id), start.start);
}

void Controller::carry_out(actor::Context&, SendProgramStart start) {
  tell_start(start.id, actions_.program(start.id), start.start);
}

void Controller::carry_out(actor::Context&, DrainRank drain) {
  const auto sent = actions_.program(drain.id).tell(messages::DrainProgram{drain.deadline_ms});
  // A program that cannot be reached is ended by its agent, or has ended.
  if (sent == actor::Delivery::kFull)
    log::warn(
        "event=drain_not_told actor={} message=\"its link is at its limit; it is ended at "
        "its deadline\"",
        drain.id.actor);
}

void Controller::carry_out(actor::Context& cx, FailAsks fail) {
  std::vector<std::uint64_t> failed;
  for (const auto& [number, ask] : program_asks_)
    if (ask.to == fail.id) failed.push_back(number);
  for (const std::uint64_t number : failed)
    answer_ask(
        cx, number,
        Error{ErrorCode::kUnreachable, fail.id.actor + " ended before it answered: " + fail.cause});
}

void Controller::carry_out(actor::Context& cx, WriteResult write) {
  const JobRecord& job = core_.jobs().at(write.job);
  if (const auto done = actions_.write_result(job, result_json(job, cx.now())); !done)
    log::error("event=result_not_written job={} message=\"{}\"", write.job, done.error().message);
}

void Controller::carry_out(actor::Context&, OpenExchange open) {
  auto exchange = actions_.open_exchange(core_.jobs().at(open.job));
  if (exchange) {
    exchanges_[open.job] = std::move(*exchange);
    brought_about_.push_back(ExchangeOpened{open.job, actions_.bulk_endpoints(open.job)});
  } else {
    brought_about_.push_back(messages::JobEnded{open.job, messages::JobOutcome::kFailed,
                                                exchange.error().message, /*has_result=*/false});
  }
}

void Controller::carry_out(actor::Context&, TakeUpRun take) {
  if (const auto done = actions_.take_up_run(core_.jobs().at(take.job)); !done)
    brought_about_.push_back(messages::JobEnded{take.job, messages::JobOutcome::kFailed,
                                                done.error().message, /*has_result=*/false});
}

void Controller::carry_out(actor::Context& cx, TellExchange tell) {
  const auto it = exchanges_.find(tell.job);
  // The exchange did not open, or has closed: its end is reported in another way.
  if (it == exchanges_.end()) return;
  const auto& exchange = it->second;
  std::visit([&](auto&& m) { to_exchanges_.add(exchange.address(), exchange, std::move(m)); },
             std::move(tell.message));
  tell_exchanges(cx);
}

void Controller::carry_out(actor::Context&, CloseExchange close) {
  exchanges_.erase(close.job);
  actions_.close_exchange(close.job);
}

void Controller::carry_out(actor::Context& cx, WakeAt wake) {
  cx.after(wake.when - cx.now(), [this](actor::Context& then) { (void)take(then, Tick{}); });
}

// The mailbox of an exchange also gets the messages of the job's peers, so it may be full. The
// messages that wait here are bounded by the number of actor ends and of user requests; those for
// an exchange that has closed are dropped.
void Controller::tell_exchanges(actor::Context& cx) {
  const Result<bool> some_wait = to_exchanges_.flush();
  CHECK(some_wait.has_value());  // a mailbox of this process takes messages of any size
  if (!*some_wait || std::exchange(retry_due_, true)) return;
  cx.after(link::kRetryAfter, [this](actor::Context& then) {
    retry_due_ = false;
    tell_exchanges(then);
  });
}

// A full disk stops nothing that runs. If this controller died before there is room again, the next
// one would not know the newest changes: an event says that once, and no process starts, of which
// the next one could not know either (CC-1).
void Controller::journal_changes(actor::Context& cx) {
  if (!unremembered_.empty()) {
    if (const auto done =
            timed(cx, write_seconds_, [&] { return actions_.remember(unremembered_); });
        !done) {
      if (!std::exchange(journal_fails_, done.error())) {
        brought_about_.push_back(JournalNews{.fails = true});
        carry_out(cx,
                  Announce{"controller", "controller",
                           "cannot write its journal, goes on trying, and starts no process; if it "
                           "died now, the next controller would not know the newest jobs and "
                           "wishes: " +
                               done.error().message,
                           messages::EventLevel::kError});
      }
      answer_wishes(cx.now());
      cx.after(kJournalAgain, [this](actor::Context& then) { journal_changes(then); });
      return;
    }
    unremembered_.clear();
    answer_wishes(cx.now());
  }
  if (!std::exchange(journal_fails_, std::nullopt)) return;
  carry_out(cx, Announce{"controller", "controller", "writes its journal again",
                         messages::EventLevel::kInfo});
  start_held(cx);
  (void)take(cx, JournalNews{.fails = false});
}

template <class Reply>
void Controller::answer_wish(actor::Context& cx, std::string name,
                             const actor::ReplyTo<Reply>& reply, const Result<Reply>& done) {
  if (!done || unremembered_.empty()) return reply(done);
  unanswered_.push_back(
      {std::move(name), cx.now() + kJournalWait, [reply, done](const Result<void>& journalled) {
         reply(journalled ? done : Result<Reply>(journalled.error()));
       }});
}

void Controller::answer_wishes(Time now) {
  for (Unanswered& wish : std::exchange(unanswered_, {})) {
    if (unremembered_.empty())
      wish.reply({});
    else if (now >= wish.until)
      wish.reply(not_journalled(wish.name, *journal_fails_));
    else
      unanswered_.push_back(std::move(wish));
  }
}

void Controller::start_held(actor::Context& cx) {
  for (SpawnRankOn& spawn : std::exchange(held_, {}))
    if (core_.lives(spawn.id)) carry_out(cx, std::move(spawn));
}

void Controller::carry_out(actor::Context& cx, Announce announce) {
  // The message may quote ranks, agents and reward programs: it need not be UTF-8.
  events_.push_back({++event_last_, unix_ms(), announce.kind, valid_utf8(announce.subject),
                     valid_utf8(announce.message), announce.level});
  if (events_.size() > kEventsKept) events_.pop_front();
  log::info("event={} subject={} message=\"{}\"", announce.kind, announce.subject,
            announce.message);
  // A journal that cannot be written does not stop the jobs: events are for people.
  lost_events_.note(timed(cx, write_seconds_, [&] { return actions_.journal(events_.back()); }));
}

void Controller::handle(actor::Context& cx, node::NodeUp up) { (void)take(cx, up); }
void Controller::handle(actor::Context& cx, NodeDown down) { (void)take(cx, down); }
void Controller::handle(actor::Context& cx, NodeSilent m) { (void)take(cx, m); }
void Controller::handle(actor::Context& cx, RankSilent m) { (void)take(cx, m); }
void Controller::handle(actor::Context& cx, node::RankSpawned m) { (void)take(cx, m); }
void Controller::handle(actor::Context& cx, node::RankSpawnFailed m) { (void)take(cx, m); }
void Controller::handle(actor::Context& cx, node::RankExited m) { (void)take(cx, m); }
void Controller::handle(actor::Context& cx, node::UsageReport m) {
  for (RankHung& hung : core_.note_usage(m)) (void)take(cx, std::move(hung));
}
void Controller::handle(actor::Context& cx, RankConnected m) { (void)take(cx, m); }
void Controller::handle(actor::Context& cx, messages::RankListening m) { (void)take(cx, m); }
void Controller::handle(actor::Context& cx, messages::RankReady m) { (void)take(cx, m); }
void Controller::handle(actor::Context& cx, messages::RankFailed m) { (void)take(cx, m); }
void Controller::handle(actor::Context& cx, messages::RankPreempted m) { (void)take(cx, m); }
void Controller::handle(actor::Context& cx, RankHung m) { (void)take(cx, m); }
void Controller::handle(actor::Context& cx, messages::JobProgress m) { (void)take(cx, m); }
void Controller::handle(actor::Context& cx, messages::ActorDrained m) { (void)take(cx, m); }
void Controller::handle(actor::Context& cx, messages::FleetMeasured m) { (void)take(cx, m); }
void Controller::handle(actor::Context& cx, messages::JobEnded m) { (void)take(cx, m); }

// An event for users alone: the core need not know of it.
void Controller::handle(actor::Context& cx, messages::ExchangeEvent m) {
  carry_out(cx, Announce{m.subject == m.job ? "job" : "actor", std::move(m.subject),
                         std::move(m.message), m.level});
}

void Controller::handle(actor::Context& cx, ProcessNews news) {
  carry_out(cx, Announce{std::move(news.kind), std::move(news.subject), std::move(news.message),
                         news.level});
}

void Controller::handle(actor::Context& cx, actor::Ask<Submit> ask) {
  // Checked before the directory is made, so that a job that is refused leaves nothing behind.
  if (const auto fits = core_.accepted(ask.question.shape); !fits) return ask.reply(fits.error());
  if (journal_fails_) return ask.reply(no_job_meanwhile(*journal_fails_));
  auto run = actions_.make_run_directory(ask.question.shape);
  if (!run) return ask.reply(run.error());
  // Events of a run that goes on have numbers behind those that it has.
  event_last_ = std::max(event_last_, run->last_event);
  const auto taken = take(cx, SubmitJob{.shape = std::move(ask.question.shape),
                                        .id = run->id,
                                        .run_dir = std::move(run->path),
                                        .submitted_ms = unix_ms(),
                                        .earlier = {.rows = run->journal_rows}});
  answer_wish(cx, "submitting " + run->id, ask.reply,
              taken ? Result<std::string>(run->id) : taken.error());
}

void Controller::handle(actor::Context& cx, actor::Ask<TakeUp> ask) {
  TakeUpJobs taken;
  for (auto& [job, shape, follows] : ask.question.jobs) {
    const Result<void> owned =
        shape ? actions_.own_run_directory(job.job, *shape) : Result<void>(shape.error());
    if (!owned) {
      taken.left.emplace(job.job, owned.error().message);
      continue;
    }
    // A damaged row may have any number; then the job's own stands.
    for (const auto& [role, replicas] : job.wanted)
      if (const auto known = shape->replicas.find({role});
          known != shape->replicas.end() &&
          replicas_asked(*shape, known->first, std::to_string(replicas)))
        known->second = replicas;
    const Duration age =
        std::chrono::milliseconds(std::max<std::int64_t>(0, unix_ms() - job.submitted_ms));
    taken.jobs.push_back(
        {{std::move(*shape), job.job, std::move(job.run_dir), job.submitted_ms, job.earlier},
         age,
         follows});
  }
  ask.reply(taken_or_error(take(cx, taken)));
}

void Controller::handle(actor::Context& cx, actor::Ask<Scale> ask) {
  const ScaleRole& scale = ask.question.scale;
  answer_wish(cx,
              "scaling " + scale.job + " to " + name(scale.role) + "=" +
                  (scale.automatic ? "auto" : std::to_string(scale.replicas)),
              ask.reply, taken_or_error(take(cx, scale)));
}

void Controller::handle(actor::Context& cx, actor::Ask<RollBackScale> ask) {
  const RollBack& back = ask.question.back;
  answer_wish(cx, "rolling " + back.job + " back", ask.reply, taken_or_error(take(cx, back)));
}

void Controller::handle(actor::Context& cx, actor::Ask<Cancel> ask) {
  const std::string& job = ask.question.job;
  answer_wish(cx, "cancelling " + job, ask.reply, taken_or_error(take(cx, CancelJob{job})));
}

void Controller::handle(actor::Context& cx, actor::Ask<Forget> ask) {
  const std::string& job = ask.question.job;
  answer_wish(cx, "deleting " + job, ask.reply, taken_or_error(take(cx, ForgetJob{job})));
}

void Controller::handle(actor::Context& cx, actor::Ask<Cordon> ask) {
  const auto taken =
      std::visit([&](const auto& request) { return take(cx, request); }, ask.question.request);
  answer_wish(cx, name_of(ask.question), ask.reply, taken_or_error(taken));
}

void Controller::handle(actor::Context& cx, actor::Ask<AskProgram> ask) {
  const AskProgram& question = ask.question;
  const auto to = core_.program_to_ask(question.actor);
  if (!to) return ask.reply(to.error());
  if (program_asks_.size() == kProgramAsksMax)
    return ask.reply(Error{ErrorCode::kFailed, "too many questions wait for answers already"});
  const std::uint64_t number = ++program_ask_last_;
  const Error late{ErrorCode::kTimedOut,
                   question.actor + " did not answer within " +
                       std::to_string(question.timeout / std::chrono::seconds(1)) + " s"};
  const auto timeout = cx.after(question.timeout, [this, number, late](actor::Context& then) {
    answer_ask(then, number, late);
  });
  program_asks_.emplace(number, ProgramAsk{*to, ask.reply, timeout});
  // The answer comes on another thread.
  actor::ReplyTo<messages::AskedJson> reply([this, number, post = cx.turn_poster()](auto answer) {
    post([this, number, answer](actor::Context& then) { answer_ask(then, number, answer); });
  });
  const auto program = actions_.program(*to);
  const actor::Ask<messages::AskJson> message{{question.body}, std::move(reply)};
  const actor::Delivery sent = program.tell(message);
  if (sent == actor::Delivery::kTooLarge)
    answer_ask(cx, number, program.too_large(message));
  else if (sent != actor::Delivery::kAccepted)
    answer_ask(cx, number, actor::undelivered(question.actor, sent));
}

void Controller::answer_ask(actor::Context& cx, std::uint64_t number,
                            Result<messages::AskedJson> answer) {
  const auto ask = program_asks_.extract(number);
  if (ask.empty()) return;
  cx.cancel(ask.mapped().timeout);
  ask.mapped().reply(std::move(answer));
}

void Controller::handle(actor::Context& cx, actor::Ask<GetCluster> ask) {
  ClusterView view = view_of(core_, exchanges_, ask.question.page, cx.now());
  view.journal_write_s = write_seconds_.most(cx.now());
  ask.reply(std::move(view));
}

void Controller::handle(actor::Context&, actor::Ask<GetCounts> ask) { ask.reply(counts_of(core_)); }

void Controller::handle(actor::Context&, actor::Ask<Await> ask) {
  if (awaits_.size() == kAwaitsMax)
    return ask.reply(Error{ErrorCode::kFailed, "too many wait for the cluster already"});
  awaits_.push_back(std::move(ask));
  answer_awaits();
}

void Controller::handle(actor::Context&, actor::Ask<GetEvents> ask) {
  std::vector<runs::ClusterEvent> events;
  const auto first =
      std::ranges::upper_bound(events_, ask.question.after, {}, &runs::ClusterEvent::seq);
  events.assign(first, events_.end());
  ask.reply(std::move(events));
}

}  // namespace tandem::controller
