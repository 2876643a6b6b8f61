// A language model as the judge: a server that speaks OpenAI's /v1/chat/completions (vLLM, SGLang,
// llama.cpp and others) is given a text about one completion, and a number is read from what it
// says. The score is that number's place in `range`, from 0 to 1.
//
// The number is `score` of a JSON object, where the judge's words are one (as with
// `response_format`), else the first group of the last match of `pattern` in the last
// kJudgedBytesMax of them. Words before a "</think>" are left out. An answer without a number, with
// one outside of the range, or that was cut, also within its thoughts, is a failed attempt, never a
// 0: the last number of an answer that was cut may be incomplete.
#pragma once

#include <cstddef>
#include <string>

#include "actors/reward/http_verifier.h"
#include "actors/reward/judge_reward.h"
#include "runtime/base/result.h"

namespace tandem::reward {

// A search takes time that grows with the square of its text, in a turn of the reward actor.
inline constexpr std::size_t kJudgedBytesMax = 16u << 10;

// "Score: 7", "**Score (0-10):** 7.5/10", "the score is 7", where 10 is `highest`. No number is
// read from one that goes on: "1,000", "1e3", "7/100".
std::string usual_pattern(double highest);

// kInvalid for a prompt that is no template or does not show the completion, for a pattern without
// a group, and for a body with members that a judge cannot have. `where` of an error is the member
// of JudgeReward.
Result<HttpForm> judge_form(const JudgeReward& judge);

}  // namespace tandem::reward
