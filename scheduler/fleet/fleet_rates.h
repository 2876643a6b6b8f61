// The rates of a job's two pools, as a run has measured them over its newest steps (a window) or as
// a user states them: what sizing.h computes with. Plain data; tokens are completion tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/fleet/trainer_wait.h"

namespace tandem::scheduler {

// One rollout over the window.
struct RolloutRate {
  std::string actor;            // "arith-1/rollout/0"
  double tokens_per_s = 0;      // generated per second of work of its engine; > 0
  double busy_fraction = 0;     // of the window: its engine was at work
  double install_fraction = 0;  // of the window: decoding paused while weights were installed
  double sequences = 0;         // decoded at once, the mean over its engine's steps; 0: not known
};

// A decode step of the mean engine takes step + sequence · (sequences that run) + prompt_token ·
// (tokens of prompts that begin with it), in seconds: a fit to the steps of the window.
struct StepCosts {
  double step_s = 0, sequence_s = 0, prompt_token_s = 0;
};

struct FleetRates {
  std::int64_t steps = 0;             // committed in the window; > 0
  double seconds = 0;                 // the length of the window; > 0
  std::vector<RolloutRate> rollouts;  // by name; without those that generated nothing
  // The learner's seconds per step, its waits for samples left out, and the tokens that it trained
  // per step.
  double step_seconds = 0, step_tokens = 0;
  double completions_per_step = 0;
  double generated_per_trained = 1;  // tokens generated per token trained
  StepCosts engine;                  // zeros before a rollout has told of a step
  double install_seconds = 0;        // the mean pause of one install; 0: there was none
  double install_bytes = 0;          // the mean of what was fetched for one; 0: read in place
  // Means: from a version's announcement until it was installed, its pause left out; from a
  // group's reward lease to its scores; from a step's commit to the next batch, where that was
  // there already.
  double fetch_seconds = 0, score_seconds = 0, turnaround_seconds = 0;
  std::optional<double> prefix_hit_ratio;  // tokens found per token looked up; none: no look-ups
  double trainer_idle_fraction = 0, rollout_idle_fraction = 0;  // measured in the window
  // In the window: rollouts that died, and such as drained to come back elsewhere.
  std::int64_t rollout_deaths = 0, rollout_returns = 0;
  WaitSeconds waits{};        // of the learner, in each step; zeros where they are not known
  bool since_resize = false;  // the window begins where rollouts were last added or taken away
};

}  // namespace tandem::scheduler
