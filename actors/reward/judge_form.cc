#include "actors/reward/judge_form.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "actors/jinja/json_value.h"
#include "actors/jinja/template.h"
#include "actors/messages/reward.h"
#include "actors/reward/pattern.h"
#include "runtime/base/check.h"
#include "runtime/base/json.h"
#include "runtime/node/last_lines.h"

namespace tandem::reward {
namespace {

using nlohmann::json;

constexpr const char* kOurPrompt = R"(You grade an answer to a task.

Task:
{{ prompt }}
{% if answer is not none %}

A right answer: {{ answer }}
{% endif %}

The answer to grade:
{{ completion }}

Grade it from {{ lowest }} (wrong) to {{ highest }} (right and complete). Give a reason in one sentence,
and then a last line "Score: N".)";

constexpr std::size_t kSaidBytesKept = 1000;  // of the judge's words, from their end

Error invalid(const char* where, std::string what, std::string help) {
  return {ErrorCode::kInvalid, std::move(what), where, std::move(help)};
}

// As people write it: 10 and not 10.0.
json plain(double number) {
  constexpr double kWholeMax = 0x1p53;
  if (!(std::abs(number) < kWholeMax)) return number;
  const auto whole = static_cast<std::int64_t>(number);
  return static_cast<double>(whole) == number ? json(whole) : json(number);
}

struct Judge {
  JudgeReward config;
  std::shared_ptr<const jinja::Template> prompt;
  std::shared_ptr<const Pattern> pattern;
  json extra;  // an object
};

Result<std::string> body_for(const Judge& judge, const ScoreItem& item) {
  const auto value = [](const auto& thing) { return jinja::value_of(json(thing)); };
  const std::vector<std::pair<std::string, jinja::Value>> inputs{
      {"prompt", value(item.prompt)},
      {"completion", value(item.completion)},
      {"answer", value(item.answer)},
      {"data", value(item.data)},
      {"data_source", value(item.data_source)},
      {"truncated", value(item.truncated)},
      {"lowest", value(plain(judge.config.range[0]))},
      {"highest", value(plain(judge.config.range[1]))}};
  const auto text = judge.prompt->render(inputs, std::nullopt);
  if (!text) return text.error();
  json messages = json::array();
  if (judge.config.system)
    messages.push_back({{"role", "system"}, {"content", *judge.config.system}});
  messages.push_back({{"role", "user"}, {"content", text->text}});
  json body{{"messages", std::move(messages)},
            {"max_tokens", judge.config.max_tokens},
            {"temperature", judge.config.temperature}};
  if (judge.config.model) body["model"] = *judge.config.model;
  body.update(judge.extra);
  return dump_json(body);
}

// The words behind a reasoning model's thoughts; nothing where it was still at them.
std::optional<std::string_view> behind_thoughts(std::string_view said) {
  constexpr std::string_view kBegin = "<think>", kEnd = "</think>";
  const auto end = said.rfind(kEnd);
  if (end != said.npos) said.remove_prefix(end + kEnd.size());
  if (said.find(kBegin) != said.npos) return {};
  return said;
}

std::string_view last_bytes(std::string_view text, std::size_t bytes) {
  return text.substr(text.size() - std::min(text.size(), bytes));
}

Result<double> number_in(const Judge& judge, std::string_view said) {
  const json object = parse_json(said);
  if (object.is_object() && object.contains("score") && object["score"].is_number())
    return object["score"].get<double>();
  const Pattern::Match match = judge.pattern->last(last_bytes(said, kJudgedBytesMax));
  if (const auto fault = match.fault()) return Error{ErrorCode::kInvalid, *fault};
  const std::string text = match.group.value_or("");
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return Error{ErrorCode::kInvalid, "the judge gave no score"};
  return number;
}

// The score, or why the words have none.
RewardAnswer answer_of(const Judge& judge, const std::string& said, bool cut) {
  const auto words = behind_thoughts(said);
  const std::string end = node::one_line(
      trimmed(last_bytes(words.value_or(std::string_view(said)), kSaidBytesKept)), kSaidBytesKept);
  const auto failed = [&](const std::string& why) {
    return RewardAnswer{.score = why + ": " + (end.empty() ? "it said nothing" : end)};
  };
  if (cut || !words) return failed("judge.max_tokens cut the judge's answer");
  const auto number = number_in(judge, trimmed(*words));
  if (!number) return failed(number.error().message);
  const auto [lowest, highest] = judge.config.range;
  if (!(*number >= lowest && *number <= highest))
    return failed("the judge's score " + plain(*number).dump() + " is not within judge.range");
  json extra{{"judged", *number}, {"judge", end}};
  // Control characters take six bytes each.
  if (dump_json(extra).size() > messages::kExtraBytesMax) extra.erase("judge");
  return {.score = (*number - lowest) / (highest - lowest), .extra = dump_json(extra)};
}

Result<std::vector<RewardAnswer>> answers_of(const Judge& judge, const std::string& body) {
  const json answer = parse_json(body);
  const json* const choices = find_path(answer, "choices");
  const bool one = choices && choices->is_array() && choices->size() == 1;
  const json* const content = one ? find_path((*choices)[0], "message.content") : nullptr;
  if (!content || !(content->is_string() || content->is_null()))
    return Error{ErrorCode::kInvalid,
                 "the server's answer is no chat completion" + shown_body(body)};
  const json* const reason = find_path((*choices)[0], "finish_reason");
  return std::vector{answer_of(judge, content->is_string() ? content->get<std::string>() : "",
                               reason && *reason == "length")};
}

}  // namespace

