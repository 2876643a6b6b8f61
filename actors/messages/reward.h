// The messages between an exchange and a reward actor.
//
//   exchange -> reward   ScoreGroups, ScoreTexts, ScoresKept
//   reward -> exchange   RewardUp, RewardBack, GroupsScored, TextsScored, RewardTrouble
//
// A score and a failure are two types (TrajectoryScore), so that a failure can never train as a
// reward of 0. Each trajectory that was sent is answered once, by one of the two (RW-1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/messages/held_group.h"
#include "actors/messages/rollout.h"

namespace tandem::messages {

// A group of the training data, under a lease of the receiver.
struct GroupToScore {
  GroupId group;
  std::uint32_t attempt = 0;  // the number of this lease, which the answer repeats
  std::string data;           // the dataset's record, one JSON object, untouched
  wire::PayloadRef payload;   // where the reward actor fetches the texts
};
TANDEM_WIRE(GroupToScore, group, attempt, data, payload)

// Gives the reward actor groups to score, at most as many as its capacity allows.
struct ScoreGroups {
  std::vector<GroupToScore> groups;
};
TANDEM_WIRE(ScoreGroups, groups)
constexpr auto cut_at(const ScoreGroups&) { return &ScoreGroups::groups; }

// One completion of an evaluation. Texts of evaluations travel in the message: they are in no
// ledger and have no payload.
struct TextToScore {
  // The prompt and its completion, as in EvaluationText; the answer repeats both.
  std::int32_t index = 0, sample = 0;
  std::string data;
  // Decoded, without special tokens and stop strings.
  std::string text;
  bool truncated = false;
  std::optional<std::string> special_text;  // as Trajectory has it
};
TANDEM_WIRE(TextToScore, index, sample, data, text, truncated, special_text)

// Gives the reward actor completions of an evaluation to score.
struct ScoreTexts {
  EvaluationId evaluation;
  std::vector<TextToScore> texts;
};
TANDEM_WIRE(ScoreTexts, evaluation, texts)
constexpr auto cut_at(const ScoreTexts&) { return &ScoreTexts::texts; }

// As GroupsKept, for the scores of these groups.
struct ScoresKept {
  std::vector<GroupId> groups;
};
TANDEM_WIRE(ScoresKept, groups)
constexpr auto cut_at(const ScoresKept&) { return &ScoresKept::groups; }

// Every message that a reward actor can get from the exchange.
using RewardInbox = std::variant<ScoreGroups, ScoreTexts, ScoresKept>;

inline constexpr std::size_t kExtraBytesMax = 4096;  // the limit of Scored::extra

// The verifier's judgement of one completion.
struct Scored {
  double value = 0;
  // vote_of() the answer that the verifier found in the completion; empty where it found none, or
  // looks for none. Equal answers are equal votes.
  std::optional<std::uint64_t> vote = {};
  // The object `extra` of a program's answer, as JSON of at most kExtraBytesMax; empty: none.
  std::string extra = {};
};
TANDEM_WIRE(Scored, value, vote, extra)
std::uint64_t vote_of(std::string_view answer);

// The verifier could not judge the completion, after as many retries as the job file allows.
struct ScoreFailed {
  std::string reason;
};
TANDEM_WIRE(ScoreFailed, reason)

using TrajectoryScore = std::variant<Scored, ScoreFailed>;

// The reason for which `value` is no score, since rewards are 32-bit floats; nullopt where it is
// one.
std::optional<std::string> score_fault(double value);
// The reason of score_fault(), for a number as it was written: "score is NaN; a score must be …".
std::string not_a_score(std::string_view number);

// A group with a single ScoreFailed is not trained: the exchange discards it.
struct GroupScore {
  GroupId group;
  std::uint32_t attempt = 0;
  std::vector<TrajectoryScore> scores;  // [n], in the order of the payload's trajectories
};
TANDEM_WIRE(GroupScore, group, attempt, scores)

// The first event of an incarnation: the actor takes work from now on.
struct RewardUp {
  ActorId from;
  std::int32_t capacity = 0;  // groups that the actor holds at once, at most
};
TANDEM_WIRE(RewardUp, from, capacity)

// As RolloutBack. Texts of evaluations are asked for again.
struct RewardBack {
  ActorId from;
  std::int32_t capacity = 0;
  std::vector<HeldGroup> held;
};
TANDEM_WIRE(RewardBack, from, capacity, held)

// The answer for groups of ScoreGroups, in any order and number per message.
struct GroupsScored {
  ActorId from;
  std::vector<GroupScore> groups;
};
TANDEM_WIRE(GroupsScored, from, groups)

// The judgement of one completion of an evaluation.
struct TextScore {
  std::int32_t index = 0, sample = 0;  // as TextToScore's
  TrajectoryScore score;
};
TANDEM_WIRE(TextScore, index, sample, score)

// The answer for texts of ScoreTexts, in any order and number per message.
struct TextsScored {
  ActorId from;
  EvaluationId evaluation;
  std::vector<TextScore> scores;
};
TANDEM_WIRE(TextsScored, from, evaluation, scores)

// The ways in which a reward program fails.
enum class TroubleKind : std::uint8_t {
  kCannotStart,        // by the program's own fault: no such file, no permission
  kNotStarted,         // by the machine's: no process, memory or descriptor is available
  kEnded,              // the program stopped, or was ended because it reached a limit
  kEndsAfterEachLine,  // the program works, but has to be started again for every completion
  kHung,               // no answer within the time limit
  kGarbage,            // the program wrote a line that answers no question
  kReported,           // the program answered "error", or something that is no score
};
TANDEM_WIRE_ENUM(TroubleKind, kCannotStart, kNotStarted, kEnded, kEndsAfterEachLine, kHung,
                 kGarbage, kReported)

// A user's reward program does not do its work. Sent when the trouble begins, and then at most
// every few seconds with the newest one. All text is valid UTF-8 without control characters, and
// short.
struct RewardTrouble {
  ActorId from;
  TroubleKind kind = TroubleKind::kEnded;
  std::string what;                      // "the program exited with code 1"
  std::int32_t attempt = 0;              // the completion's attempt that failed; 0: none is charged
  std::int32_t attempts = 0;             // how many attempts a completion has
  std::vector<std::string> stderr_tail;  // the last lines of the program's stderr, oldest first
  // The name of the file that holds all of its stderr; may be empty.
  std::string log;
  std::int64_t count = 0;  // troubles since the actor came up, this one included
};
TANDEM_WIRE(RewardTrouble, from, kind, what, attempt, attempts, stderr_tail, log, count)

// The trouble's text in logs and on pages: "the program exited with code 1 (attempt 2 of 3); its
// stderr ends: A | B; log: PATH".
std::string text(const RewardTrouble& trouble);

// Every message that the exchange can get from a reward actor.
using RewardEvents = std::variant<RewardUp, GroupsScored, TextsScored, RewardTrouble, RewardBack>;

}  // namespace tandem::messages
