// The broadcasts of one job's weights, as its exchange sees them: the group that decides who is in
// which membership epoch (scheduler/fleet/broadcast_group.h), the unique ids and layouts of the
// epochs that form, and the last reports of the ranks about their operations. It turns the group's
// orders into messages, and epochs into words for people. Plain state: the exchange passes it the
// events of the ranks, sends the messages that decide() returns, and journals the numbers of the
// epochs.
//
// Not responsible for which version is announced to whom. The door has checked who sends a message
// (doors.h), and the exchange that the sender's incarnation is not over (EX-6).
//
// Invariants (tests/actors/exchange/broadcasts_test.cc)
//   BC-1  An actor is believed only on epochs into which it was asked, and on answers that it owes;
//         its messages about an epoch that it has left, or of an exchange before this one, have no
//         effect.
//   BC-2  People read at most one line about an epoch that ends other than by its successor, and
//         ever fewer about failures in a row; these lines say how many failures they stand for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/messages/broadcast.h"
#include "actors/messages/exchange.h"
#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "scheduler/fleet/broadcast_group.h"

namespace tandem::exchange {

// The newest report of one rank of an epoch; no operations where it has none to report.
struct RankOperations {
  std::string actor;
  std::vector<messages::EpochOperation> operations;  // oldest first
  Time at;                                           // when the report came
};

// The waits within one epoch, from the reports of its ranks. Only the oldest operation that some
// rank has been within for longer than a second counts: its ranks wait for those that have not
// entered it, or, where all have entered, for its end. The first rank gives up after operation_max.
std::vector<messages::Wait> waits_within(const std::vector<RankOperations>& ranks,
                                         Duration operation_max, Time now);

// Used in the turns of one exchange. CHECKs guard the group's own promises (BG-1, BG-3, BG-5).
class Broadcasts {
 public:
  // The exchanges before this one, whose ranks may live on, had epochs up to `epoch_last`.
  Broadcasts(std::string job, const scheduler::BroadcastLimits& limits,
             std::uint64_t epoch_last = 0);

  // Takes an event. Returns why no honest actor could send it; nullopt where the event was taken,
  // or came too late to matter.
  std::optional<std::string> take(const messages::BroadcastEvents& event, Time now);
  // gone(): this incarnation and those before it have ended. leaves(): the actor drains, and is
  // asked into no further epoch.
  void gone(const ActorId& who);
  void leaves(const ActorId& who);

  struct Message {
    ActorId to;
    messages::BroadcastInbox what;
  };
  // The messages to send now, in order. Call decide() after events, and when next_deadline() has
  // come.
  std::vector<Message> decide(Time now);
  std::optional<Time> next_deadline() const { return group_.next_deadline(); }

  // Whether this incarnation of the rollout is a member of the epoch.
  bool takes_part(const ActorId& rollout, std::uint64_t epoch) const;
  // Whether the learner may have been told to broadcast in this epoch, by this exchange or one
  // before.
  bool was_used(std::uint64_t epoch) const { return epoch > 0 && epoch <= used_last_; }

  std::vector<messages::Wait> waits(Time now) const;  // for `tandem why`
  struct News {                                       // a line for `tandem events`
    std::string text;
    messages::EventLevel level = messages::EventLevel::kInfo;
  };
  std::vector<News> take_news();  // since the last call
  std::int64_t failures() const { return failures_; }

 private:
  // One actor that has said BroadcastUp, in its newest incarnation.
  struct Peer {
    Incarnation incarnation;
    bool learner = false;
    std::uint64_t asked_last = 0;         // the newest epoch into which it was asked
    std::map<std::uint64_t, bool> asked;  // epochs not yet left; true: it was told to leave
    messages::EpochProgress progress;
    Time reported;
  };
  // An epoch that some peer was asked into and has not left.
  struct Epoch {
    std::optional<messages::EpochOpened> opened;
    bool told_to_use = false;
    std::optional<Time> in_use;  // since
    bool over = false;           // some peer was told to leave it
    std::string failure;         // the words of the rank that reported a failure first
  };

  std::optional<std::string> come_up(const messages::BroadcastUp& up, Time now);
  void come_up_again(Peer& peer, const messages::BroadcastUp& up, Time now);
  std::optional<std::string> answer(Peer& peer, const messages::EpochOpened& opened, Time now);
  std::optional<std::string> answer(Peer& peer, const messages::EpochJoined& joined, Time now);
  std::optional<std::string> answer(Peer& peer, const messages::EpochInUse& used, Time now);
  std::optional<std::string> answer(Peer& peer, const messages::EpochFailed& failed, Time now);
  std::optional<std::string> answer(Peer& peer, const messages::EpochLeft& left, Time now);
  std::optional<std::string> answer(Peer& peer, const messages::EpochProgress& progress, Time now);
  Message carry_out(const scheduler::OpenOrder& order, Time now);
  Message carry_out(const scheduler::JoinOrder& order, Time now);
  Message carry_out(const scheduler::UseOrder& order, Time now);
  Message carry_out(const scheduler::LeaveOrder& order, Time now);
  Peer& ask_into(const ActorId& to, std::uint64_t epoch);
  void forget_empty_epochs();
  void note_use(Time now);
  void note_end(std::uint64_t epoch, const std::string& why, Time now);
  bool everybody_takes_part() const;

  const std::string job_;
  const std::uint64_t former_last_;  // the last epoch of the exchanges before
  const Duration operation_max_;     // weight_broadcast.timeout_s, as the time of an epoch to form
  scheduler::BroadcastGroup group_;
  std::map<std::string, Peer> peers_;  // by actor
  std::map<std::uint64_t, Epoch> epochs_;
  std::uint64_t used_last_;
  std::optional<std::uint64_t> in_use_;  // as the newest of the news say
  std::int64_t failures_ = 0;
  std::int64_t failures_in_row_ = 0;  // since an epoch was last in use for a while
  std::vector<News> news_;
};

}  // namespace tandem::exchange
