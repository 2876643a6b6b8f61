#include "actors/exchange/samples.h"

#include "runtime/base/json.h"

namespace tandem::actors {

namespace {

const char* name(FinishReason reason) { return reason == FinishReason::kStop ? "stop" : "length"; }

}  // namespace

std::vector<std::string> sample_lines(const WriteStepSamples& samples,
                                      const GroupPayload& payload) {
  std::vector<std::string> lines;
  if (payload.trajectories.size() != samples.rewards.size()) return lines;
  for (std::size_t i = 0; i < payload.trajectories.size(); ++i) {
    const Trajectory& trajectory = payload.trajectories[i];
    nlohmann::json versions = nlohmann::json::array();
    for (const VersionSpan& span : trajectory.versions) versions.push_back(span.version.value);
    const nlohmann::json line{
        {"step", samples.step.value},
        {"group", payload.group.value},
        {"prompt", payload.prompt},
        {"completion", trajectory.text},
        {"reward", samples.rewards[i]},
        {"advantage",
         i < samples.advantages.size() ? nlohmann::json(samples.advantages[i]) : nlohmann::json()},
        {"versions", versions},
        {"finish_reason", name(samples.finishes[i])}};
    lines.push_back(dump_json(line));  // also of sampled text that is not UTF-8
  }
  return lines;
}

std::string failure_line(const WriteFailureSample& sample, const GroupPayload* payload) {
  nlohmann::json line{
      {"prompt", sample.prompt}, {"step", sample.step.value}, {"error", sample.reason}};
  if (payload != nullptr && sample.trajectory < payload->trajectories.size())
    line["completion"] = payload->trajectories[sample.trajectory].text;
  return dump_json(line);
}

}  // namespace tandem::actors