std::string usual_pattern(double highest) {
  // A number is not read where a digit, a fraction or an exponent follows, or another "/N" than
  // that of the range.
  return R"((?i)score\s*(?:\([^)\n]{0,40}\))?[^\w.−-]{0,4}(?:is|[:=])[^\w.−-]{0,8})"
         R"((-?[0-9]*\.?[0-9]+)(?![,.]?[0-9]|e[0-9+-]|\s*/\s*(?!)" +
         plain(highest).dump() + R"((?:\.0*)?(?![0-9.]))-?[0-9]))";
}

Result<HttpForm> judge_form(const JudgeReward& config) {
  auto made = std::make_shared<Judge>(Judge{.config = config});
  auto prompt = jinja::Template::parse(config.prompt.value_or(kOurPrompt), "judge.prompt");
  if (!prompt) return invalid("prompt", prompt.error().message, "write it as a Jinja template");
  if (!prompt->reads("completion"))
    return invalid("prompt", "the judge never sees the completion",
                   "write {{ completion }} where it belongs");
  auto pattern = Pattern::compile(config.pattern.value_or(usual_pattern(config.range[1])));
  if (!pattern)
    return invalid("pattern", pattern.error().message,
                   "write it as a Perl-compatible regular expression (PCRE2)");
  if (!pattern->has_group())
    return invalid("pattern", "the pattern has no group",
                   "put parentheses around what matches the score");
  if (!(config.range[0] < config.range[1]))
    return invalid("range", "the range has no room between its ends",
                   "the least score comes first, as in [0, 10]");
  made->extra = parse_json(config.extra_body);
  CHECK(made->extra.is_object());
  for (const char* key : {"messages", "stream", "n"})
    if (made->extra.contains(key))
      return invalid("extra_body", "a judge cannot have `" + std::string(key) + "` of its own",
                     "leave it out");
  made->prompt = std::make_shared<const jinja::Template>(*std::move(prompt));
  made->pattern = std::make_shared<const Pattern>(*std::move(pattern));
  return HttpForm{
      .body = [made](HttpForm::Items items) { return body_for(*made, *items[0]); },
      .answers = [made](const std::string& body, std::size_t) { return answers_of(*made, body); }};
}

}  // namespace tandem::reward
