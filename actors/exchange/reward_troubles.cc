// A trouble is told as an event if it is the actor's first, if it differs from the one before, or
// after kTroubleRepeated; and never within kTroubleGap of another.
#include "actors/exchange/reward_troubles.h"

#include <algorithm>
#include <utility>

#include "runtime/base/text.h"

namespace tandem::exchange {

namespace {

// Limits of each text: more than actors send.
constexpr std::size_t kLinesMax = 8, kTextBytesMax = 1024;

// Reward actors send short texts; a peer that does not must not fill the memory or the journal.
void bound(messages::RewardTrouble& trouble) {
  trouble.what = cut_utf8(trouble.what, kTextBytesMax);
  trouble.log = cut_utf8(trouble.log, kTextBytesMax);
  if (trouble.stderr_tail.size() > kLinesMax) trouble.stderr_tail.resize(kLinesMax);
  for (std::string& line : trouble.stderr_tail) line = cut_utf8(line, kTextBytesMax);
}

}  // namespace

const messages::RewardTrouble* RewardTroubles::take(messages::RewardTrouble trouble, Time now) {
  bound(trouble);
  const auto [at, first] = by_actor_.try_emplace(trouble.from.name);
  Known& known = at->second;
  const bool alike = known.trouble.kind == trouble.kind && known.trouble.attempt == trouble.attempt;
  const Duration quiet = now - known.said;
  const bool say = first || quiet >= kTroubleRepeated || (!alike && quiet >= kTroubleGap);
  // The newest trouble is kept also if it is not told: views show it.
  known = {std::move(trouble), now, say ? now : known.said, false};
  return say ? &known.trouble : nullptr;
}

void RewardTroubles::judged(const std::string& actor, const messages::TrajectoryScore& score) {
  if (const auto* failure = std::get_if<messages::ScoreFailed>(&score)) {
    ++failed_in_row_;
    last_failure_ = cut_utf8(failure->reason, kTextBytesMax);
    return;
  }
  ever_scored_ = true;
  failed_in_row_ = 0;
  if (const auto at = by_actor_.find(actor); at != by_actor_.end()) at->second.scored_since = true;
}

// A program that has not scored anything yet may take its timeouts for each try of its first
// completions: its trouble is told before so many of them have failed.
std::optional<std::string> RewardTroubles::all_fail() const {
  if (failed_in_row_ >= kFailuresTold)
    return "no completion is scored, the last " + std::to_string(failed_in_row_) +
           " failed in a row; the last: " + explained(last_failure_);
  const auto tried = std::ranges::find_if(
      by_actor_, [](const auto& known) { return known.second.trouble.attempt > 0; });
  if (ever_scored_ || tried == by_actor_.end()) return std::nullopt;
  return "no completion has been scored yet: " + tried->first + ": " + text(tried->second.trouble);
}

void RewardTroubles::forget(const std::string& actor) { by_actor_.erase(actor); }

std::vector<messages::TroubleView> RewardTroubles::shown(Time now) const {
  std::vector<messages::TroubleView> shown;
  for (const auto& [actor, known] : by_actor_)
    if (!known.scored_since || now - known.at < kTroubleShown)
      shown.push_back({known.trouble, seconds(now - known.at)});
  return shown;
}

std::string RewardTroubles::explained(const std::string& reason) const {
  const Known* newest = nullptr;
  for (const auto& [actor, known] : by_actor_)
    if (!newest || known.at > newest->at) newest = &known;
  if (!newest) return reason;
  const std::string of_actor = newest->trouble.from.name + ": " + text(newest->trouble);
  // The reason often is the trouble itself; it is then not said twice.
  return reason.starts_with(newest->trouble.what) ? of_actor : reason + "; " + of_actor;
}

}  // namespace tandem::exchange
