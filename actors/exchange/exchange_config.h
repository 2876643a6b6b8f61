// The settings of one exchange: its job as plain values, and the functions by which it reaches its
// peers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "actors/exchange/evaluation_json.h"
#include "actors/exchange/evaluation_means.h"
#include "actors/exchange/exchange_records.h"
#include "actors/exchange/file_limits.h"
#include "actors/exchange/group_filter.h"
#include "actors/messages/exchange.h"
#include "actors/messages/peers.h"
#include "runtime/actor/ref.h"
#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "scheduler/fleet/broadcast_group.h"
#include "scheduler/fleet/cost.h"
#include "scheduler/fleet/staleness.h"

namespace tandem::exchange {

// Fields of a line of a data set, as paths (find_path() in runtime/base/json.h).
struct RecordKeys {
  std::string answer = "answer", data_source = "data_source";
};

// How many lines of samples.jsonl a run writes, besides those of failures.
struct SamplesConfig {
  std::optional<std::int64_t> per_step;          // nullopt: those of one group
  std::optional<std::int64_t> evaluation = 160;  // samples of each evaluation; nullopt: all
};

// When a checkpoint is due besides the last one. Each part that is 0 asks for none.
struct SaveSchedule {
  std::int64_t steps = 0;
  std::int64_t epochs = 0;  // of as many trained groups as there are prompts
  Duration time{};          // since the checkpoint before, or since training began
};

// The job's bounds on the sequences of one rollout. Rollouts keep them; fleet_view.h names the one
// that holds the learner up.
struct SequenceBounds {
  std::int64_t running_max = 0;          // rollout.max_num_seqs; 0: not known
  std::optional<std::int64_t> held_max;  // async.max_concurrent_rollouts
};

struct ExchangeConfig {
  std::string job;  // id
  std::uint64_t seed = 0;
  scheduler::Budget budget;
  bool fixed_lag = false;
  std::int32_t n = 1;  // trajectories per group
  ExchangeRecords train, validation;
  RecordKeys record_keys;
  EvaluationPlan evaluation;  // for the prompts of `validation`
  // Position in the endless shuffled sequence of prompts -> index into `train`.
  std::function<std::uint32_t(std::int64_t position)> prompt_at;
  bool warm_start = false;
  SaveSchedule save = {};
  std::int64_t checkpoints_kept = 2;  // by the learner: with two, a damaged one costs no run
  std::int64_t test_freq = 0;         // 0: only before and after
  bool val_before_train = true;       // false: the first evaluation comes with a step
  BestBy best = {};                   // by which evaluations a checkpoint is the best one
  SamplesConfig samples = {};
  FileLimits file_limits = {};
  std::optional<double> on_failure = {};  // the reward of a failed completion; none: discarded
  GroupFilter filter_groups = {};
  std::int64_t gen_batches_max = 10;
  Duration rollout_lease = std::chrono::minutes(10);  // without a token or a result from its holder
  Duration reward_lease = std::chrono::minutes(10);   // without a result from its holder
  Epoch epoch{1};
  // For how long an exchange that follows another one waits for the actors that are away: longer
  // than the controller does, which ends most of them (adoption.h).
  Duration away_max = std::chrono::minutes(6);
  std::int64_t events_per_image = 8192;  // at least so many lie between two images of the run
  bool resume = false;                   // go on in the run that record.replay() tells of
  std::string job_yaml;                  // effective; what record.take_up() is given then
  Duration save_on_cancel{};  // a cancelled job saves a checkpoint within it; 0: it saves none
  std::int64_t fleet_window_steps = 0;  // of one FleetMeasured at least (fleet_window.h); 0: none
  std::optional<scheduler::BroadcastLimits> broadcasts = {};  // none: weights are only fetched
  scheduler::FleetDevices devices = {};
  SequenceBounds sequences = {};
  std::optional<scheduler::Pricing> pricing = {};  // none: nothing has a cost
};

// Gives a reference to a peer. A job without broadcasts never calls the one for BroadcastPeer.
template <class Peer>
using Dial = std::function<actor::Ref<typename Peer::Inbox>(const ActorId&)>;
template <class... Peers>
using DialEach = std::tuple<Dial<Peers>...>;
using Dials = messages::OfPeers<DialEach>;

// Makes all of them from one function for every peer, which is called as
// dial.operator()<Peer>(who).
template <class DialPeer>
Dials dials(const DialPeer& dial) {
  Dials all;
  messages::for_each_peer([&]<class Peer> {
    std::get<Dial<Peer>>(all) = [dial](const ActorId& who) {
      return dial.template operator()<Peer>(who);
    };
  });
  return all;
}

struct ExchangeLinks {
  Dials dials;
  actor::Ref<messages::ExchangeNotices> controller;
  // Called with an incarnation that said something no honest one says: its link ends, and with it
  // its rank.
  std::function<void(const ActorId&, const std::string& why)> refuse;
};

}  // namespace tandem::exchange
