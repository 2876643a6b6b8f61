// The actor is a loop of rounds that goes through its own mailbox: advance() ends by sending a Step
// to itself, which lies behind the messages that came meanwhile, so that a busy engine never delays
// an assignment by more than one step. A copy of weights moves by copy_bytes_per_step per round,
// between decode steps; only the install itself pauses decoding.
//
// An update has three stages: wish() names a version that the engine wants and no update brings,
// begin_update() starts the copy or the reading in place, install() swaps the weights once the
// version is whole and the engine allows it. A version may be withdrawn at any stage: then the
// update is tried again, or, if the publisher no longer retains the version, the engine hears
// version_gone().
#include "actors/rollout/rollout_actor.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/wire/codec.h"
#include "scheduler/fleet/hang_timeout.h"

namespace tandem::rollout {
namespace {

constexpr int kPrefetchNumerator = 3;  // capacity over max_num_seqs: 3/2
constexpr int kPrefetchDenominator = 2;
// How often an engine without work looks how much of a version has arrived.
constexpr Duration kLookAgain = std::chrono::milliseconds(1);

}  // namespace

std::int32_t capacity_default(std::int32_t max_num_seqs, std::int32_t group_size) {
  const std::int64_t wanted =
      std::int64_t{max_num_seqs} * kPrefetchNumerator / kPrefetchDenominator;
  const std::int64_t groups = std::max<std::int64_t>(1, wanted / group_size);
  return static_cast<std::int32_t>(groups * group_size);
}

RolloutActor::RolloutActor(const RolloutConfig& config, std::unique_ptr<Engine> engine,
                           std::shared_ptr<weights::WeightSubscriber> weights,
                           Connections connections)
    : config_(config),
      engine_(std::move(engine)),
      weights_(std::move(weights)),
      connections_(std::move(connections)),
      outbox_(connections_.exchange, config.retry_interval) {}

RolloutActor::~RolloutActor() {
  weights_->cancel();  // the subscriber may outlive the engine whose sink it copies into
  log_leases("rollout_ended");
}

void RolloutActor::handle(actor::Context& cx, StartRollout start) {
  self_ = std::move(start.self);
  outbox_.send(cx, messages::RolloutUp{.from = config_.self, .capacity = capacity()});
  cx.after(config_.stats_interval, [this](actor::Context& later) { send_stats(later); });
  advance_later(cx, Duration{0});
}

std::int32_t RolloutActor::capacity() const {
  return config_.capacity > 0 ? config_.capacity
                              : capacity_default(config_.max_num_seqs, config_.group_size);
}

void RolloutActor::handle(actor::Context&, messages::GroupsKept kept) { held_.kept(kept.groups); }

// The exchange ignores answers that come before RolloutBack (follow.h), so waiting ones are
// dropped and sent behind it.
void RolloutActor::handle(actor::Context& cx, MeetAgain) {
  engine_->cancel_evaluations();
  outbox_.clear();
  messages::RolloutBack back{.from = config_.self, .capacity = capacity()};
  // A version that is copied, and not installed yet, is told of when it is (RO-1).
  const auto installed = weights_->installed();
  if (installed && engine_->version() == installed->version) {
    back.installed = installed->version;
    back.checksum = installed->checksum;
  }
  back.held = held_.held();
  messages::Generated again{.from = config_.self, .groups = held_.told()};
  log::info("event=met_again actor={} groups={} told={}", config_.self.name, back.held.size(),
            again.groups.size());
  outbox_.send(cx, std::move(back));
  if (!again.groups.empty()) outbox_.send(cx, std::move(again), &messages::Generated::groups);
  advance_later(cx, Duration{0});
}

// An engine that was idle is at work as soon as it takes prompts, so that a hang in one is noticed.
void RolloutActor::handle(actor::Context& cx, messages::Assign assign) {
  note(scheduler::kSubmitPhase, cx.now());
  for (messages::GroupWork& work : assign.groups) {
    held_.lease(work.group, work.attempt);
    engine_->submit(std::move(work));
    if (log::worth_a_line(++totals_.leased)) log_leases("leases");
  }
  collect(cx);
  advance_later(cx, Duration{0});
}

void RolloutActor::handle(actor::Context& cx, messages::Evaluate evaluate) {
  note(scheduler::kSubmitPhase, cx.now());
  engine_->submit(std::move(evaluate));
  collect(cx);
  advance_later(cx, Duration{0});
}

void RolloutActor::handle(actor::Context& cx, messages::NewVersion offer) {
  if (self_) note("update", cx.now());
  if (offer.source) weights_->look_at(*offer.source);
  if (offer.broadcast) weights_->expect(offer.version, offer.checksum, *offer.broadcast);
  engine_->expect(offer.version, std::move(offer.probe));
  offer_ = VersionOffer{offer.version, offer.oldest_retained};
  advance_later(cx, Duration{0});
}

void RolloutActor::handle(actor::Context& cx, messages::HandBack hand_back) {
  const auto& groups = hand_back.groups;
  const auto named = [&](const messages::GroupPayload& payload) {
    return groups.empty() || std::find(groups.begin(), groups.end(), payload.group) != groups.end();
  };
  if (groups.empty()) {
    engine_->cancel_all();
    held_.forget_all();
  } else {
    engine_->cancel(groups);
    for (const GroupId group : groups) held_.forget(group);
  }
  std::erase_if(finished_, named);
  // Batches that are already being stored go on: Generated tells of them all the same (RO-5).
  log::info("event=hand_back actor={} groups={}", config_.self.name,
            groups.empty() ? std::string("all") : std::to_string(groups.size()));
  if (groups.empty()) log_leases("drained");
  advance_later(cx, Duration{0});
}

void RolloutActor::handle(actor::Context& cx, Step) {
  advance_waits_ = false;
  advance(cx);
}

void RolloutActor::advance_later(actor::Context& cx, Duration delay) {
  if (advance_waits_ || !self_) return;
  advance_waits_ = true;
  // A Step goes through the mailbox, behind the messages that have come meanwhile. If the mailbox
  // is full, a timer takes its place, so that the engine does not stop.
  if (delay == Duration{0} && self_.tell(Step{}) == actor::Delivery::kAccepted) return;
  cx.after(delay, [this](actor::Context& later) {
    advance_waits_ = false;
    advance(later);
  });
}

void RolloutActor::advance(actor::Context& cx) {
  Duration delay = installing_since_ ? Duration{0} : pull_weights(cx);
  if (engine_->can_step()) delay += step_engine(cx);
  // Installed leaves before the first tokens of its version (RO-1).
  if (installing_since_ && !engine_->installing()) installed(cx, cx.now() - *installing_since_);
  collect(cx);
  // A simulated install or step takes time in which nothing else may happen. An update may have
  // waited for the end of the last request.
  if (delay > Duration{0} || engine_->can_step() || copying_ || may_install() || wish())
    return advance_later(cx, delay);
  note("idle", cx.now());
}

Duration RolloutActor::step_engine(actor::Context& cx) {
  const Time before = cx.now();
  note(installing_since_ ? "update" : scheduler::kDecodePhase, before);
  const Duration simulated = engine_->step();
  const TokenCounts has = engine_->tokens();
  const double took = seconds(simulated + (cx.now() - before));
  busy_seconds_ += took;
  steps_.seconds.add(static_cast<double>(has.generation_tokens - steps_.tokens),
                     static_cast<double>(has.prompt_tokens - steps_.prompts), took);
  steps_.tokens = has.generation_tokens;
  steps_.prompts = has.prompt_tokens;
  if (!generated_ && has.generation_tokens > 0) {
    generated_ = true;
    log::info("event=first_token actor={}", config_.self.name);
  }
  return simulated;
}

// An update that is under way goes on when the engine wants nothing else.
std::optional<PolicyVersion> RolloutActor::wish() {
  if (!offer_ || update_waits_ || installing_since_) return std::nullopt;
  const std::optional<PolicyVersion> wanted = engine_->wants(*offer_);
  return wanted == updating_ ? std::nullopt : wanted;
}

void RolloutActor::begin_update(actor::Context& cx, PolicyVersion version) {
  note("update", cx.now());
  if (copying_ || (in_place_ && !let_go_)) weights_->cancel();
  copying_ = let_go_ = false;
  updating_.reset();
  in_place_ = engine_->installs_in_place() && weights_->in_place();
  sink_ = {};
  if (!in_place_) {
    const auto sink = engine_->weight_sink();
    if (!sink) return cx.fail(sink.error());
    sink_ = *sink;
  }
  const Result<void> begun = weights_->begin(version, sink_);
  if (begun) {
    engine_->begin_update(version);
    updating_ = version;
    copying_ = true;
  } else if (begun.error().code != ErrorCode::kNotFound) {
    cx.fail(begun.error());
  } else {
    if (version < offer_->oldest_retained) engine_->version_gone(version);
    // Work for the newest version waits on: its publisher may be starting again.
    if (engine_->wants(*offer_) == version) retry_update(cx, version, begun.error());
  }
}

void RolloutActor::retry_update(actor::Context& cx, PolicyVersion version, const Error& why) {
  if (!failed_update_ || failed_update_->version != version)
    failed_update_ = FailedUpdate{.version = version, .since = cx.now(), .message = {}};
  if (std::exchange(failed_update_->message, why.message) != why.message)
    log::warn("event=update_failed actor={} error=\"{}\"", config_.self.name, why.message);
  if (in_place_) weights_->cancel();
  copying_ = in_place_ = let_go_ = false;
  updating_.reset();
  update_waits_ = true;
  const bool damaged = why.code == ErrorCode::kInvalid;
  // What waits in the outbox already says enough.
  if (damaged && outbox_.empty())
    outbox_.send(cx, messages::VersionDamaged{config_.self, version, why.message});
  cx.after(damaged ? config_.damaged_interval : config_.retry_interval,
           [this](actor::Context& later) {
             update_waits_ = false;
             advance_later(later, Duration{0});
           });
}

// A version that is read in place keeps its slot at the publisher in use. Sequences that must end
// before the update may run for minutes, so the slot is released for as long, and the version is
// begun again when it can be installed.
void RolloutActor::hold_while_installable(actor::Context& cx) {
  if (!updating_ || !in_place_ || let_go_ != engine_->may_finish_update()) return;
  if (let_go_) return begin_update(cx, PolicyVersion{*updating_});
  weights_->cancel();
  copying_ = false;
  let_go_ = true;
}

Duration RolloutActor::pull_weights(actor::Context& cx) {
  if (const auto version = wish()) begin_update(cx, *version);
  hold_while_installable(cx);
  if (copying_) {
    note("update", cx.now());
    const Result<weights::UpdateProgress> progress =
        weights_->progress(config_.copy_bytes_per_step);
    if (!progress) {  // the version was withdrawn, or is damaged
      retry_update(cx, *updating_, progress.error());
      return {};
    }
    copying_ = !progress->complete;
    if (copying_ && progress->arrives_by_itself && !engine_->can_step()) return kLookAgain;
  }
  return may_install() ? install(cx) : Duration{0};
}

bool RolloutActor::may_install() const {
  return updating_ && !copying_ && !installing_since_ && engine_->may_finish_update();
}

std::span<const std::byte> RolloutActor::arrived() const {
  return in_place_ ? weights_->held() : std::span<const std::byte>(sink_);
}

Duration RolloutActor::install(actor::Context& cx) {
  note("update", cx.now());
  const std::span<const std::byte> arena = arrived();
  if (in_place_ && arena.empty()) {
    retry_update(cx, *updating_,
                 Error{.message = "policy version " + std::to_string(updating_->value) +
                                  " was withdrawn before it was installed"});
    return {};
  }
  const Time before = cx.now();
  const Duration simulated = engine_->finish_update(arena);
  if (engine_->installing())
    installing_since_ = before;
  else
    installed(cx, simulated + (cx.now() - before));
  return simulated;
}

void RolloutActor::installed(actor::Context& cx, Duration pause) {
  installing_since_.reset();
  if (in_place_) weights_->cancel();
  in_place_ = false;
  const double paused = seconds(pause);
  const auto copied = weights_->installed();
  CHECK(copied && copied->version == *updating_);
  if (log::worth_a_line(++totals_.installs))
    log::info("event=installed actor={} version={} seconds={:.3f} bytes={} installs={}",
              config_.self.name, updating_->value, paused, copied->bytes, totals_.installs);
  // Installed is sent before the next step, and the outbox keeps the order (RO-1).
  outbox_.send(cx, messages::Installed{.from = config_.self,
                                       .version = *updating_,
                                       .seconds = paused,
                                       .bytes = copied->bytes,
                                       .checksum = copied->checksum});
  updating_.reset();
  failed_update_.reset();
}

void RolloutActor::collect(actor::Context& cx) {
  for (EngineEvent& event : engine_->poll()) {
    if (const auto* failed = std::get_if<EngineFailed>(&event)) {
      // A version that cannot be installed is no fault of the prompts.
      if (!engine_->installing())
        outbox_.send(cx, messages::EngineBroke{config_.self, failed->error.message});
      return cx.fail(failed->error);
    }
    if (auto* payload = std::get_if<messages::GroupPayload>(&event)) {
      finished_.push_back(std::move(*payload));
    } else if (auto* refused = std::get_if<GroupUnservable>(&event)) {
      ++totals_.unservable;
      held_.forget(refused->group);
      outbox_.send(cx, messages::Unservable{.from = config_.self,
                                            .group = refused->group,
                                            .attempt = refused->attempt,
                                            .reason = refused->reason,
                                            .message = std::move(refused->message)});
    } else {
      auto& done = std::get<EvaluationDone>(event);
      messages::Evaluated evaluated{.from = config_.self,
                                    .evaluation = done.evaluation,
                                    .completions = std::move(done.completions),
                                    .unservable = std::move(done.unservable)};
      outbox_.send(cx, std::move(evaluated), &messages::Evaluated::completions);
    }
  }
  store_finished(cx);
}

void RolloutActor::store_finished(actor::Context& cx) {
  while (!finished_.empty() && writes_.under_way.size() < kWritesInFlight) {
    auto write = std::make_shared<Write>();
    while (!finished_.empty() && write->groups.size() < kGroupsPerWrite) {
      write->groups.push_back(std::move(finished_.front()));
      finished_.pop_front();
    }
    writes_.under_way.insert(write);
    store(cx, std::move(write));
  }
}

void RolloutActor::store(actor::Context& cx, std::shared_ptr<Write> write) {
  ++write->attempts;
  std::vector<std::string> payloads;
  for (const messages::GroupPayload& group : write->groups) payloads.push_back(wire::encode(group));
  // The answer may come on any thread, and is brought into the actor's turn. The batch keeps its
  // groups until it is stored, for the attempts that may follow.
  connections_.write(std::move(payloads), [this, post = cx.turn_poster(),
                                           write](Result<std::vector<wire::PayloadRef>> refs) {
    post([this, write, refs = std::move(refs)](actor::Context& later) {
      stored(later, write, refs);
    });
  });
}

void RolloutActor::stored(actor::Context& cx, std::shared_ptr<Write> write,
                          const Result<std::vector<wire::PayloadRef>>& refs) {
  if (!refs) {
    const bool full = waits_for_disk(refs.error());  // it passes, and counts as no attempt
    if (!full || writes_.no_room.empty())            // a wait is told once
      log::warn("event=payload_write_failed actor={} attempt={} error=\"{}\"", config_.self.name,
                write->attempts, refs.error().message);
    if (!full)
      write->no_room_since.reset();
    else if (!write->no_room_since)
      write->no_room_since = cx.now();
    if (payload::is_waited_for(refs.error(), write->unanswered_since, cx.now()))
      write->attempts = 1;
    if (full) write->attempts = 0;
    writes_.no_room = full ? refs.error().message + " (" + refs.error().where + ")" : "";
    const bool too_long = full && cx.now() - *write->no_room_since >= kRoomWaitMax;
    if (write->attempts >= kWriteAttempts || too_long) return cx.fail(refs.error());
    const Duration pause =
        full ? kRoomEvery : config_.retry_interval * (1 << (write->attempts - 1));
    cx.after(pause, [this, write](actor::Context& later) { store(later, write); });
    return;
  }
  writes_.no_room.clear();
  CHECK(refs->size() == write->groups.size());
  messages::Generated generated{.from = config_.self};
  for (std::size_t i = 0; i < refs->size(); ++i) {
    generated.groups.push_back(header_of(write->groups[i], (*refs)[i]));
    held_.tell(generated.groups.back());
  }
  totals_.generated += refs->size();
  outbox_.send(cx, std::move(generated), &messages::Generated::groups);
  // The slot is freed only after the groups are told of, and the next batch may use it (RO-4).
  writes_.under_way.erase(write);
  store_finished(cx);
}

void RolloutActor::send_stats(actor::Context& cx) {
  EngineStats stats = engine_->stats();
  // Work that waited for the version may have been cancelled since.
  if (failed_update_ && (!offer_ || engine_->wants(*offer_) != failed_update_->version))
    failed_update_.reset();
  std::optional<PolicyVersion> missing;
  double missing_seconds = 0;
  if (failed_update_) {
    missing = failed_update_->version;
    missing_seconds = seconds(cx.now() - failed_update_->since);
  }
  if (outbox_.empty())  // else the link is at its limit, and the next statistics are enough
    outbox_.send(cx, messages::RolloutStats{.from = config_.self,
                                            .generation_tokens = stats.generation_tokens,
                                            .prompt_tokens = stats.prompt_tokens,
                                            .prefix_cache_queries = stats.prefix_cache_queries,
                                            .prefix_cache_hits = stats.prefix_cache_hits,
                                            .preemptions = stats.preemptions,
                                            .requests_running = stats.sequences_running,
                                            .requests_waiting = stats.sequences_waiting,
                                            .kv_cache_usage = stats.kv_cache_usage,
                                            .busy_seconds = busy_seconds_,
                                            .step_seconds = steps_.seconds,
                                            .latencies = std::move(stats.latencies),
                                            .missing = missing,
                                            .missing_seconds = missing_seconds,
                                            .no_room = writes_.no_room,
                                            .first = stats.first});
  cx.after(config_.stats_interval, [this](actor::Context& later) { send_stats(later); });
  // An engine may have something to say although nothing was asked of it.
  if (engine_->can_step()) advance_later(cx, Duration{0});
}

void RolloutActor::note(const char* phase, Time now) const {
  if (connections_.progress) connections_.progress(phase, now);
}

void RolloutActor::log_leases(const char* event) const {
  const EngineStats stats = engine_->stats();
  log::info(
      "event={} actor={} leased={} generated={} unservable={} running={} waiting={} installs={} "
      "busy_seconds={:.1f}",
      event, config_.self.name, totals_.leased, totals_.generated, totals_.unservable,
      stats.sequences_running, stats.sequences_waiting, totals_.installs, busy_seconds_);
}

}  // namespace tandem::rollout
