// A line that a user's reward program prints. Checked: a score is finite and within a 32-bit float
// or there is a reason in its place; `extra` is a JSON object within its limit; and the program's
// words in an error do not make the reason longer than a screen.
#include <cmath>

#include "actors/messages/reward.h"
#include "actors/reward/reward_answer.h"
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {

void reward_line(std::string_view input) {
  const auto answer = reward::read_reward_answer(input);
  if (!answer) return;
  if (const auto* score = std::get_if<double>(&answer->score)) {
    CHECK(std::isfinite(*score) && std::isfinite(static_cast<float>(*score)));
    CHECK(!messages::score_fault(*score));
  } else {
    CHECK(!std::get<std::string>(answer->score).empty());
  }
  if (!answer->extra.empty()) {
    CHECK(answer->extra.size() <= messages::kExtraBytesMax);
    CHECK(parse_json(answer->extra).is_object());
  }
}

}  // namespace tandem::fuzz
