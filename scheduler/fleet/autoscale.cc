// The decision is a chain of questions, from the figures' worth over the number that they ask for
// to the limits; the first that forbids a change gives its reason. Nothing here looks back further
// than the window before and the newest change.
#include "scheduler/fleet/autoscale.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/check.h"

namespace tandem::scheduler {
namespace {

// By how much rates may be off before a change is worth its cost, as Kubernetes' autoscaler has it.
constexpr double kTolerance = 0.1;
// The same where nothing overlaps: one rollout more or less is worth little there.
constexpr double kToleranceInTurns = 0.25;
// From this share of the rollouts' time on, pauses for installs are the stall.
constexpr double kPauseStall = 0.25;
// An idle fraction that falls by less has not fallen.
constexpr double kGainLeast = 0.02;
// Rollouts that seem to deliver less of their engines' rates are not what holds the trainer up, and
// more of them would not help.
constexpr double kDeliveredLeast = 0.2;
// Tokens of a step that differ by more, up or down, are of completions of another length.
constexpr double kOtherLengths = 0.25;

std::string rounded(double amount) { return std::to_string(std::llround(amount)); }

const char* trouble_of(TrainerHealth state) {
  switch (state) {
    case TrainerHealth::kHealthy:
      return "";
    case TrainerHealth::kCrashLoop:
      return "the learner keeps dying";
    case TrainerHealth::kDown:
      return "the learner is not up";
    case TrainerHealth::kSilent:
      return "nothing is heard of the learner";
    case TrainerHealth::kSkipsSteps:
      return "the learner skips steps, since their gradients are not finite";
    case TrainerHealth::kEvaluates:
      return "evaluations ran for a large part of the window";
  }
  return "";
}

// Why nothing can be said by the rates; nullopt where they are whole.
std::optional<std::string> fault_of(const AutoscaleConfig& config, const AutoscaleInput& input) {
  const FleetRates& rates = input.rates;
  if (rates.steps < config.window_steps)
    return std::to_string(rates.steps) + " of the window's " + std::to_string(config.window_steps) +
           " steps";
  if (rates.steps <= 0 || rates.rollouts.empty()) return "the window measured no rates";
  const auto checked = check_model(model_of(rates, input.overlaps), config.headroom);
  return checked ? std::nullopt
                 : std::optional("the window's rates are of no use: " + checked.error().message);
}

// The same where each rollout is so many times as fast.
FleetModel faster(FleetModel model, double speed) {
  for (double& rate : model.rollouts_per_s) rate *= speed;
  return model;
}

// Rollouts by which the trainer would be matched if each were so many times as fast as measured.
std::int64_t matched_at(const FleetModel& model, double speed, double headroom) {
  return matched_rollouts(faster(model, speed), headroom);
}

// The trainer is idle for longer than its target, and for longer than by these rollouts.
bool waits_for_something_else(const AutoscaleConfig& config, const AutoscaleInput& input,
                              const FleetModel& model) {
  return input.rates.trainer_idle_fraction >
         std::max(config.target_trainer_idle,
                  kTolerance + steady_state(model, input.wanted).trainer_idle_fraction);
}

bool of_other_lengths(double step_tokens, const AutoscaleDelivered& known) {
  return std::abs(step_tokens - known.step_tokens) > kOtherLengths * known.step_tokens;
}

// AutoscaleState::delivered after the window. Most of the idle time has to be waits for rollouts,
// all of which were at work throughout. Completions of another length begin anew.
AutoscaleDelivered delivered(const AutoscaleConfig& config, const AutoscaleState& state,
                             const AutoscaleInput& input) {
  const FleetRates& rates = input.rates;
  AutoscaleDelivered known = state.delivered;
  if (of_other_lengths(rates.step_tokens, known)) known = {};
  const FleetModel model = model_of(rates, input.overlaps);
  const double idle = rates.trainer_idle_fraction;
  if (!input.overlaps || input.up != input.wanted ||
      rates.rollout_deaths + rates.rollout_returns > 0 ||
      input.trainer != TrainerHealth::kHealthy || model.pause_fraction >= kPauseStall ||
      input.starved_fraction < idle / 2 || input.starved_fraction <= config.target_trainer_idle ||
      !waits_for_something_else(config, input, model))
    return known;
  const Rates of = rates_of(model);
  const double given = static_cast<double>(input.wanted) * of.instance_per_s;
  const double share = (1 - idle) * of.consumed_per_s / given;
  if (share < kDeliveredLeast) return known;
  return {.share = std::min(share, 1.0), .step_tokens = rates.step_tokens};
}

class Decision {
 public:
  using enum AutoscaleHold;
  using Direction = AutoscaleState::Direction;

