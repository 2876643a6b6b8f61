// The inputs and the effects of an exchange's core (exchange_core.h): messages of peers and answers
// to the core's own effects go in, effects come out. The actor around the core (exchange.h) carries
// effects out in their order, all of them before it hands the core the next message. The answer to
// an effect, and an input that says why one failed, enters the core at once, before the effects
// that follow in the same list are carried out.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "actors/exchange/exchange_config.h"
#include "actors/exchange/group_history.h"
#include "actors/exchange/reward_extras.h"
#include "actors/exchange/run_image.h"
#include "actors/exchange/run_record.h"
#include "actors/exchange/state/journal_event.h"
#include "actors/messages/exchange.h"
#include "actors/messages/peers.h"
#include "runtime/actor/ref.h"
#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/wire/payload_ref.h"

namespace tandem::exchange {

// Generated, with those of its payloads that are in the payload store exactly as it says.
struct GroupsGenerated {
  messages::Generated message;
  std::set<wire::PayloadRef> payloads;
};
struct Decide {};        // the messages that were waiting are handled: decide, journal
struct DeadlineCame {};  // the answer to WakeAtDeadline
struct MessagesSent {};  // after Decide, its journal, and one attempt to send what waits

// Why the actor could not carry an effect out. Each of them ends the job.
struct JournalFailed {  // nothing of the last Decide was sent
  std::string message;
};
struct RecordFailed {  // a file of the run, or its history
  std::string message;
};
struct SendFailed {  // a message that no link can carry
  std::string message;
};

struct HistoryRead {  // the answer to ReadHistory
  GroupHistory history;
};
struct RunTakenUp {};  // the answer to TakeUpRun
// A file has reached its limit for the first time: the answer to a write of a line.
struct SamplesAtLimit {};
struct MetricsAtLimit {};
struct RecordWarned {  // RunRecord::take_warnings()
  std::string text;
};

// A message of a peer as the core hears it.
template <class Event>
using AsHeard =
    std::conditional_t<std::is_same_v<Event, messages::Generated>, GroupsGenerated, Event>;
template <class Events>
struct HeardOf;
template <class... Events>
struct HeardOf<std::variant<Events...>> {
  using type = std::variant<AsHeard<Events>...>;
};

using ExchangeInput = messages::Joined<
    HeardOf<messages::PeerEvents>::type,
    std::variant<messages::ActorDown, messages::ActorSilent, messages::DrainActor, messages::EndJob,
                 Decide, DeadlineCame, MessagesSent, JournalFailed, RecordFailed, SendFailed,
                 HistoryRead, RunTakenUp, SamplesAtLimit, MetricsAtLimit, RecordWarned>>::type;

// A message leaves after the next Decide, once that one's Journal, if any, is written (EX-1). A
// list that is too long for the link leaves in parts.
template <class Peer>
struct To {
  ActorId to;
  typename Peer::Inbox message;
};
template <class... Peers>
using ToEach = std::variant<To<Peers>...>;
struct Notify {  // the controller
  messages::ExchangeNotices notice;
};
struct Refuse {  // this incarnation said something that no honest one says
  ActorId who;
  std::string why;
};

struct DecideSoon {};  // Decide, once for all that is waiting now
struct DecideAt {      // Decide then
  Time at;
};
struct WakeAtDeadline {  // DeadlineCame then
  Time at;
};

struct Journal {
  std::vector<JournalEvent> events;  // in order
  Durability durability = Durability::kKill;
  std::optional<RunImage> image;  // of the run after these events
};

struct WriteMetrics {  // a line of metrics.jsonl
  std::string line;
};
struct WriteSample {  // a line of samples.jsonl
  std::string line;
};
// Writes the samples of one group of a step; writes nothing where the group's payload cannot be
// read. `step` counts as metrics do: the first step that is trained is step 1.
struct WriteStepSamples {
  StepId step;
  ExchangeRecord record;  // the record of the group's prompt
  RecordKeys keys;
  wire::PayloadRef payload;
  std::vector<float> rewards;
  std::vector<float> advantages;  // for the same trajectories; may be fewer than rewards
  std::vector<messages::FinishReason> finishes;
  ScoreNotes notes;
  std::size_t rows_max = 0;  // trajectories that are written
};
// Writes the sample of a trajectory that got no score. A sample that cannot be written ends no job:
// the journal has the discard.
struct WriteFailureSample {
  StepId step;  // the next one that is trained, counted as WriteStepSamples'
  wire::PayloadRef payload;
  std::size_t trajectory = 0;
  ExchangeRecord record;  // the record of the group's prompt
  RecordKeys keys;
  std::string reason;
  std::optional<double> reward;  // the reward that it has nevertheless, by reward.on_failure
};

struct NameBest {  // the checkpoint that is the best one now, which is saved
  StepId step;
};

struct ReleasePayload {
  wire::PayloadRef payload;
};
// Releases the payloads that say themselves that `writer` made them for a lease that it holds.
// Another's payload, whose message is on its way, stays.
struct ReleaseWritten {
  ActorId writer;
  std::set<wire::PayloadRef> payloads;
};

struct SettlePayloads {};  // PayloadStore::settle()
struct ReadHistory {};     // reads the history of the run's earlier incarnations
struct TakeUpRun {         // goes on in the run directory, at a checkpoint
  std::string job_yaml;
  StepId checkpoint;
};
struct EndRun {
  std::optional<std::string> result;  // for result.json
  messages::JobEnded ended;           // kFailed in place of kSucceeded where that cannot be written
};

using ExchangeEffect = messages::Joined<
    messages::OfPeers<ToEach>,
    std::variant<Notify, Refuse, DecideSoon, DecideAt, WakeAtDeadline, Journal, WriteMetrics,
                 WriteSample, WriteStepSamples, WriteFailureSample, NameBest, ReleasePayload,
                 ReleaseWritten, SettlePayloads, ReadHistory, TakeUpRun, EndRun>>::type;

}  // namespace tandem::exchange
