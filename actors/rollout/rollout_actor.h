// The rollout actor turns prompts into trajectories: it drives an Engine one step at a time.
// Between two steps messages come in, weights are fetched, and finished groups go out. The actor
// decides nothing about what runs (the exchange and the engine's queue do) and computes nothing.
//
// Invariants
//   RO-1  Weights change between steps, never inside one, but for an engine that is installing()
//         them in its steps. After each change, and before the first token by the new weights,
//         Installed tells the version and the checksum of what was copied.
//   RO-2  A group goes out by Generated only once its payload is stored, at most once.
//   RO-3  Every assigned group ends in one of Generated, Unservable, or a HandBack.
//   RO-4  At most kWritesInFlight payload writes are outstanding, however fast the engine is.
//   RO-5  Every stored payload is told of, also of a group that was handed back while it was being
//         stored: the exchange refuses the group, and releases the payload.
//   RO-6  An exchange that follows another one hears of each group that is under way, and of each
//         answer that the former one had not journalled.
//
// A payload that cannot be stored after kWriteAttempts fails the actor: its leases are lost, and
// the exchange assigns the groups again. One for which the disk has no room waits for it, and one
// that meets no answer for the network.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "actors/messages/rollout.h"
#include "actors/rollout/engine.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/link/outbox.h"
#include "runtime/payload/payload_io.h"
#include "runtime/weights/weight_ends.h"

namespace tandem::rollout {

inline constexpr int kWritesInFlight = 4;           // batches of payloads being stored
inline constexpr std::size_t kGroupsPerWrite = 64;  // in one batch, at most
inline constexpr int kWriteAttempts = 6;

// These values are fixed for the actor's incarnation.
struct RolloutConfig {
  ActorId self;                 // how it signs its messages
  std::int32_t group_size = 1;  // rollout.n
  std::int32_t capacity = 0;    // trajectories at once; 0: capacity_default()
  std::int32_t max_num_seqs = 256;
  Duration stats_interval = std::chrono::seconds(1);
  // The pause before messages and writes that failed are tried again.
  Duration retry_interval = std::chrono::milliseconds(50);
  Duration damaged_interval = std::chrono::seconds(1);  // a damaged version is read whole each time
  // Bytes of weights copied between two steps.
  std::uint64_t copy_bytes_per_step = std::uint64_t{8} << 20;
};

// The capacity of an actor whose job file names none, in trajectories: whole groups, at least one.
// It is half as many sequences again as the engine runs at once, so that the next ones are there
// when a place is free.
std::int32_t capacity_default(std::int32_t max_num_seqs, std::int32_t group_size);

struct Step {};  // sent by the actor to itself while there is work

// Another exchange follows the one that has died. From the process, once its ports can be reached.
struct MeetAgain {};

// Sent once and first, by the code that spawned the actor. `self` is the actor's own mailbox, which
// the actor cannot know before it is spawned.
struct StartRollout {
  actor::Ref<std::variant<Step>> self;
};

// Handlers run in the actor's turns, one at a time; the engine and the subscriber are called in
// them alone.
class RolloutActor {
 public:
  using Inbox =
      std::variant<StartRollout, messages::Assign, messages::Evaluate, messages::NewVersion,
                   messages::HandBack, messages::GroupsKept, MeetAgain, Step>;

  // The actor's connections to the rest of the process.
  struct Connections {
    actor::Ref<messages::RolloutEvents> exchange;
    payload::PayloadWriter write;
    // This function is told the actor's phase ("idle", "submit", "decode", "update") at least once
    // per step; may be empty. A hang in "submit" or "decode" is put down to the prompts, so weights
    // are never read or installed in these.
    std::function<void(const char* phase, Time now)> progress;
  };
  // `weights` is shared with the actor that leads the subscriber's part in broadcasts, if there is
  // one.
  RolloutActor(const RolloutConfig& config, std::unique_ptr<Engine> engine,
               std::shared_ptr<weights::WeightSubscriber> weights, Connections connections);
  ~RolloutActor();  // logs its totals, and cancels a copy that is under way

