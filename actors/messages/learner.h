// The conversation of an exchange and the learner (rank 0 of its gang).
//
//   exchange -> learner   PublishInitial, WarmStart, TrainStep, SaveCheckpoint
//   learner -> exchange   LearnerUp, Published, WarmStartProgress, WarmStarted, StepCommitted,
//                         CheckpointSaved, LearnerFailed
//
// One TrainStep is under way at a time. A learner that starts again loads the newest complete
// checkpoint c and says so in LearnerUp; the exchange then sends the batches c, c+1, … again in the
// same order, and compares each checksum with the one that it knows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/messages/rollout.h"

namespace tandem::actors {

// Publish the weights as they are: kInitialWeights before the warm start, after a resume from
// checkpoint c version c. Answered by Published.
struct PublishInitial {
  // Versions from this one on are still wanted. Those that the checkpoint holds (under a fixed lag:
  // all of them) are published first; others are there if an earlier life of the learner left them.
  PolicyVersion retain = kInitialWeights;
};
TANDEM_WIRE(PublishInitial, retain)

struct WarmStart {};  // run the supervised warm start (nothing, if the job has none), publish 0
TANDEM_WIRE_EMPTY(WarmStart)

struct TrainGroup {
  GroupId group;
  std::uint32_t attempt = 0;
  runtime::PayloadRef payload;
  std::vector<float> rewards;  // [n]
};
TANDEM_WIRE(TrainGroup, group, attempt, payload, rewards)

struct TrainStep {  // trains at version `step`, commits step + 1
  StepId step;
  std::vector<TrainGroup> groups;  // [B] over all parts, in an order that every repetition keeps
  bool publish = true;             // false between syncs when trigger_parameter_sync_step > 1
  // Versions from this one on are still wanted (an evaluation, a fixed lag, an actor that has not
  // installed yet): given to WeightPublisher::retain before anything new is published.
  PolicyVersion retain = kInitialWeights;
  // The list goes on in another TrainStep of this step: one message holds only so many bytes.
  bool more = false;
};
TANDEM_WIRE(TrainStep, step, groups, publish, retain, more)

struct SaveCheckpoint {  // covers every step below `step`
  StepId step;
};
TANDEM_WIRE(SaveCheckpoint, step)

using LearnerInbox = std::variant<PublishInitial, WarmStart, TrainStep, SaveCheckpoint>;

struct LearnerUp {
  Sender from;
  std::optional<StepId> checkpoint;  // none: nothing trained yet, not even the warm start
  std::optional<runtime::WeightSource> source;  // WeightPublisher::source()
};
TANDEM_WIRE(LearnerUp, from, checkpoint, source)

struct Publication {
  PolicyVersion version;
  PolicyVersion oldest_retained;
  std::uint64_t checksum = 0;  // checksum64 of the arena
  std::uint64_t bytes = 0;
  double seconds = 0;
  std::optional<runtime::BroadcastPlace> broadcast;  // the learner broadcasts it there as well
};
TANDEM_WIRE(Publication, version, oldest_retained, checksum, bytes, seconds, broadcast)

struct Published {  // the answer to PublishInitial
  Sender from;
  Publication publication;
};
TANDEM_WIRE(Published, from, publication)

struct WarmStartProgress {
  Sender from;
  std::int32_t step = 0;
  std::int32_t steps_max = 0;
  double loss = 0;
  std::optional<double> metric;     // `warm_start.until.metric` when it was just measured
  std::uint64_t steps_skipped = 0;  // as StepReport's
};
TANDEM_WIRE(WarmStartProgress, from, step, steps_max, loss, metric, steps_skipped)

struct WarmStarted {
  Sender from;
  std::int32_t steps = 0;
  Publication publication;  // version 0
  bool reached = true;      // false: max_steps passed before `until` was met
};
TANDEM_WIRE(WarmStarted, from, steps, publication, reached)

// What training on one batch showed; of several updates their mean, but for maxima. Ratios and KL
// are of the clipped tokens' policy pair. Figures of a batch whose loss or gradient is not finite
// may be NaN or infinite.
struct StepReport {
  double loss = 0, entropy = 0, ppo_kl = 0, pg_clipfrac = 0, grad_norm = 0, lr = 0;
  double seconds_update = 0, seconds_wait_payload = 0, seconds_publish = 0;
  std::uint64_t tokens_trained = 0;  // completion tokens of the batch
  std::uint64_t groups_zero_variance = 0;
  // Optimizer steps that changed no weight because their gradient was not finite: up to this one
  // without a break (0: this one was taken), and since the run began, its warm start included.
  std::uint64_t skipped_in_row = 0, steps_skipped = 0;
  // Between the engine's log-probabilities and those of this step's own training forward, over
  // trajectories whose tokens and KV are all of this step's version.
  double logprob_diff_max_at_staleness_0 = 0;
  std::uint64_t tokens_at_staleness_0 = 0;
  double logprob_diff_mean = 0;   // absolute, over the tokens that were compared
  std::vector<float> advantages;  // [B * n], in batch order
  double ratio_max = 0;           // of current to proximal, of a token
  // Without the term of the loss, or the weights, that they are of: none.
  std::optional<double> kl_loss, pg_clipfrac_lower, reward_kl_penalty, rollout_is_mean,
      rollout_is_eff_sample_size;
};
TANDEM_WIRE(StepReport, loss, entropy, ppo_kl, pg_clipfrac, grad_norm, lr, seconds_update,
            seconds_wait_payload, seconds_publish, tokens_trained, groups_zero_variance,
            skipped_in_row, steps_skipped, logprob_diff_max_at_staleness_0, tokens_at_staleness_0,
            logprob_diff_mean, advantages, ratio_max, kl_loss, pg_clipfrac_lower, reward_kl_penalty,
            rollout_is_mean, rollout_is_eff_sample_size)

struct StepCommitted {
  Sender from;
  StepId step;
  std::uint64_t checksum = 0;  // of the new weights, whether published or not
  std::optional<Publication> publication;
  StepReport report;
};
TANDEM_WIRE(StepCommitted, from, step, checksum, publication, report)

struct CheckpointSaved {
  Sender from;
  StepId step;
  std::string directory;
  std::string weights_sha256;  // parameter bytes in manifest order
};
TANDEM_WIRE(CheckpointSaved, from, step, directory, weights_sha256)

// Something that a restart would meet again (a full disk, a batch that no rank can hold).
struct LearnerFailed {
  Sender from;
  std::string message;
};
TANDEM_WIRE(LearnerFailed, from, message)

using LearnerEvents = std::variant<LearnerUp, Published, WarmStartProgress, WarmStarted,
                                   StepCommitted, CheckpointSaved, LearnerFailed>;

}  // namespace tandem::actors
