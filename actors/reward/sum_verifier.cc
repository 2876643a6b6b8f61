#include "actors/reward/sum_verifier.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/base/json.h"

namespace tandem::reward {
namespace {

using messages::Scored;
using messages::ScoreFailed;
using nlohmann::json;

// The parts by their weights, the heaviest first, and by their order where these are equal.
std::vector<std::size_t> by_weight(const std::vector<RewardPart>& parts) {
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t i) { return std::abs(parts[i].payment.weight); });
  return order;
}

std::string named(const RewardPart& part, const std::string& text) {
  return part.name.empty() ? text : "`" + part.name + "`: " + text;
}

// Adds the members of a part's own `extra`, as long as the whole fits.
void add_members(json& extra, const RewardPart& part, const std::string& own) {
  const json members = own.empty() ? json() : parse_json(own);
  if (!members.is_object()) return;
  for (const auto& [key, value] : members.items()) {
    const std::string name = part.name.empty() ? key : part.name + "." + key;
    // A member of an unnamed part comes before ours of the same name.
    const json before = std::exchange(extra[name], value);
    if (dump_json(extra).size() <= messages::kExtraBytesMax) continue;
    before.is_null() ? void(extra.erase(name)) : void(extra[name] = before);
  }
}

}  // namespace

messages::TrajectoryScore sum_of(
    const std::vector<RewardPart>& parts, const Payment& whole,
    const std::vector<std::optional<messages::TrajectoryScore>>& scores) {
  double sum = 0;
  json extra = json::object();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!scores[i]) continue;
    if (const auto* failed = std::get_if<ScoreFailed>(&*scores[i]))
      return ScoreFailed{named(parts[i], failed->reason)};
    const double score = std::get<Scored>(*scores[i]).value;
    const double own = before_weight(parts[i].payment, score);
    sum += parts[i].payment.weight * own;
    if (parts[i].name.empty())
      extra["raw"] = score;
    else
      extra[parts[i].name] = own;
  }
  Scored all{.value = whole.weight * before_weight(whole, sum)};
  if (auto fault = messages::score_fault(all.value)) return ScoreFailed{*std::move(fault)};
  for (const std::size_t i : by_weight(parts)) {
    const auto* scored = scores[i] ? std::get_if<Scored>(&*scores[i]) : nullptr;
    if (!scored) continue;
    if (scored->vote && !all.vote) {
      all.vote = scored->vote;
      const json own = scored->extra.empty() ? json() : parse_json(scored->extra);
      if (own.is_object() && own.contains("pred")) extra["pred"] = own["pred"];
    }
    add_members(extra, parts[i], scored->extra);
  }
  all.extra = dump_json(extra);
  // The names alone always fit; a `pred` may be as large as a whole `extra`.
  if (all.extra.size() > messages::kExtraBytesMax) {
    extra.erase("pred");
    all.extra = dump_json(extra);
  }
  return all;
}

SumVerifier::SumVerifier(std::vector<RewardPart> parts, Payment whole,
                         std::vector<std::unique_ptr<Verifier>> verifiers)
    : parts_(std::move(parts)), whole_(whole), verifiers_(std::move(verifiers)) {
  CHECK(parts_.size() == verifiers_.size());
}

bool SumVerifier::is_for(const RewardPart& part, const ScoreItem& item) const {
  return part.sources.empty() || std::ranges::count(part.sources, item.data_source) > 0;
}

void SumVerifier::score(actor::Context& cx, ScoreItem item, Done done) {
  // Shared by the parts' answers, the last of which answers for all.
  struct Open {
    std::vector<std::optional<messages::TrajectoryScore>> scores;
    std::size_t left = 0;
    Done done;
  };
  auto open = std::make_shared<Open>();
  open->scores.resize(parts_.size());
  open->done = std::move(done);
  for (const RewardPart& part : parts_) open->left += is_for(part, item) ? 1 : 0;
  if (open->left == 0) {
    const std::string source =
        item.data_source.empty() ? "a record without one" : "`" + item.data_source + "`";
    return open->done(cx, ScoreFailed{"no reward has the data source of this record among its "
                                      "`sources`: " +
                                      source});
  }
  // A part may answer within score(), so that what is left is counted before.
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (is_for(parts_[i], item))
      verifiers_[i]->score(cx, item,
                           [this, open, i](actor::Context& later, messages::TrajectoryScore score) {
                             open->scores[i] = std::move(score);
                             if (--open->left == 0)
                               open->done(later, sum_of(parts_, whole_, open->scores));
                           });
}

std::optional<std::string> SumVerifier::found(const ScoreItem& item) const {
  for (const std::size_t i : by_weight(parts_))
    if (is_for(parts_[i], item))
      if (auto own = verifiers_[i]->found(item)) return own;
  return {};
}

void SumVerifier::report_to(Told told) {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    verifiers_[i]->report_to(
        [told, &part = parts_[i]](actor::Context& cx, messages::RewardTrouble trouble) {
          trouble.what = named(part, trouble.what);
          told(cx, std::move(trouble));
        });
}

}  // namespace tandem::reward
