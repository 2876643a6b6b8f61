// Items of one turn come one by one; they are sent in the next turn, so that the completions of a
// group share a call.
#include "actors/reward/http_verifier.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/http/http_client.h"
#include "runtime/node/last_lines.h"

namespace tandem::reward {
namespace {

using messages::TroubleKind;
using nlohmann::json;

constexpr std::size_t kBodyBytesShown = 200;  // the most that a reason quotes of a response

std::string openrlhf_body(HttpForm::Items items) {
  json query = json::array(), prompts = json::array(), labels = json::array();
  for (const ScoreItem* item : items) {
    query.push_back(item->prompt + item->completion);
    prompts.push_back(item->prompt);
    labels.push_back(item->answer);
  }
  return dump_json({{"query", query}, {"prompts", prompts}, {"labels", labels}});
}

// The rewards, each with its part of extra_logs.
Result<std::vector<RewardAnswer>> openrlhf_answers(const std::string& body, std::size_t count) {
  const auto fault = [](std::string what) { return Error{ErrorCode::kInvalid, std::move(what)}; };
  const json answer = parse_with_infinities(body);
  if (answer.is_discarded()) return fault("the server did not answer with JSON" + shown_body(body));
  const json rewards = answer.is_object() ? answer.value("rewards", json()) : json();
  if (!rewards.is_array())
    return fault("the server's answer lacks a list `rewards`" + shown_body(body));
  if (rewards.size() != count)
    return fault("the server gave " + std::to_string(rewards.size()) + " rewards for " +
                 std::to_string(count) + " completions");
  const json logs = answer.value("extra_logs", json());
  std::vector<RewardAnswer> answers;
  for (std::size_t i = 0; i < count; ++i) {
    json line{{"id", 0}, {"score", rewards[i]}};
    if (logs.is_object())
      for (const auto& [key, values] : logs.items())
        if (values.is_array() && values.size() == count) line["extra"][key] = values[i];
    answers.push_back(read_reward_answer(dump_json(line)).value());
  }
  return answers;
}

}  // namespace

HttpForm openrlhf_form() { return {.body = openrlhf_body, .answers = openrlhf_answers}; }

std::string shown_body(const std::string& body) {
  return ": " + node::one_line(body, kBodyBytesShown);
}

std::optional<Error> url_fault(const std::string& url) {
  const auto parsed = http::parse_url(url);
  return parsed ? std::nullopt : std::optional(parsed.error());
}

Result<HttpPost> http_post_to(const HttpReward& reward, Duration timeout) {
  auto url = http::parse_url(reward.url);
  if (!url) return url.error();
  http::HttpHeaders headers{{"content-type", "application/json"}};
  for (const auto& [header, variable] : reward.header_env) {
    const char* const value = std::getenv(variable.c_str());
    if (!value)
      return Error{ErrorCode::kInvalid, "the environment variable " + variable + " is not set",
                   "reward.header_env", "set it where the reward actor's node is started"};
    if (std::string_view(value).find_first_of("\r\n") != std::string_view::npos)
      return Error{ErrorCode::kInvalid,
                   "the environment variable " + variable + " has more than one line",
                   "reward.header_env", "a header's value is one line"};
    headers[header] = value;
  }
  auto requests = std::make_shared<http::HttpRequests>();
  return HttpPost([requests, url = *std::move(url), headers = std::move(headers), timeout](
                      std::string body, std::function<void(Result<http::HttpResponse>)> done) {
    requests->post(url, std::move(body), timeout, headers, kHttpRewardBytesMax, std::move(done));
  });
}

HttpVerifier::HttpVerifier(Config config, HttpForm form, HttpPost post)
    : config_(std::move(config)),
      form_(std::move(form)),
      post_(std::move(post)),
      pause_(config_.pause_min) {}

void HttpVerifier::score(actor::Context& cx, ScoreItem item, Done done) {
  waiting_.push_back({.item = std::move(item), .done = std::move(done)});
  if (std::exchange(pump_posted_, true)) return;
  cx.turn_poster()([this](actor::Context& later) {
    pump_posted_ = false;
    pump(later);
  });
}

void HttpVerifier::pump(actor::Context& cx) {
  while (!pausing_ && !waiting_.empty() && calls_ < config_.concurrency) send(cx);
}

void HttpVerifier::send(actor::Context& cx) {
  const std::size_t count = std::min(waiting_.size(), static_cast<std::size_t>(config_.batch_size));
  auto batch = std::make_shared<Batch>();
  for (std::size_t i = 0; i < count; ++i) {
    batch->push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  std::vector<const ScoreItem*> items;
  for (const Attempt& attempt : *batch) items.push_back(&attempt.item);
  auto body = form_.body(items);
  if (!body) {
    for (Attempt& attempt : *batch) attempt.done(cx, messages::ScoreFailed{body.error().message});
    return;
  }
  ++calls_;
  post_(*std::move(body),
        [this, batch, post = cx.turn_poster()](Result<http::HttpResponse> response) {
          post([this, batch, response = std::move(response)](actor::Context& later) {
            --calls_;
            answered(later, std::move(*batch), response);
            pump(later);
          });
        });
}

void HttpVerifier::answered(actor::Context& cx, Batch batch,
                            const Result<http::HttpResponse>& response) {
  if (!response) {
    const bool late = response.error().code == ErrorCode::kTimedOut;
    return failed(cx, std::move(batch), late ? TroubleKind::kHung : TroubleKind::kReported,
                  response.error().message);
  }
  if (response->status / 100 != 2)
    return failed(
        cx, std::move(batch), TroubleKind::kReported,
        "the server answered " + std::to_string(response->status) + shown_body(response->body));
  const auto answers = form_.answers(response->body, batch.size());
  if (!answers) return failed(cx, std::move(batch), TroubleKind::kGarbage, answers.error().message);
  CHECK(answers->size() == batch.size());
  pause_ = config_.pause_min;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const RewardAnswer& answer = (*answers)[i];
    if (const auto* score = std::get_if<double>(&answer.score))
      batch[i].done(cx,
                    messages::Scored{.value = *score, .vote = answer.vote, .extra = answer.extra});
    else
      charge(cx, std::move(batch[i]), std::get<std::string>(answer.score));
  }
}

void HttpVerifier::failed(actor::Context& cx, Batch batch, TroubleKind kind,
                          const std::string& why) {
  const std::string what = why + " (" + config_.url + ")";
  if (told_)
    told_(cx, messages::RewardTrouble{.kind = kind,
                                      .what = node::one_line(what, 2 * kBodyBytesShown),
                                      .attempt = batch.front().failures + 1,
                                      .attempts = config_.retries + 1});
  // In reverse, so that the items keep their order at the front of the queue.
  for (auto attempt = batch.rbegin(); attempt != batch.rend(); ++attempt)
    charge(cx, std::move(*attempt), what);
  if (std::exchange(pausing_, true)) return;
  cx.after(pause_, [this](actor::Context& later) {
    pausing_ = false;
    pump(later);
  });
  pause_ = std::min(pause_ * 2, config_.pause_max);
}

void HttpVerifier::charge(actor::Context& cx, Attempt attempt, const std::string& why) {
  if (++attempt.failures > config_.retries) return attempt.done(cx, messages::ScoreFailed{why});
  waiting_.push_front(std::move(attempt));
}

}  // namespace tandem::reward
