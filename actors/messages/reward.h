// The conversation of an exchange and a reward actor.
//
//   exchange -> reward   ScoreGroups, ScoreTexts
//   reward -> exchange   RewardUp, GroupsScored, TextsScored, RewardTrouble
//
// A score and a failure are two types (TrajectoryScore): a failure can never train as reward 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/messages/rollout.h"

namespace tandem::actors {

struct GroupToScore {
  GroupId group;
  std::uint32_t attempt = 0;
  std::string data;  // the dataset's record, one JSON object, untouched
  runtime::PayloadRef payload;
};
TANDEM_WIRE(GroupToScore, group, attempt, data, payload)

struct ScoreGroups {
  std::vector<GroupToScore> groups;
};
TANDEM_WIRE(ScoreGroups, groups)

struct TextToScore {
  std::int32_t index = 0, sample = 0;  // as EvaluationText's
  std::string data;
  std::string text;
  bool truncated = false;
  std::optional<std::string> special_text;  // as Trajectory has it
};
TANDEM_WIRE(TextToScore, index, sample, data, text, truncated, special_text)

struct ScoreTexts {  // of one evaluation
  EvaluationId evaluation;
  std::vector<TextToScore> texts;
};
TANDEM_WIRE(ScoreTexts, evaluation, texts)

using RewardInbox = std::variant<ScoreGroups, ScoreTexts>;

struct Scored {
  double value = 0;
};
TANDEM_WIRE(Scored, value)

struct ScoreFailed {  // after the retries of the job file
  std::string reason;
};
TANDEM_WIRE(ScoreFailed, reason)

using TrajectoryScore = std::variant<Scored, ScoreFailed>;

struct GroupScore {
  GroupId group;
  std::uint32_t attempt = 0;
  std::vector<TrajectoryScore> scores;  // [n]
};
TANDEM_WIRE(GroupScore, group, attempt, scores)

struct RewardUp {
  Sender from;
  std::int32_t capacity = 0;  // groups it takes at once
};
TANDEM_WIRE(RewardUp, from, capacity)

struct GroupsScored {
  Sender from;
  std::vector<GroupScore> groups;
};
TANDEM_WIRE(GroupsScored, from, groups)

struct TextScore {
  std::int32_t index = 0, sample = 0;  // as TextToScore's
  TrajectoryScore score;
};
TANDEM_WIRE(TextScore, index, sample, score)

struct TextsScored {
  Sender from;
  EvaluationId evaluation;
  std::vector<TextScore> scores;
};
TANDEM_WIRE(TextsScored, from, evaluation, scores)

enum class TroubleKind : std::uint8_t {
  kCannotStart,        // the program's own fault: no such file, no permission
  kNotStarted,         // the machine's: no process, no memory, no descriptor to be had
  kEnded,              // it stopped, or was ended for a limit
  kEndsAfterEachLine,  // it works, and is started again for every completion
  kHung,
  kGarbage,   // a line that answers nothing
  kReported,  // it said "error", or something that is no score
};
TANDEM_WIRE_ENUM(TroubleKind, kCannotStart, kNotStarted, kEnded, kEndsAfterEachLine, kHung,
                 kGarbage, kReported)

// The reward program does not do its work. Sent when that begins and at most every few seconds
// after; all text is valid UTF-8 without control characters, and short.
struct RewardTrouble {
  Sender from;
  TroubleKind kind = TroubleKind::kEnded;
  std::string what;                      // "the program exited with code 1"
  std::int32_t attempt = 0;              // that failed, of one completion; 0: no attempt is charged
  std::int32_t attempts = 0;             // that a completion has
  std::vector<std::string> stderr_tail;  // the program's last lines there, oldest first
  std::string log;                       // the file that holds all of them; may be empty
  std::int64_t count = 0;                // troubles since the actor came up, this one included
};
TANDEM_WIRE(RewardTrouble, from, kind, what, attempt, attempts, stderr_tail, log, count)

// "the program exited with code 1 (attempt 2 of 3); its stderr ends: A | B; log: PATH".
std::string text(const RewardTrouble& trouble);

using RewardEvents = std::variant<RewardUp, GroupsScored, TextsScored, RewardTrouble>;

}  // namespace tandem::actors
