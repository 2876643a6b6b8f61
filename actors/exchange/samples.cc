#include "actors/exchange/samples.h"

#include <algorithm>
#include <utility>

#include "runtime/base/json.h"

namespace tandem::exchange {

namespace {

const char* name(messages::FinishReason reason) {
  return reason == messages::FinishReason::kStop ? "stop" : "length";
}

// The text of the last message of the user in a conversation.
nlohmann::json last_of_user(const nlohmann::json& record) {
  const auto messages = record.find("messages");
  if (messages == record.end() || !messages->is_array()) return {};
  for (auto message = messages->rbegin(); message != messages->rend(); ++message)
    if (message->is_object() && message->value("role", nlohmann::json()) == "user" &&
        message->value("content", nlohmann::json()).is_string())
      return (*message)["content"];
  return {};
}

}  // namespace

void add_record_fields(nlohmann::json& line, const std::string& data, const RecordKeys& keys) {
  const nlohmann::json record = parse_json(data);
  if (!record.is_object()) return;
  const nlohmann::json* const answer = find_path(record, keys.answer);
  if (answer && !answer->is_null()) line["answer"] = *answer;
  const nlohmann::json* const source = find_path(record, keys.data_source);
  if (source && source->is_string()) line["data_source"] = *source;
  if (nlohmann::json user = last_of_user(record); user.is_string()) line["user"] = std::move(user);
}

void add_extra(nlohmann::json& line, const std::string& extra) {
  if (nlohmann::json object = parse_json(extra); object.is_object())
    line["extra"] = std::move(object);
}

std::vector<std::string> sample_lines(const WriteStepSamples& samples,
                                      const messages::GroupPayload& payload) {
  std::vector<std::string> lines;
  if (payload.trajectories.size() != samples.rewards.size()) return lines;
  const std::size_t rows = std::min(payload.trajectories.size(), samples.rows_max);
  for (std::size_t i = 0; i < rows; ++i) {
    const messages::Trajectory& trajectory = payload.trajectories[i];
    nlohmann::json versions = nlohmann::json::array();
    for (const messages::VersionSpan& span : trajectory.versions)
      versions.push_back(span.version.value);
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
    if (i < samples.notes.extras.size()) add_extra(line, samples.notes.extras[i]);
    if (i < samples.notes.errors.size() && !samples.notes.errors[i].empty())
      line["error"] = samples.notes.errors[i];
    add_record_fields(line, samples.record.data, samples.keys);
    lines.push_back(dump_json(line));  // also of sampled text that is not UTF-8
  }
  return lines;
}

std::string failure_line(const WriteFailureSample& sample, const messages::GroupPayload* payload) {
  nlohmann::json line{
      {"prompt", sample.record.prompt}, {"step", sample.step.value}, {"error", sample.reason}};
  add_record_fields(line, sample.record.data, sample.keys);
  if (sample.reward) line["reward"] = *sample.reward;
  if (payload != nullptr && sample.trajectory < payload->trajectories.size())
    line["completion"] = payload->trajectories[sample.trajectory].text;
  return dump_json(line);
}

}  // namespace tandem::exchange
