// One line of a user's reward program, read as its answer for one completion: {"id", "score"} or
// {"id", "error"}, and beside a score perhaps an object `extra`: parts of the score, the answer
// that was found (`pred`, as in verl), whatever the program's author wants to see again. Whatever
// keeps the answer from being a score is named in the words of the line, for the person who wrote
// the program.
//
// JSON has no NaN and no infinity, but Python and C print them where a number belongs; they are
// read here, so that the reason can name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "runtime/base/json.h"

namespace tandem::reward {

struct RewardAnswer {
  std::optional<std::uint64_t> id;  // nullopt: the line lacks it, or it is no whole number
  // The score, which is finite and within the range of a 32-bit float; or the reason for which
  // there is none.
  std::variant<double, std::string> score;
  std::string extra;  // the object `extra` as JSON; empty: there is none, or it is left out
  std::optional<std::string> extra_fault;  // why `extra` is left out
  std::optional<std::uint64_t> vote;       // vote_of() the text or number `pred` of `extra`
};

// The JSON of a program in which NaN and infinities may stand where a number belongs; each of these
// becomes an object that read_reward_answer() knows, so that a part of the value can be given to it
// again. Discarded where `text` is no such JSON.
nlohmann::json parse_with_infinities(std::string_view text);

// nullopt: the line answers nothing. It is no JSON object, or has neither an id, nor a score, nor
// an error.
std::optional<RewardAnswer> read_reward_answer(std::string_view line);

}  // namespace tandem::reward
