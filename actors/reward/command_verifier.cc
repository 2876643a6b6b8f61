#include "actors/reward/command_verifier.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/log.h"

namespace tandem::actors {
namespace {

using nlohmann::json;

constexpr std::size_t kQuotedBytesMax = 200;  // of a line in a log or a reason

std::string excerpt(std::string_view line) {
  return std::string(line.substr(0, kQuotedBytesMax)) + (line.size() > kQuotedBytesMax ? "…" : "");
}

// A completion may end inside a character: what is not UTF-8 is replaced.
std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string request_line(const ScoreItem& item) {
  const json object{{"prompt", item.prompt},
                    {"completion", item.completion},
                    {"answer", item.answer},
                    {"data", item.data},
                    {"truncated", item.truncated}};
  return dump(object).substr(1);
}

}  // namespace

CommandVerifier::CommandVerifier(Config config, LineChildSpawner spawn)
    : config_(std::move(config)),
      spawn_(std::move(spawn)),
      restart_pause_(config_.restart_pause_min) {}

void CommandVerifier::score(runtime::Context& cx, ScoreItem item, Done done) {
  waiting_.push_back({.line = request_line(item), .done = std::move(done)});
  pump(cx);
}

bool CommandVerifier::may_send() const {
  if (waiting_.empty() || in_flight_.size() >= kCommandItemsInFlight) return false;
  const bool alone = waiting_.front().suspect || std::ranges::any_of(in_flight_, [](auto& item) {
                       return item.second.suspect;
                     });
  return in_flight_.empty() || !alone;
}

void CommandVerifier::pump(runtime::Context& cx) {
  if (pausing_ || waiting_.empty()) return;
  if (!child_) start_child(cx);
  while (child_ && may_send()) send(cx);
}

void CommandVerifier::send(runtime::Context& cx) {
  Attempt attempt = std::move(waiting_.front());
  waiting_.pop_front();
  const ItemId id = ++last_id_;
  child_->write_line("{\"id\":" + std::to_string(id) + "," + attempt.line);
  const auto ahead = static_cast<std::int64_t>(in_flight_.size());
  attempt.timer = cx.after(config_.timeout * (ahead + 1),
                           [this, id](runtime::Context& later) { timed_out(later, id); });
  in_flight_.emplace(id, std::move(attempt));
}

void CommandVerifier::start_child(runtime::Context& cx) {
  const std::uint64_t life = ++life_;
  const auto post = cx.turn_poster();
  Result<std::unique_ptr<LineChild>> child =
      spawn_(config_.argv, {.line =
                                [this, post, life](std::string line) {
                                  post([this, life, line = std::move(line)](runtime::Context& c) {
                                    if (life == life_) heard(c, line);
                                  });
                                },
                            .ended =
                                [this, post, life](std::string why) {
                                  post([this, life, why = std::move(why)](runtime::Context& c) {
                                    if (life == life_) child_stopped(c, "the command " + why);
                                  });
                                }});
  if (child) {
    child_ = *std::move(child);
    return;
  }
  // Nobody can be scored: the first in line is charged, so that a missing program ends the waiting.
  Attempt first = std::move(waiting_.front());
  waiting_.pop_front();
  child_stopped(cx, child.error().message);
  attempt_failed(cx, std::move(first), child.error().message);
}

void CommandVerifier::heard(runtime::Context& cx, const std::string& line) {
  if (line.find_first_not_of(" \t\r") == std::string::npos) return;
  const json answer = parse_json(line);
  const bool named =
      answer.is_object() && answer.contains("id") && answer["id"].is_number_unsigned();
  const auto item = named ? in_flight_.find(answer["id"].get<ItemId>()) : in_flight_.end();
  if (item == in_flight_.end()) {
    log::warn("event=reward_line_ignored line=\"{}\"", excerpt(line));
    return;
  }
  ever_answered_ = true;
  if (answer.contains("score") && answer["score"].is_number() &&
      std::isfinite(answer["score"].get<double>())) {
    restart_pause_ = config_.restart_pause_min;
    cx.cancel(item->second.timer);
    const Done done = std::move(item->second.done);
    in_flight_.erase(item);
    done(cx, Scored{answer["score"].get<double>()});
  } else {
    cx.cancel(item->second.timer);
    Attempt attempt = std::move(item->second);
    in_flight_.erase(item);
    attempt_failed(cx, std::move(attempt),
                   answer.contains("error")
                       ? "the command reported " + excerpt(dump(answer["error"]))
                       : "the command wrote no score: " + excerpt(line));
  }
  pump(cx);
}

void CommandVerifier::attempt_failed(runtime::Context& cx, Attempt attempt,
                                     const std::string& why) {
  ++attempt.failures;
  if (attempt.failures > config_.retries) {
    attempt.done(cx, ScoreFailed{why});
    return;
  }
  waiting_.push_back(std::move(attempt));
}

void CommandVerifier::timed_out(runtime::Context& cx, ItemId id) {
  const auto item = in_flight_.find(id);
  if (item == in_flight_.end()) return;
  Attempt attempt = std::move(item->second);
  in_flight_.erase(item);
  const std::string why = "the command gave no answer in time";
  child_stopped(cx, why);
  attempt_failed(cx, std::move(attempt), why);
  pump(cx);
}

void CommandVerifier::child_stopped(runtime::Context& cx, const std::string& why) {
  log::warn("event=reward_command_stopped items={} why=\"{}\"", in_flight_.size(), why);
  if (child_ && !ever_answered_ && ++lives_unanswered_ == kCommandLivesUnanswered)
    return cx.fail({ErrorCode::kInvalid,
                    "the reward command was started " + std::to_string(lives_unanswered_) +
                        " times and never answered; the last time, " + why,
                    "reward.command", "try it by hand; what it wrote to stderr is in this log"});
  child_.reset();
  ++life_;
  std::map<ItemId, Attempt> hit;
  hit.swap(in_flight_);
  const bool alone = hit.size() == 1;
  for (auto item = hit.rbegin(); item != hit.rend(); ++item) {
    cx.cancel(item->second.timer);
    if (alone) {
      attempt_failed(cx, std::move(item->second), why);
    } else {
      item->second.suspect = true;
      waiting_.push_front(std::move(item->second));
    }
  }
  pausing_ = true;
  cx.after(restart_pause_, [this](runtime::Context& later) {
    pausing_ = false;
    pump(later);
  });
  restart_pause_ = std::min(restart_pause_ * 2, config_.restart_pause_max);
}

}  // namespace tandem::actors
