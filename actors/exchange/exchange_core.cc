// One decision is one pass over "admit, lease, score, evaluate, form" after any number of messages.
// Each asks scheduler/ and applies the answer until it is no; so the order of the messages that led
// here does not matter, and nothing is remembered that could go stale.
#include "actors/exchange/exchange_core.h"

#include <algorithm>
#include <utility>

#include "actors/exchange/admission.h"
#include "actors/exchange/checkpoints.h"
#include "actors/exchange/damaged_versions.h"
#include "actors/exchange/drain.h"
#include "actors/exchange/evaluating.h"
#include "actors/exchange/evaluation_suspects.h"
#include "actors/exchange/fleet_view.h"
#include "actors/exchange/follow.h"
#include "actors/exchange/learner.h"
#include "actors/exchange/publications.h"
#include "actors/exchange/quarantine.h"
#include "actors/exchange/run_end.h"
#include "actors/exchange/run_report.h"
#include "actors/exchange/step_figures.h"
#include "actors/exchange/training.h"
#include "actors/exchange/worker_roles.h"
#include "actors/exchange/workers.h"
#include "runtime/base/check.h"

namespace tandem::exchange {

ExchangeCore::ExchangeCore(ExchangeConfig config) : config_(std::move(config)) {
  CHECK(config_.evaluation.prompts == std::ssize(config_.validation));
  if (config_.broadcasts) seen_.broadcasts.groups.emplace(config_.job, *config_.broadcasts);
  std::vector<ExchangeEffect> none;
  Turn(config_, {}, state_, seen_, draft_, none, kWorkerRoles)
      .record(RunBegan{.budget = config_.budget,
                       .fixed_lag = config_.fixed_lag,
                       .seed = config_.seed,
                       .epoch = config_.epoch});
}

ExchangeCore::ExchangeCore(ExchangeConfig config, Predecessor before, Time now)
    : config_(std::move(config)), state_(std::move(before.state)), image_due_(true) {
  if (config_.broadcasts)
    seen_.broadcasts.groups.emplace(config_.job, *config_.broadcasts,
                                    state_.facts().broadcast_epoch);
  Turn turn(config_, now, state_, seen_, draft_, first_effects_, kWorkerRoles);
  follow(turn, std::move(before.figures));
}

template <class Input>
void ExchangeCore::on(Turn& turn, Input input) {
  take(turn, std::move(input));
}

std::vector<ExchangeEffect> ExchangeCore::step(ExchangeInput input, Time now) {
  std::vector<ExchangeEffect> effects = std::exchange(first_effects_, {});
  if (ended()) return effects;
  Turn turn(config_, now, state_, seen_, draft_, effects, kWorkerRoles);
  std::visit([&](auto& what) { on(turn, std::move(what)); }, input);
  return effects;
}

void ExchangeCore::on(Turn& turn, const messages::ActorDown& down) {
  learner_gone(turn, down.who);
  const Suspected suspects = suspect(turn, down);
  take(turn, down);
  quarantine(turn, suspects, down.reason);
}

void ExchangeCore::on(Turn& turn, Decide) {
  if (!seen_.statistics.started) seen_.statistics.started = turn.now;
  decide(turn);
  if (!ended()) {
    finish_drains(turn);
    finish_learner_drain(turn);
    settle(turn);
    note_wait(turn);
    seen_.learner.committed.reset();
  }
  if (draft_.events.empty()) return;
  JournalDraft draft = std::exchange(draft_, {});
  Journal journal{.events = std::move(draft.events), .durability = draft.durability, .image = {}};
  events_since_image_ += std::ssize(journal.events);
  // An image has all groups, so that its cost is a small part of that of the events before it.
  const auto live = static_cast<std::int64_t>(turn.facts.flow.entries.size());
  image_due_ = image_due_ || events_since_image_ >= std::max(config_.events_per_image, 4 * live);
  if (!ended() && std::exchange(image_due_, false)) journal.image = image();
  turn.send(std::move(journal));
}

RunImage ExchangeCore::image() {
  events_since_image_ = 0;
  const RunFacts& facts = state_.facts();
  seen_.history.forget_below(facts.learner.batches_from(), config_.best);
  return {image_of(facts), later_image_of(facts), seen_.history.image(), broadcast_image_of(facts)};
}

void ExchangeCore::decide(Turn& turn) {
  const RunFacts& facts = turn.facts;
  if (std::exchange(seen_.learner.save_due, false)) ask_checkpoint(turn);
  order_broadcasts(turn);
  if (facts.end.asked && saves_first(turn)) {
    relieve_silent(turn);
    expire_leases(turn);
    return form(turn);  // a learner that repeats steps comes back to the last one first
  }
  if (facts.end.asked)
    return end(turn, facts.end.asked->outcome, std::string(facts.end.asked->reason));
  relieve_silent(turn);
  expire_leases(turn);
  end_idle_holders(turn);
  run_evaluations(turn);
  publish_lost(turn);
  form(turn);
  if (facts.stage == RunStage::kRunning) {
    admit(turn);
    for (const WorkerRole& role : turn.roles) role.lease(turn);
    form(turn);
  }
  try_prompts_alone(turn);
  if (facts.stage == RunStage::kFinishing && !facts.learner.checkpoint_awaited &&
      seen_.evaluations.empty())
    end(turn, messages::JobOutcome::kSucceeded, "all steps are trained");
}

void ExchangeCore::on(Turn& turn, const JournalFailed& failed) {
  const auto& asked = turn.facts.end.asked;
  const bool cancelled = asked && asked->outcome == messages::JobOutcome::kCancelled;
  end(turn, messages::JobOutcome::kFailed,
      (cancelled ? messages::kWhileCancelled : "") + failed.message);
  draft_ = {};  // nothing can be written
}

// Asks to be woken at the next deadline of a lease, of a broadcast or of a part of an evaluation. A
// run that ends evaluates no more.
void ExchangeCore::on(Turn& turn, MessagesSent) {
  std::optional<Time> deadline = ledger().next_deadline();
  const auto& groups = seen_.broadcasts.groups;
  if (const auto other = groups ? groups->next_deadline() : std::nullopt)
    deadline = std::min(*other, deadline.value_or(*other));
  if (const auto& part = seen_.workers.parts_due; part && !turn.facts.end.asked)
    deadline = std::min(*part, deadline.value_or(*part));
  if (!deadline || (deadline_wake_ && *deadline_wake_ <= *deadline)) return;
  deadline_wake_ = deadline;
  turn.send(WakeAtDeadline{*deadline});
}

void ExchangeCore::on(Turn& turn, DeadlineCame) {
  deadline_wake_.reset();
  turn.wake();
}

messages::ExchangeReport ExchangeCore::report(Time now) const {
  return report_of({config_, state_.facts(), seen_, now, kWorkerRoles});
}

std::vector<messages::GroupView> ExchangeCore::groups(const messages::GetGroups& asked,
                                                      Time now) const {
  return groups_of({config_, state_.facts(), seen_, now, kWorkerRoles}, asked);
}

}  // namespace tandem::exchange