  void handle(actor::Context& cx, StartRollout start);
  void handle(actor::Context& cx, messages::Assign assign);
  void handle(actor::Context& cx, messages::Evaluate evaluate);
  void handle(actor::Context& cx, messages::NewVersion offer);
  void handle(actor::Context& cx, messages::HandBack hand_back);
  void handle(actor::Context& cx, messages::GroupsKept kept);
  void handle(actor::Context& cx, MeetAgain meet);
  void handle(actor::Context& cx, Step step);

 private:
  struct Write {  // a batch of finished groups on its way to the store
    std::vector<messages::GroupPayload> groups;
    int attempts = 0;
    std::optional<Time> unanswered_since;
    std::optional<Time> no_room_since = {};  // the disk cannot be written
  };

  // One round: fetches weights, runs a step, collects its results, and plans the next round if
  // there is more to do. At most one round is planned at a time.
  void advance(actor::Context& cx);
  void advance_later(actor::Context& cx, Duration delay);
  Duration pull_weights(actor::Context& cx);
  // Holds a version that is read in place only while it can be installed soon; see the source.
  void hold_while_installable(actor::Context& cx);
  std::optional<PolicyVersion> wish();  // the update to begin now, if any
  void begin_update(actor::Context& cx, PolicyVersion version);
  // Gives the update to `version` up and lets wish() ask again after retry_interval, or after
  // damaged_interval where its bytes are not those that were published.
  void retry_update(actor::Context& cx, PolicyVersion version, const Error& why);
  bool may_install() const;  // the version is whole here, and no running request forbids it
  std::span<const std::byte> arrived() const;  // empty if the version was withdrawn
  Duration install(actor::Context& cx);
  // updating_ is what the engine computes with from now on, after so long a pause.
  void installed(actor::Context& cx, Duration pause);
  Duration step_engine(actor::Context& cx);
  void collect(actor::Context& cx);
  void store_finished(actor::Context& cx);
  void store(actor::Context& cx, std::shared_ptr<Write> write);
  void stored(actor::Context& cx, std::shared_ptr<Write> write,
              const Result<std::vector<wire::PayloadRef>>& refs);
  void send_stats(actor::Context& cx);
  void note(const char* phase, Time now) const;
  void log_leases(const char* event) const;
  std::int32_t capacity() const;

  const RolloutConfig config_;
  const std::unique_ptr<Engine> engine_;
  const std::shared_ptr<weights::WeightSubscriber> weights_;
  const Connections connections_;
  actor::Ref<std::variant<Step>> self_;

  std::optional<VersionOffer> offer_;
  std::optional<PolicyVersion> updating_;  // the update that the engine has begun
  std::optional<Time> installing_since_;   // the engine passes updating_ on (Engine::installing)
  struct FailedUpdate {                    // and not made good since
    PolicyVersion version;
    Time since;
    std::string message;  // a repetition is not logged
  };
  std::optional<FailedUpdate> failed_update_;
  bool copying_ = false;        // the subscriber copies or verifies updating_
  bool in_place_ = false;       // updating_ is read where the publisher left it
  bool let_go_ = false;         // begin updating_ anew once it may be installed
  std::span<std::byte> sink_;   // the buffer that updating_ is copied into
  bool update_waits_ = false;   // an update failed; a timer tries again
  bool advance_waits_ = false;  // a Step or a timer that leads to advance() is under way
  std::deque<messages::GroupPayload> finished_;  // not yet being stored
  struct Writes {
    std::set<std::shared_ptr<Write>> under_way;
    std::string no_room;  // why the newest one waits, where the disk is full
  } writes_;
  link::OutboxTo<messages::RolloutEvents> outbox_;
  messages::HeldGroups<messages::GroupHeader> held_;
  double busy_seconds_ = 0;
  struct EngineSteps {
    FitSums seconds;                        // as RolloutStats has them
    std::uint64_t tokens = 0, prompts = 0;  // of the engine, after the last step
  } steps_;
  bool generated_ = false;  // the first token was logged
  struct Totals {           // for the log
    std::uint64_t leased = 0, generated = 0, unservable = 0, installs = 0;
  } totals_;
};

static_assert(actor::Actor<RolloutActor>);

}  // namespace tandem::rollout
