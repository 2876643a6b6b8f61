// The reward actor judges finished groups: it fetches their payloads, passes every completion to
// its Verifier, and answers group by group. How a completion is judged is the matter of verifier.h.
//
// Invariants
//   RW-1  Every trajectory of every group is answered exactly once, by Scored or ScoreFailed.
//   RW-2  A completion that was not judged is never answered by a score.
//   RW-3  The first trouble of the verifier's program is told at once, then at most one in
//         trouble_interval: the newest.
//
// A payload that cannot be fetched after kReadAttempts fails the actor; the exchange then asks
// another one. A payload that arrives and makes no sense is a failure of its group.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "actors/messages/payload.h"
#include "actors/messages/reward.h"
#include "actors/reward/verifier.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/link/outbox.h"
#include "runtime/payload/payload_io.h"

namespace tandem::reward {

inline constexpr int kReadAttempts = 6;
inline constexpr std::int64_t kScoresPerLogLine = 10'000;

// These values are fixed for the actor's incarnation. `prompt_key` and `answer_key` are paths in a
// dataset record (find_path() in runtime/base/json.h).
struct RewardConfig {
  ActorId self;                 // how it signs its messages
  std::int32_t capacity = 256;  // groups at once
  std::int32_t group_size = 1;  // n: the failures that answer a group whose payload is damaged
  std::string prompt_key = "prompt";
  std::string answer_key = "answer";
  std::string data_source_key = "data_source";
  // The pause before messages and reads that failed are tried again.
  Duration retry_interval = std::chrono::milliseconds(50);
  Duration trouble_interval = std::chrono::seconds(3);
};

struct StartReward {};  // sent once and first by the actor's spawner; answered by RewardUp
// Another exchange follows the one that has died; answered by RewardBack.
struct MeetAgain {};

// Handlers run in the actor's turns; the verifier is called, and calls back, in them alone.
class RewardActor {
 public:
  using Inbox = std::variant<StartReward, messages::ScoreGroups, messages::ScoreTexts,
                             messages::ScoresKept, MeetAgain>;

  // The actor's connections to the rest of the process.
  struct Connections {
    actor::Ref<messages::RewardEvents> exchange;
    payload::PayloadReader read;
    // This function is told the actor's phase ("idle", "score"); may be empty.
    std::function<void(const char* phase, Time now)> progress;
  };
  RewardActor(const RewardConfig& config, std::unique_ptr<Verifier> verifier,
              Connections connections);
  ~RewardActor();  // logs its totals

  void handle(actor::Context& cx, StartReward start);
  void handle(actor::Context& cx, messages::ScoreGroups work);
  void handle(actor::Context& cx, messages::ScoreTexts work);
  void handle(actor::Context& cx, messages::ScoresKept kept);
  void handle(actor::Context& cx, MeetAgain meet);

 private:
  struct OpenGroups;  // one ScoreGroups message whose payloads are being fetched
  struct OpenGroup;   // one group whose trajectories are being judged
  struct OpenTexts;

  void read(actor::Context& cx, std::shared_ptr<OpenGroups> work);
  void judge_group(actor::Context& cx, const messages::GroupToScore& group,
                   const std::string& bytes);
  // Answers a group without judging it: `trajectories` times ScoreFailed with the reason.
  void fail_group(actor::Context& cx, const messages::GroupToScore& group, std::size_t trajectories,
                  const std::string& why);
  void completed(actor::Context& cx, messages::GroupScore score);
  void send_completed(actor::Context& cx);
  void note(const char* phase, Time now) const;
  void count(Time now, const messages::TrajectoryScore& score);
  void trouble(actor::Context& cx, messages::RewardTrouble trouble);
  void tell_trouble(actor::Context& cx);

  const RewardConfig config_;
  const std::unique_ptr<Verifier> verifier_;
  const Connections connections_;
  link::OutboxTo<messages::RewardEvents> outbox_;
  std::vector<messages::GroupScore> completed_;  // not yet sent: the scores of one turn go together
  bool gathering_ = false;
  // Leases whose scores are not known to be journalled, and of those the scores that were told.
  messages::HeldGroups<messages::GroupScore> held_;
  messages::RewardTrouble trouble_;  // the newest
  bool trouble_told_ = true;
  bool trouble_pause_ = false;  // no trouble is told until a timer ends the pause
  Time up_, last_score_;
  std::int64_t groups_ = 0, scored_ = 0, failed_ = 0;  // groups answered, completions
};

static_assert(actor::Actor<RewardActor>);

}  // namespace tandem::reward