  Decision(const AutoscaleConfig& config, const AutoscaleState& state, const AutoscaleInput& input,
           Time now)
      : config_(config),
        state_(state),
        input_(input),
        now_(now),
        model_(
            faster(model_of(input.rates, input.overlaps), delivered(config, state, input).share)),
        matched_(matched()) {}

  AutoscaleDecision made() const {
    AutoscaleDecision decision = decided();
    decision.matched = matched_;
    return decision;
  }

 private:
  AutoscaleDecision decided() const {
    const std::int64_t wanted = input_.wanted;
    if (input_.trainer != TrainerHealth::kHealthy)
      return hold(kTrainer, trouble_of(input_.trainer));
    if (model_.pause_fraction >= kPauseStall) return hold(kWeights, pauses());
    if (wanted > config_.max) return change(config_.max, "outside of " + range());
    if (wanted < config_.min) return more(config_.min, "outside of " + range());
    if (idle() > config_.target_trainer_idle && wanted < matched_) return raise();
    if (matched_ < wanted) return lower();
    if (waits()) return hold(kOtherCause, other_cause());
    return hold(kWithinTolerance, would_match());
  }

  AutoscaleDecision raise() const {
    const std::int64_t wanted = input_.wanted;
    if (input_.overlaps && without_pauses().trainer_idle_fraction <= config_.target_trainer_idle &&
        steady_state(model_, wanted).trainer_idle_fraction > config_.target_trainer_idle)
      return hold(kWeights,
                  pauses() + ", and without these pauses " + rounded(wanted) + " would match");
    if (matched_at(model_, 1 + tolerance(), config_.headroom) <= wanted)
      return hold(kWithinTolerance, would_match());
    if (input_.up < wanted)
      return hold(kStarting, rounded(input_.up) + " of " + rounded(wanted) + " rollouts are up");
    if (no_gain())
      return hold(kNoGain, "trainer idle " + whole_percent(state_.raised->trainer_idle) +
                               " before and " + whole_percent(idle()) +
                               " after rollouts were added, which slowed each");
    // Without overlap the trainer is idle whatever the number, so that the rates alone decide.
    const std::int64_t asked =
        input_.overlaps ? matched_ : std::min(matched_, state_.matched.value_or(wanted));
    if (asked <= wanted) return hold(kOneWindow, would_match() + " by this window alone");
    return more(asked, would_match());
  }

  // Raises the number to `asked`, or as far as max and the room let it.
  AutoscaleDecision more(std::int64_t asked, const std::string& why) const {
    const std::int64_t wanted = input_.wanted;
    const std::int64_t most =
        std::min(config_.max, wanted + std::max<std::int64_t>(0, input_.room));
    if (asked <= most) return change(asked, why);
    const std::string words = why + ", and " + limit();
    AutoscaleDecision decision = most <= wanted ? hold(kAtLimit, words) : change(most, words);
    decision.at_limit = true;
    return decision;
  }

  // Where the rollouts that would be left are slower than the mean, more of them are left.
  AutoscaleDecision lower() const {
    const std::int64_t wanted = input_.wanted;
    if (waits()) return hold(kOtherCause, other_cause());
    if (!fewer_run_faster() && matched_at(model_, 1 - tolerance(), config_.headroom) >= wanted)
      return hold(kWithinTolerance, would_match());
    if (wanted == config_.min)
      return hold(kAtLimit, would_match() + ", and min is " + rounded(wanted));
    if (!state_.matched) return hold(kOneWindow, would_match() + " by this window alone");
    std::int64_t least = std::max({matched_, *state_.matched, config_.min});
    while (input_.overlaps && least < wanted &&
           steady_state(faster(model_, speed_of(least)), least).trainer_idle_fraction >
               config_.target_trainer_idle)
      ++least;
    if (least >= wanted) return hold(kOneWindow, would_match() + " by this window alone");
    return change(least, would_match());
  }

