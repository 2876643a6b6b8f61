#include "actors/exchange/samples.h"

#include "runtime/base/json.h"

namespace tandem::actors {

namespace {

const char* name(FinishReason reason) { return reason == FinishReason::kStop ? "stop" : "length"; }

}  // namespace

void add_record_fields(nlohmann::json& line, const ExchangeRecord& record) {
  if (record.answer_json) line["answer"] = parse_json(*record.answer_json);
  if (record.data_source) line["data_source"] = *record.data_source;
  if (record.user) line["user"] = *record.user;
}

std::vector<std::string> sample_lines(const WriteStepSamples& samples,
                                      const GroupPayload& payload) {
  std::vector<std::string> lines;
  if (payload.trajectories.size() != samples.rewards.size()) return lines;
  for (std::size_t i = 0; i < payload.trajectories.size(); ++i) {
    const Trajectory& trajectory = payload.trajectories[i];
    nlohmann::json versions = nlohmann::json::array();
    for (const VersionSpan& span : trajectory.versions) versions.push_back(span.version.value);
    nlohmann::json line{
        {"step", samples.step.value},
        {"group", payload.group.value},
        {"prompt", payload.prompt},
        {"completion", trajectory.text},
        {"reward", samples.rewards[i]},
        {"advantage",
         i < samples.advantages.size() ? nlohmann::json(samples.advantages[i]) : nlohmann::json()},
        {"versions", versions},
        {"finish_reason", name(samples.finishes[i])}};
    add_record_fields(line, samples.record);
    lines.push_back(dump_json(line));  // also of sampled text that is not UTF-8
  }
  return lines;
}

std::string failure_line(const WriteFailureSample& sample, const GroupPayload* payload) {
  nlohmann::json line{
      {"prompt", sample.record.prompt}, {"step", sample.step.value}, {"error", sample.reason}};
  add_record_fields(line, sample.record);
  if (payload != nullptr && sample.trajectory < payload->trajectories.size())
    line["completion"] = payload->trajectories[sample.trajectory].text;
  return dump_json(line);
}

}  // namespace tandem::actors
