// The conversation of an exchange and a reward actor.
//
//   exchange -> reward   ScoreGroups, ScoreTexts
//   reward -> exchange   RewardUp, GroupsScored, TextsScored
//
// A score and a failure are two types (TrajectoryScore): a failure can never train as reward 0.
#pragma once

#include <cstdint>
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
  std::int32_t index = 0;
  std::string data;
  std::string text;
  bool truncated = false;
};
TANDEM_WIRE(TextToScore, index, data, text, truncated)

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
  std::int32_t index = 0;
  TrajectoryScore score;
};
TANDEM_WIRE(TextScore, index, score)

struct TextsScored {
  Sender from;
  EvaluationId evaluation;
  std::vector<TextScore> scores;
};
TANDEM_WIRE(TextsScored, from, evaluation, scores)

using RewardEvents = std::variant<RewardUp, GroupsScored, TextsScored>;

}  // namespace tandem::actors