  AutoscaleDecision change(std::int64_t to, const std::string& why) const {
    const Direction direction = to > input_.wanted ? Direction::kUp : Direction::kDown;
    if (state_.change && state_.change->direction != direction &&
        now_ - state_.change->at < config_.cooldown)
      return hold(kCoolingDown, why + "; the last change was the other way and " +
                                    rounded(seconds(now_ - state_.change->at)) +
                                    " s ago, less than " + rounded(seconds(config_.cooldown)));
    return {.hold = kChanges, .wanted = to, .reason = measurement() + ", " + why};
  }
  AutoscaleDecision hold(AutoscaleHold why, const std::string& words) const {
    return {.hold = why, .wanted = input_.wanted, .reason = measurement() + ", " + words};
  }

  // How much faster each of so many rollouts would be, which run the sequences of all as far as
  // they may: a step of their engines takes a part that is fixed, and one for each sequence.
  double speed_of(std::int64_t rollouts) const {
    const StepCosts& engine = input_.rates.engine;
    if (!(engine.step_s > 0) || !(engine.sequence_s >= 0) || rollouts >= input_.wanted) return 1;
    const auto count = static_cast<double>(input_.rates.rollouts.size());
    double rate = 0, sequences = 0;  // of the mean engine at work
    for (const RolloutRate& one : input_.rates.rollouts) {
      rate += one.tokens_per_s / count;
      sequences += one.sequences / count;
    }
    const double of_sequences = std::min(1.0, rate * engine.sequence_s);
    double times = static_cast<double>(input_.wanted) / static_cast<double>(rollouts);
    if (input_.sequences_max > 0 && sequences > 0)
      times = std::clamp(static_cast<double>(input_.sequences_max) / sequences, 1.0, times);
    return times / (1 - of_sequences + times * of_sequences);
  }
  bool fewer_run_faster() const { return matched_ < matched_rollouts(model_, config_.headroom); }
  // Would match the trainer. Fewer than there are have to do so by a tenth less, and while the
  // trainer takes as much, not to be as few as were too few.
  std::int64_t matched() const {
    const std::int64_t by_rates = matched_rollouts(model_, config_.headroom);
    if (!input_.overlaps || idle() > config_.target_trainer_idle) return by_rates;
    const auto suffice = [&](std::int64_t rollouts) {
      return matched_at(model_, (1 - kTolerance) * speed_of(rollouts), config_.headroom) <=
             rollouts;
    };
    const auto& raised = state_.raised;
    const bool as_before =
        raised && rates_of(model_).consumed_per_s > (1 - kTolerance) * raised->consumed_per_s;
    std::int64_t fewest = std::min(by_rates, input_.wanted);
    while (fewest > (as_before ? raised->rollouts + 1 : 1) && suffice(fewest - 1)) --fewest;
    return fewest < input_.wanted ? std::min(fewest, by_rates) : by_rates;
  }
  bool no_gain() const {
    if (!state_.raised || !state_.change || state_.change->direction != Direction::kUp)
      return false;
    const AutoscaleRaised& before = *state_.raised;
    return idle() > before.trainer_idle - kGainLeast &&
           rates_of(model_).instance_per_s < (1 - kTolerance) * before.instance_per_s &&
           model_.step_tokens < (1 + kTolerance) * before.step_tokens;
  }
  bool waits() const { return waits_for_something_else(config_, input_, model_); }
  std::string other_cause() const { return would_match() + ": it is not for want of rollouts"; }
  SteadyState without_pauses() const {
    FleetModel model = model_;
    model.pause_fraction = 0;
    return steady_state(model, input_.wanted);
  }
  double tolerance() const { return input_.overlaps ? kTolerance : kToleranceInTurns; }
  double idle() const { return input_.rates.trainer_idle_fraction; }

