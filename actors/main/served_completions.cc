#include "actors/main/served_completions.h"

#include <algorithm>
#include <utility>

#include "runtime/base/json.h"
#include "runtime/base/rng.h"
#include "runtime/http/http_posts.h"
#include "runtime/node/last_lines.h"

namespace tandem::app {
namespace {

using nlohmann::json;

constexpr std::size_t kShownBytes = 300;  // of a server's answer, in an error

struct Ask {
  const PromptTokens* prompt = nullptr;
  std::int32_t sample = 0;
  int tries = 0;
};

std::string body_of(const Ask& ask, const CompletionServer& server,
                    const exchange::EvaluationPlan& plan, const rollout::EngineConfig& config) {
  const messages::EvaluationSampling& sampling = plan.sampling;
  const bool greedy = messages::is_greedy(sampling, ask.sample);
  json body{{"prompt", ask.prompt->tokens},
            {"max_tokens", config.max_response_length},
            {"temperature", greedy ? 0.0F : sampling.temperature},
            {"top_p", greedy ? 1.0F : sampling.top_p},
            // Each of them has defaults of its own, for which a job did not ask.
            {"top_k", !greedy && sampling.top_k > 0 ? sampling.top_k : -1},  // -1: off
            {"min_p", 0.0},
            // 31 bits, which every server takes.
            {"seed", derive_seed(exchange::prompt_seed(plan, ask.prompt->index),
                                 std::to_string(ask.sample)) >>
                         33}};
  if (!server.model.empty()) body["model"] = server.model;
  if (!config.sampling.stop.empty()) body["stop"] = config.sampling.stop;
  if (!config.sampling.stop_token_ids.empty())
    body["stop_token_ids"] = config.sampling.stop_token_ids;
  if (config.sampling.min_tokens > 0) body["min_tokens"] = config.sampling.min_tokens;
  return dump_json(body);
}

Result<messages::EvaluationText> read_completion(const Ask& ask, const std::string& body) {
  const json answer = parse_json(body);
  const json* const choices = find_path(answer, "choices");
  if (choices && choices->is_array() && choices->size() == 1) {
    const json* const text = find_path(choices->front(), "text");
    const json* const reason = find_path(choices->front(), "finish_reason");
    if (text && text->is_string() && reason && (*reason == "stop" || *reason == "length"))
      return messages::EvaluationText{.index = ask.prompt->index,
                                      .sample = ask.sample,
                                      .text = text->get<std::string>(),
                                      .truncated = *reason == "length",
                                      .special_text = {}};
  }
  return Error{ErrorCode::kFailed,
               "the server's answer is no completion: " + node::one_line(body, kShownBytes)};
}

Result<messages::EvaluationText> read_response(const Ask& ask,
                                               const Result<http::HttpResponse>& response) {
  if (!response) return response.error();
  if (response->status / 100 != 2)
    return Error{ErrorCode::kFailed, "the server answered " + std::to_string(response->status) +
                                         ": " + node::one_line(response->body, kShownBytes)};
  return read_completion(ask, response->body);
}

// Whether the same request may get another answer: 4xx says that it is wrong, but for those of a
// server that has too much to do.
bool may_help(const Result<http::HttpResponse>& response) {
  return !response || response->status / 100 != 4 || response->status == 408 ||
         response->status == 429;
}

}  // namespace

Result<std::vector<messages::EvaluationText>> completions_from(
    const CompletionServer& server, const exchange::EvaluationPlan& plan,
    const rollout::EngineConfig& config, const std::vector<PromptTokens>& prompts) {
  const auto url = http::parse_url(http::openai_url(server.url, "/completions"));
  if (!url) return url.error();
  std::vector<Ask> asks;
  for (const PromptTokens& prompt : prompts)
    for (std::int32_t i = 0; i < messages::completions_of(plan.sampling); ++i)
      asks.push_back({&prompt, i});
  std::vector<messages::EvaluationText> texts(asks.size());
  std::optional<Error> failure;
  http::post_each(*url,
                  {.count = asks.size(),
                   .concurrency = server.concurrency,
                   .timeout = server.timeout,
                   .pause = server.pause,
                   .headers = {{"content-type", "application/json"}},
                   .body = [&](std::size_t i) { return body_of(asks[i], server, plan, config); },
                   .take =
                       [&](std::size_t i, const Result<http::HttpResponse>& response) {
                         auto text = read_response(asks[i], response);
                         if (text) {
                           texts[i] = *std::move(text);
                           return http::AfterPost::kGoOn;
                         }
                         if (may_help(response) && ++asks[i].tries < kCompletionTries)
                           return http::AfterPost::kAgain;
                         failure = text.error();
                         return http::AfterPost::kStop;
                       }});
  if (failure)
    return Error{failure->code, failure->message, server.url,
                 "is the address right, and does the server run this model?"};
  return texts;
}

}  // namespace tandem::app
