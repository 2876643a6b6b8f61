// A rollout in virtual time: the queue and the rules for weights of every engine (WorkQueue), and
// the time that a continuous batch takes, by its costs. It speaks the messages of a real rollout
// (messages/rollout.h). A message that comes while a decode step is under way is seen after it.
//
// Not modelled: memory for keys and values (max_num_seqs bounds the batch), the copying of weights
// beside decoding, evaluations.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/forecast/continuous_batch.h"
#include "actors/forecast/costs.h"
#include "actors/forecast/host_load.h"
#include "actors/forecast/lengths.h"
#include "actors/forecast/state_clock.h"
#include "actors/forecast/virtual_store.h"
#include "actors/messages/rollout.h"
#include "actors/rollout/work_queue.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"

namespace tandem::forecast {

// The work of one rollout, all its incarnations together, for the figures of the forecast.
struct RolloutTally {
  std::int64_t tokens = 0;  // also of groups that were never finished
  StateClock busy, installing, up;
  std::int64_t deaths = 0;
};

struct RolloutModelConfig {
  ActorId self;
  EngineCosts costs;
  std::int32_t capacity = 1, max_num_seqs = 1;  // sequences
  std::int32_t prompt_tokens = 0, response_most = 1;
  bool partial_rollout = true, recompute_kv = false, prefix_caching = true;
  double threads = 1;  // of the host, while it decodes
  Duration stats_interval = std::chrono::minutes(1);
};

// The parts of the fleet that its actors share; they outlive the actors.
struct SharedFleet {
  HostLoad& host;
  VirtualPayloads& payloads;
  const Lengths& lengths;
};

// The checksum of a version's weights, as every actor of a forecast computes it.
std::uint64_t checksum_of(PolicyVersion version);

class RolloutModel {
 public:
  struct Begin {};  // from whoever made it
  using Inbox = std::variant<Begin, messages::Assign, messages::Evaluate, messages::NewVersion,
                             messages::HandBack, messages::GroupsKept>;

  RolloutModel(RolloutModelConfig config, SharedFleet shared, std::shared_ptr<RolloutTally> tally,
               actor::Ref<messages::RolloutEvents> exchange);
  ~RolloutModel();

  void handle(actor::Context& cx, Begin);
  void handle(actor::Context& cx, messages::Assign assign);
  void handle(actor::Context& cx, messages::Evaluate evaluate);
  void handle(actor::Context& cx, messages::NewVersion offer);
  void handle(actor::Context& cx, messages::HandBack hand_back);
  void handle(actor::Context&, messages::GroupsKept) {}

 private:
  struct Group {  // that has begun
    rollout::Request request;
    std::vector<std::int32_t> lengths;
    std::size_t started = 0, ended = 0;  // of its sequences
    std::vector<PolicyVersion> oldest;   // by sequence
  };
  struct Segment {                     // decode steps of one batch, one after the other
    double prefill_s = 0, step_s = 0;  // with all the cores that are wanted
    std::int64_t steps = 0;
    PieceId piece;

    double work_s() const { return prefill_s + step_s * static_cast<double>(steps); }
  };

  void send(messages::RolloutEvents event);
  void send_stats(actor::Context& cx);
  void look(actor::Context& cx);     // something has changed
  void advance(actor::Context& cx);  // between two steps
  bool pause_to_install(actor::Context& cx);
  void fill();
  void decode(actor::Context& cx);
  double steps_done() const;  // of the segment
  void end_segment(actor::Context& cx);
  void finish(std::uint64_t number);
  double context_tokens() const;

  const RolloutModelConfig config_;
  const SharedFleet shared_;
  const std::shared_ptr<RolloutTally> tally_;
  const actor::Ref<messages::RolloutEvents> exchange_;
  WorkerId worker_;  // of the host
  rollout::WorkQueue queue_;
  ContinuousBatch batch_;
  std::map<std::uint64_t, Group> groups_;  // by number, in the order of their starts
  std::uint64_t numbers_ = 0;
  std::optional<rollout::VersionOffer> offer_;
  std::optional<PolicyVersion> updating_;
  bool arrived_ = false;     // `updating_` may be installed
  bool installing_ = false;  // decoding pauses
  std::optional<Segment> segment_;
  double prefill_s_ = 0;            // of prompts, and of contexts to recompute, with the next step
  std::int64_t tokens_before_ = 0;  // by the incarnations before this one
  double busy_before_s_ = 0;
  messages::RolloutStats stats_;
};

static_assert(actor::Actor<RolloutModel>);

}  // namespace tandem::forecast