  std::string measurement() const {
    return "trainer idle " + whole_percent(idle()) + " over " +
           rounded(static_cast<double>(input_.rates.steps)) + " steps";
  }
  std::string would_match() const {
    const Rates rates = rates_of(model_);
    return rounded(static_cast<double>(matched_)) + " would match (" +
           rounded(rates.consumed_per_s) + " tokens/s trained, " + rounded(rates.instance_per_s) +
           " of a rollout, headroom " + whole_percent(config_.headroom) + ")";
  }
  std::string pauses() const {
    return "weights are the stall: rollouts pause for " + whole_percent(model_.pause_fraction) +
           " of their time to install them";
  }
  std::string range() const {
    return "min " + rounded(static_cast<double>(config_.min)) + " and max " +
           rounded(static_cast<double>(config_.max));
  }
  std::string limit() const {
    if (input_.wanted + input_.room >= config_.max)
      return "max is " + rounded(static_cast<double>(config_.max));
    if (!input_.room_goes_to.empty())
      return "the room goes to " + input_.room_goes_to + ", which waits in the queue";
    return "there is room for " + rounded(static_cast<double>(input_.room)) + " more";
  }

  const AutoscaleConfig& config_;
  const AutoscaleState& state_;
  const AutoscaleInput& input_;
  const Time now_;
  const FleetModel model_;
  const std::int64_t matched_;
};

}  // namespace

bool is_sound(const AutoscaleState& state) {
  const auto amount = [](double figure) { return std::isfinite(figure) && figure >= 0; };
  const auto& [share, step_tokens] = state.delivered;
  if (!(share >= kDeliveredLeast && share <= 1) || !amount(step_tokens)) return false;
  if (!state.raised) return true;
  const auto& [rollouts, idle, instance, tokens, consumed] = *state.raised;
  return rollouts > 0 && rollouts <= kRolloutsMost && amount(idle) && amount(instance) &&
         amount(tokens) && amount(consumed);
}

bool differ(const AutoscaleDelivered& one, const AutoscaleDelivered& other) {
  if (std::abs(one.share - other.share) > kTolerance) return true;
  return one.share < 1 && of_other_lengths(one.step_tokens, other);
}

AutoscaleDecision autoscale(const AutoscaleConfig& config, const AutoscaleState& state,
                            const AutoscaleInput& input, Time now) {
  CHECK(input.wanted > 0 && config.min > 0 && config.min <= config.max);
  if (auto fault = fault_of(config, input))
    return {.hold = AutoscaleHold::kWindow, .wanted = input.wanted, .reason = *std::move(fault)};
  return Decision(config, state, input, now).made();
}

AutoscaleState after_window(const AutoscaleConfig& config, AutoscaleState state,
                            const AutoscaleInput& input, const AutoscaleDecision& decision,
                            bool carried_out, Time now) {
  using enum AutoscaleHold;
  // A window says something of the next where more or fewer rollouts would match.
  const bool says = decision.hold == kChanges || decision.hold == kOneWindow ||
                    decision.hold == kCoolingDown || decision.hold == kAtLimit;
  state.matched = says ? decision.matched : std::nullopt;
  if (decision.matched) state.delivered = delivered(config, state, input);
  if (!carried_out || decision.hold != kChanges) return state;
  const bool up = decision.wanted > input.wanted;
  state.change = {now, up ? AutoscaleState::Direction::kUp : AutoscaleState::Direction::kDown};
  if (!up) return state;
  const Rates rates =
      rates_of(faster(model_of(input.rates, input.overlaps), state.delivered.share));
  state.raised = {.rollouts = input.wanted,
                  .trainer_idle = input.rates.trainer_idle_fraction,
                  .instance_per_s = rates.instance_per_s,
                  .step_tokens = input.rates.step_tokens,
                  .consumed_per_s = rates.consumed_per_s};
  return state;
}

}  // namespace tandem::scheduler
