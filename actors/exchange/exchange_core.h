// Decides for one job's groups, from the next prompt to the committed step: which prompt gets a
// group, which rollout generates it, which reward actor scores it, which groups form the next
// batch, what the learner does next, which version an evaluation has. Pure: messages, times and the
// answers to its effects go in, effects come out (effects.h); the same inputs give the same
// effects. It asks scheduler/fleet (ledger, staleness budget, fixed lag, broadcast group). It sees
// headers, never tokens. Not responsible for processes: the controller starts and ends actors, and
// says so.
//
// The core is made of parts, functions over a Turn (turn.h), a file each. A group's trip reads
// forward: admission, generation, scoring, training, checkpoints; discards where it ends early.
// Beside it: follow (after another exchange's death), workers (who is up), learner (its
// incarnations, warm start, resuming), publications, evaluating, run_end. Views for people:
// run_report, fleet_view, step_figures, run_result.
//
// Durable facts change by events alone (state/durable_state.h); times, progress and statistics are
// Observed. Messages change state; step(Decide) then decides on all of them together, so their
// order within one decision does not matter, and journals what was decided (EX-1).
#pragma once

#include <string>
#include <vector>

#include "actors/exchange/effects.h"
#include "actors/exchange/exchange_config.h"
#include "actors/exchange/observed.h"
#include "actors/exchange/state/durable_state.h"
#include "actors/exchange/turn.h"

namespace tandem::exchange {

// The state and the figures of a run at the end of its journal, whose exchange has died.
struct Predecessor {
  DurableState state;
  FigureHistory figures;
  // The journal has events of an attempt before the one of this state; set while that one starts.
  bool has_earlier_attempt = false;
};

class ExchangeCore {
 public:
  explicit ExchangeCore(ExchangeConfig config);
  // Goes on where the one before has died (follow.h). The run may have ended.
  ExchangeCore(ExchangeConfig config, Predecessor before, Time now);

  // `now` never goes back. A run that has ended hears nothing more: no effects.
  std::vector<ExchangeEffect> step(ExchangeInput input, Time now);

  bool ended() const { return state_.facts().stage == RunStage::kEnded; }
  const DurableState& state() const { return state_; }
  const scheduler::Ledger& ledger() const { return state_.facts().flow.ledger; }
  const std::string& job() const { return config_.job; }
  messages::ExchangeReport report(Time now) const;
  std::vector<messages::GroupView> groups(const messages::GetGroups& asked, Time now) const;

 private:
  void decide(Turn& turn);
  RunImage image();
  void on(Turn& turn, Decide);
  void on(Turn& turn, DeadlineCame);
  void on(Turn& turn, MessagesSent);
  void on(Turn& turn, const JournalFailed& failed);
  void on(Turn& turn, const messages::ActorDown& down);
  // Any other input is a part's: take(turn, input).
  template <class Input>
  void on(Turn& turn, Input input);

  const ExchangeConfig config_;
  DurableState state_;
  Observed seen_;
  JournalDraft draft_;
  std::int64_t events_since_image_ = 0;
  // The next Journal has an image, as the first one of an exchange that follows: it may die soon.
  bool image_due_ = false;
  std::vector<ExchangeEffect> first_effects_;  // of follow(), for the first step
  std::optional<Time> deadline_wake_;          // WakeAtDeadline was asked for
};

}  // namespace tandem::exchange
