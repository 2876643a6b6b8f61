#include "actors/replay/step_dump.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "actors/messages/payload.h"
#include "runtime/wire/codec.h"

namespace tandem::replay {
namespace {

using nlohmann::json;

json finite(double value) { return std::isfinite(value) ? json(value) : json(); }

json list_of(const std::vector<float>& values) {
  json list = json::array();
  for (const float value : values) list.push_back(finite(static_cast<double>(value)));
  return list;
}

json update_json(const learner::WatchedCompletion& seen) {
  json update{{"update", seen.update},
              {"logprobs", list_of(seen.logprobs)},
              {"entropies", list_of(seen.entropies)},
              {"proximal_logprobs", list_of(seen.proximal)},
              {"advantages", list_of(seen.advantages)},
              {"weights", list_of(seen.weights)},
              {"losses", list_of(seen.losses)}};
  if (!seen.importance.empty()) update["importance"] = list_of(seen.importance);
  if (!seen.reference.empty()) update["reference_logprobs"] = list_of(seen.reference);
  return update;
}

// The updates of each completion of the batch, in their order.
std::vector<json> updates_of(const std::vector<learner::WatchedCompletion>& tokens,
                             std::size_t completions) {
  std::vector<const learner::WatchedCompletion*> seen;
  for (const learner::WatchedCompletion& one : tokens) seen.push_back(&one);
  std::ranges::stable_sort(seen, {}, &learner::WatchedCompletion::update);
  std::vector<json> updates(completions, json::array());
  for (const auto* one : seen)
    if (one->trajectory < completions) updates[one->trajectory].push_back(update_json(*one));
  return updates;
}

json completion_json(const messages::Trajectory& completion, std::int64_t step) {
  json versions = json::array();
  for (const messages::VersionSpan& span : completion.versions)
    versions.push_back({{"version", span.version.value}, {"begin", span.begin}, {"end", span.end}});
  return {{"text", completion.text},         {"truncated", completion.truncated},
          {"tokens", completion.tokens},     {"rollout_logprobs", list_of(completion.logprobs)},
          {"versions", std::move(versions)}, {"staleness", step - completion.oldest.value}};
}

}  // namespace

Result<json> step_json(const DumpedStep& step) {
  const messages::TrainStep& trained = step.batch.step;
  std::size_t count = 0;
  for (const messages::TrainGroup& group : trained.groups) count += group.rewards.size();
  std::vector<json> updates = updates_of(step.tokens, count);
  json groups = json::array();
  std::size_t next = 0;
  for (std::size_t g = 0; g < trained.groups.size(); ++g) {
    const messages::TrainGroup& group = trained.groups[g];
    const auto payload = wire::decode<messages::GroupPayload>(step.batch.payloads[g]);
    if (!payload) return payload.error();
    if (payload->trajectories.size() != group.rewards.size())
      return Error{ErrorCode::kInvalid, "a payload has another number of completions than scores"};
    json completions = json::array();
    for (std::size_t i = 0; i < group.rewards.size(); ++i, ++next) {
      json one = completion_json(payload->trajectories[i], trained.step.value);
      one["reward"] = finite(static_cast<double>(group.rewards[i]));
      if (next < step.report.advantages.size())
        one["advantage"] = finite(static_cast<double>(step.report.advantages[next]));
      one["updates"] = std::move(updates[next]);
      completions.push_back(std::move(one));
    }
    groups.push_back({{"group", group.group.value},
                      {"prompt", payload->prompt},
                      {"prompt_tokens", payload->prompt_tokens},
                      {"completions", std::move(completions)}});
  }
  return json{{"step", trained.step.value + 1},
              {"version_before", trained.step.value},
              {"loss", finite(step.report.loss)},
              {"grad_norm", finite(step.report.grad_norm)},
              {"lr", step.report.lr},
              {"weights_checksum64", step.checksum},
              {"groups", std::move(groups)}};
}

}  // namespace tandem::replay
