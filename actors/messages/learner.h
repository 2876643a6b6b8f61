// The messages between an exchange and the learner (rank 0 of the gang).
//
//   exchange -> learner   PublishInitial, WarmStart, TrainStep, SaveCheckpoint
//   learner -> exchange   LearnerUp, LearnerBack, Published, WarmStartProgress, WarmStarted,
//                         StepCommitted, CheckpointSaved, LearnerFailed, LearnerWaits
//
// One TrainStep is under way at a time. A learner that starts again loads the newest complete
// checkpoint c and names it in LearnerUp; the exchange then sends the batches c, c+1, … again in
// the same order, and compares each checksum with the one that it knows.
//
// Every event begins with the ActorId of its learner, and the exchange refuses the events of
// incarnations that have ended.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/messages/rollout.h"

namespace tandem::messages {

// Makes the learner publish the weights as they are: version kInitialWeights before the warm start,
// version c after a restart from checkpoint c, and at any later step where the publisher has lost
// versions that the learner holds, or where their bytes are damaged. Answered by Published.
struct PublishInitial {
  // Versions from this one on are still wanted. The learner first publishes those of them that it
  // holds, which under a fixed lag are all since the oldest one that a group may need. Others are
  // available only if an earlier incarnation of the learner left them with the publisher.
  PolicyVersion retain = kInitialWeights;
};
TANDEM_WIRE(PublishInitial, retain)

// Makes the learner run the supervised warm start and publish version 0. Without a warm start in
// the job version 0 has the initial weights. Answered by WarmStartProgress, at last WarmStarted and
// CheckpointSaved.
struct WarmStart {};
TANDEM_WIRE_EMPTY(WarmStart)

// A scored group of a batch. The learner fetches its tokens by `payload`.
struct TrainGroup {
  GroupId group;
  std::uint32_t attempt = 0;
  wire::PayloadRef payload;
  std::vector<float> rewards;  // [n], in the order of the payload's trajectories
};
TANDEM_WIRE(TrainGroup, group, attempt, payload, rewards)

// Makes the learner train one batch at version `step`, which commits version step + 1. Answered by
// StepCommitted.
struct TrainStep {
  StepId step;
  std::vector<TrainGroup> groups;  // [B] over all parts, in an order that every repetition keeps
  bool publish = true;             // false between syncs when trigger_parameter_sync_step > 1
  // Versions from this one on are still wanted (by an evaluation, a fixed lag, or an actor that has
  // not installed yet). The learner tells WeightPublisher::retain before it publishes a new
  // version.
  PolicyVersion retain = kInitialWeights;
  // True: the list of groups goes on in another TrainStep of the same step, because the size of one
  // message is limited. Training begins with the last part.
  bool more = false;
};
TANDEM_WIRE(TrainStep, step, groups, publish, retain, more)

// Makes the learner save a checkpoint that covers every step below `step`, which must be the step
// that it would train next. Answered by CheckpointSaved.
struct SaveCheckpoint {
  StepId step;
  std::vector<StepId> keep;  // the existing checkpoints that must stay
};
TANDEM_WIRE(SaveCheckpoint, step, keep)

// Every message that the learner can get from the exchange.
using LearnerInbox = std::variant<PublishInitial, WarmStart, TrainStep, SaveCheckpoint>;

// The first event of an incarnation.
struct LearnerUp {
  ActorId from;
  std::optional<StepId> checkpoint;          // empty: nothing trained yet, not even the warm start
  std::optional<wire::WeightSource> source;  // WeightPublisher::source()
  std::vector<PolicyVersion> offered;  // WeightPublisher::offered(): those of earlier incarnations
};
TANDEM_WIRE(LearnerUp, from, checkpoint, source, offered)

// To an exchange that follows another one, which has died. The answers that the former one may not
// have heard come before it; a command that was lost is given again.
struct LearnerBack {
  ActorId from;
  StepId step;                               // that it trains next, or is training
  std::optional<StepId> training;            // set while it is at work on that step
  std::optional<wire::WeightSource> source;  // as LearnerUp's
  bool warm_started = false;                 // it has begun the warm start, and may have ended it
};
TANDEM_WIRE(LearnerBack, from, step, training, source, warm_started)

inline constexpr std::size_t kOfferedMax = 256;  // versions of one publisher
inline constexpr std::size_t kProbeMax = 64;     // log-probabilities of a version's probe

// A version that the publisher holds whole, so that rollouts can fetch it.
struct Publication {
  PolicyVersion version;
  PolicyVersion oldest_retained;  // older versions may be gone
  std::uint64_t checksum = 0;     // checksum64 of the arena
  std::uint64_t bytes = 0;
  double seconds = 0;  // that publishing took
  // Set where the learner also broadcasts the version: in which epoch, and as which broadcast.
  std::optional<wire::BroadcastPlace> broadcast;
  std::vector<PolicyVersion> offered;  // all that the publisher offers now, `version` among them
};
TANDEM_WIRE(Publication, version, oldest_retained, checksum, bytes, seconds, broadcast, offered)

// The answer to PublishInitial: the newest version is published.
struct Published {
  ActorId from;
  Publication publication;
  // The learner's log-probabilities of probe_tokens() under the version (actors/model/probe.h);
  // empty where no engine asks for them.
  std::vector<float> probe;
};
TANDEM_WIRE(Published, from, publication, probe)

// Sent a few times a second during the warm start, and left out while earlier events still wait.
struct WarmStartProgress {
  ActorId from;
  std::int32_t step = 0;
  std::int32_t steps_max = 0;
  double loss = 0;                  // the newest step's, in nats per completion token
  std::optional<double> metric;     // `warm_start.until.metric` when it was just measured
  std::uint64_t steps_skipped = 0;  // as StepReport's
};
TANDEM_WIRE(WarmStartProgress, from, step, steps_max, loss, metric, steps_skipped)

// The answer to WarmStart. The checkpoint of step 0 is already durable (LE-2).
struct WarmStarted {
  ActorId from;
  std::int32_t steps = 0;
  Publication publication;   // version 0
  bool reached = true;       // false: max_steps passed before `until` was met
  std::vector<float> probe;  // as Published has it
};
TANDEM_WIRE(WarmStarted, from, steps, publication, reached, probe)

// The figures of training on one batch. With several updates a figure is their mean, or their
// maximum where its name says so. Ratios and KL compare the current policy with the proximal one.
// Figures of a batch whose loss or gradient is not finite may be NaN or infinite.
struct StepReport {
  double loss = 0, grad_norm = 0, lr = 0;  // `grad_norm` is the global norm before clipping
  // Figures over the tokens that count in the loss. They are empty where no token that was computed
  // does, as where mask_truncated_completions leaves every completion out. `ppo_kl` is the mean of
  // proximal - current log-probability in nats, `pg_clipfrac` the share of tokens whose ratio was
  // clipped, the next two are its parts below the lower and above the upper bound, and `ratio_max`
  // is the largest ratio of current to proximal probability.
  std::optional<double> entropy, ppo_kl, pg_clipfrac, pg_clipfrac_low, pg_clipfrac_high, ratio_max;
  double seconds_update = 0, seconds_wait_payload = 0, seconds_publish = 0;
  std::uint64_t tokens_trained = 0;  // completion tokens of the batch
  std::uint64_t groups_zero_variance = 0;
  // Optimizer steps that changed no weight because their gradient was not finite. `skipped_in_row`
  // counts those up to the newest step without a break (0: the newest step was taken),
  // `steps_skipped` all since the run began, warm start included.
  std::uint64_t skipped_in_row = 0, steps_skipped = 0;
  // Updates of this batch that changed no weight because their gradient was 0: no group had
  // anything to teach. They are not among those that were skipped.
  std::uint64_t updates_without_gradient = 0;
  // The share of the batch's completion tokens that were computed, and from which the figures of
  // the policy are estimated: those of groups that learn, and of a sample of the others.
  double observed_fraction = 1;
  // The largest difference between the engine's log-probabilities and those of this step's own
  // training forward, over trajectories whose tokens and KV are all of this step's version. It is 0
  // except on a GPU without model.batch_invariant (NT-2).
  double logprob_diff_max_at_staleness_0 = 0;
  std::uint64_t tokens_at_staleness_0 = 0;
  double logprob_diff_mean = 0;   // absolute, over the tokens that were compared
  std::vector<float> advantages;  // [B * n], in batch order
  // The bytes of all batches that the run has recorded, this one among them; empty where it
  // records none (job key `record`).
  std::optional<std::uint64_t> recorded_bytes;
  std::optional<StepId> recorded_from;  // the first of them, once older ones have gone for room
  // Each is empty where the loss of the job lacks the term, or the weights, that it describes.
  std::optional<double> kl_loss, pg_clipfrac_lower, reward_kl_penalty, rollout_is_mean,
      rollout_is_eff_sample_size, rollout_is_batch_norm_factor, rollout_rs_masked_fraction,
      rollout_rs_seq_masked_fraction, rollout_is_veto_fraction,
      rollout_is_catastrophic_token_fraction;
};
TANDEM_WIRE(StepReport, loss, grad_norm, lr, entropy, ppo_kl, pg_clipfrac, pg_clipfrac_low,
            pg_clipfrac_high, ratio_max, seconds_update, seconds_wait_payload, seconds_publish,
            tokens_trained, groups_zero_variance, skipped_in_row, steps_skipped,
            updates_without_gradient, observed_fraction, logprob_diff_max_at_staleness_0,
            tokens_at_staleness_0, logprob_diff_mean, advantages, recorded_bytes, recorded_from,
            kl_loss, pg_clipfrac_lower, reward_kl_penalty, rollout_is_mean,
            rollout_is_eff_sample_size, rollout_is_batch_norm_factor, rollout_rs_masked_fraction,
            rollout_rs_seq_masked_fraction, rollout_is_veto_fraction,
            rollout_is_catastrophic_token_fraction)

// The answer to TrainStep: the weights have taken the step. If the command asked for publication,
// the version is already published (LE-1).
struct StepCommitted {
  ActorId from;
  StepId step;
  // checksum64 of the new weights, whether published or not. When a step is repeated after a
  // restart, the exchange compares it with the first one.
  std::uint64_t checksum = 0;
  std::optional<Publication> publication;  // empty: TrainStep::publish was false
  StepReport report;
  std::vector<float> probe;  // as Published has it
};
TANDEM_WIRE(StepCommitted, from, step, checksum, publication, report, probe)

// The checkpoint is durable: a learner that dies can go on from it.
struct CheckpointSaved {
  ActorId from;
  StepId step;
  std::string directory;
  std::string weights_sha256;  // parameter bytes in manifest order
};
TANDEM_WIRE(CheckpointSaved, from, step, directory, weights_sha256)

// The learner met an error that a restart would meet again, such as a full disk or a batch that no
// rank can hold. The exchange fails the job. Other errors end the process instead, and the gang is
// started again.
struct LearnerFailed {
  ActorId from;
  std::string message;
};
TANDEM_WIRE(LearnerFailed, from, message)

// The learner waits until the disk of a checkpoint, or of its record of batches, has room again.
struct LearnerWaits {
  ActorId from;
  std::string message;  // empty: it waits no more
};
TANDEM_WIRE(LearnerWaits, from, message)

// Every message that the exchange can get from the learner.
using LearnerEvents =
    std::variant<LearnerUp, Published, WarmStartProgress, WarmStarted, StepCommitted,
                 CheckpointSaved, LearnerFailed, LearnerBack, LearnerWaits>;

}  // namespace tandem::messages
