// The door of reward actors at an exchange.
#include <algorithm>

#include "actors/doors/message_checks.h"

namespace tandem::doors {

namespace {

constexpr std::size_t kTroubleLinesMax = 64;  // lines of stderr; an honest reward sends fewer

Result<void> check(const messages::RewardUp& up) {
  if (up.capacity < 1) return wrong("RewardUp: a capacity of " + std::to_string(up.capacity));
  return {};
}

Result<void> check(const messages::RewardBack& back) {
  if (back.capacity < 1 || back.held.size() > messages::kHeldMax)
    return wrong("RewardBack: a capacity of " + std::to_string(back.capacity) + ", " +
                 std::to_string(back.held.size()) + " groups");
  return {};
}

// A failure is a valid answer; a score must fit a reward, enters means, and has an `extra` that is
// kept until the group is trained.
bool is_score(const messages::TrajectoryScore& score) {
  const auto* scored = std::get_if<messages::Scored>(&score);
  return !scored || (!messages::score_fault(scored->value) &&
                     scored->extra.size() <= messages::kExtraBytesMax);
}

Result<void> check(const messages::GroupsScored& scored) {
  for (const messages::GroupScore& group : scored.groups)
    if (!std::ranges::all_of(group.scores, is_score))
      return wrong("GroupsScored: group " + std::to_string(group.group.value) +
                   " has a score that is no number");
  return {};
}

Result<void> check(const messages::RewardTrouble& trouble) {
  const bool counted = trouble.attempt >= 0 && trouble.attempts >= 0 && trouble.count >= 0;
  if (!counted || trouble.stderr_tail.size() > kTroubleLinesMax)
    return wrong("RewardTrouble: attempt " + std::to_string(trouble.attempt) + " of " +
                 std::to_string(trouble.attempts) + ", " +
                 std::to_string(trouble.stderr_tail.size()) + " lines");
  return {};
}

Result<void> check(const messages::TextsScored& scored) {
  for (const messages::TextScore& text : scored.scores)
    if (text.index < 0 || text.sample < 0 || !is_score(text.score))
      return wrong("TextsScored: text " + std::to_string(text.index) +
                   " does not exist, or has a score that is no number");
  return {};
}

}  // namespace

template <>
struct Checks<messages::RewardPeer> {
  Result<void> operator()(const auto& message) const { return check(message); }
};
template link::Door<messages::RewardPeer::Events> exchange_door<messages::RewardPeer>(
    const std::string&);

}  // namespace tandem::doors
