// The settings of a language model that judges; judge_form.h says how they are used.
#pragma once

#include <array>
#include <optional>
#include <string>

namespace tandem::reward {

struct JudgeReward {
  std::optional<std::string> model;   // the server's name of it; nullopt: is not told
  std::optional<std::string> system;  // a message before the prompt
  // Jinja text. It may read prompt, completion, answer (none where the record has none), data,
  // data_source, truncated, lowest and highest. nullopt: one of ours.
  std::optional<std::string> prompt;
  std::optional<std::string> pattern;  // nullopt: usual_pattern() of judge_form.h
  std::array<double, 2> range{0, 10};
  int max_tokens = 512;
  double temperature = 0;
  std::string extra_body = "{}";  // a JSON object, whose members join those of a request
};

}  // namespace tandem::reward
