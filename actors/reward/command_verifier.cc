// An item is waiting, in flight, or settled. Whenever something goes wrong the trouble is told
// first, and then charged to the attempt that caused it, or to none.
//
// The difficulty is to find the item at which a program crashes, since up to 64 are in flight for
// speed. After a crash all of them are marked as suspect and put at the front of the queue. A
// suspect item is written only when nothing else is in flight, and nothing is written beside it. A
// second crash then names its item.
#include "actors/reward/command_verifier.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

#include "actors/reward/reward_answer.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/node/last_lines.h"

namespace tandem::reward {
namespace {

using nlohmann::json;

constexpr std::size_t kGarbageBytesMax = 80;   // the most that is shown of a line that is no answer
constexpr std::size_t kTroubleBytesMax = 600;  // the longest description of one trouble
constexpr std::uint64_t kStartsLogged = 10;    // each of the first; after them one in a hundred
constexpr std::uint64_t kStartsPerLogLine = 100;

std::string seconds_text(Duration duration) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%g s", seconds(duration));
  return text.data();
}

// The reason of an item's failure: the trouble, and the last line that the program wrote to stderr.
std::string reason_of(const messages::RewardTrouble& trouble) {
  if (trouble.stderr_tail.empty()) return trouble.what;
  return trouble.what + "; its stderr ends: " + trouble.stderr_tail.back();
}

// The item as JSON without its opening brace, which send() writes with the id. A completion may end
// inside a character: dump_json replaces such bytes.
std::string request_line(const ScoreItem& item) {
  const json object{{"prompt", item.prompt},           {"completion", item.completion},
                    {"answer", item.answer},           {"data", item.data},
                    {"data_source", item.data_source}, {"truncated", item.truncated}};
  return dump_json(object).substr(1);
}

}  // namespace

CommandVerifier::CommandVerifier(Config config, node::LineChildSpawner spawn)
    : config_(std::move(config)),
      spawn_(std::move(spawn)),
      restart_pause_(config_.restart_pause_min) {}

void CommandVerifier::score(actor::Context& cx, ScoreItem item, Done done) {
  waiting_.push_back({.line = request_line(item), .done = std::move(done)});
  pump(cx);
}

bool CommandVerifier::may_send() const {
  if (!ready_ || waiting_.empty() || in_flight_.size() >= kCommandItemsInFlight) return false;
  const bool alone = waiting_.front().suspect || std::ranges::any_of(in_flight_, [](auto& item) {
                       return item.second.suspect;
                     });
  return in_flight_.empty() || !alone;
}

void CommandVerifier::pump(actor::Context& cx) {
  if (pausing_ || waiting_.empty()) return;
  if (!child_) start_child(cx);
  while (child_ && may_send()) send(cx);
}

void CommandVerifier::send(actor::Context& cx) {
  Attempt attempt = take_first();
  const ItemId id = ++last_id_;
  child_->write_line("{\"id\":" + std::to_string(id) + "," + attempt.line);
  attempt.allowed = config_.timeout * (std::ssize(in_flight_) + 1);
  attempt.timer =
      cx.after(attempt.allowed, [this, id](actor::Context& later) { timed_out(later, id); });
  in_flight_.emplace(id, std::move(attempt));
}

messages::RewardTrouble CommandVerifier::tell(actor::Context& cx, messages::TroubleKind kind,
                                              std::string what, int attempt) {
  messages::RewardTrouble trouble{.kind = kind,
                                  .what = node::one_line(what, kTroubleBytesMax),
                                  .attempt = attempt,
                                  .attempts = attempt > 0 ? config_.retries + 1 : 0,
                                  .log = config_.log};
  // A line of the program explains itself, and there may be thousands of them a second: collecting
  // stderr for each would cost a round trip to the I/O thread.
  const bool of_one_line =
      kind == messages::TroubleKind::kGarbage || kind == messages::TroubleKind::kReported;
  if (child_ && !of_one_line) trouble.stderr_tail = child_->stderr_tail();
  if (told_) told_(cx, trouble);
  return trouble;
}

void CommandVerifier::start_child(actor::Context& cx) {
  // The child calls these from any thread. The turns that they post carry the number of this child,
  // and are dropped when the child has been given up meanwhile (CV-3).
  const std::uint64_t number = ++child_number_;
  const auto post = cx.turn_poster();
  Result<std::unique_ptr<node::LineChild>> child = spawn_(
      config_.program, {.line =
                            [this, post, number](std::string line) {
                              post([this, number, line = std::move(line)](actor::Context& c) {
                                if (number == child_number_) heard(c, line);
                              });
                            },
                        .ended =
                            [this, post, number](node::ChildEnd end) {
                              post([this, number, end = std::move(end)](actor::Context& c) {
                                if (number == child_number_) ended(c, end);
                              });
                            }});
  if (!child) return not_started(cx, child.error());
  child_ = *std::move(child);
  starts_failed_ = starts_refused_ = 0;
  answers_of_child_ = 0;
  garbage_of_child_.clear();
  ready_ = !config_.start_timeout;
  if (!ready_)
    start_timer_ = cx.after(*config_.start_timeout, [this, number](actor::Context& later) {
      if (number == child_number_ && !ready_) not_ready(later);
    });
  if (!config_.greeting.empty()) child_->write_line(config_.greeting);
  if (++starts_ <= kStartsLogged || starts_ % kStartsPerLogLine == 0)
    log::info("event=reward_program_started pid={} start={}", child_->pid(), starts_);
}

CommandVerifier::Attempt CommandVerifier::take_first() {
  Attempt first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

// Where the program cannot start or get ready, no item can be scored, and the first one in line is
// charged, so that a job with a wrong command does not wait for ever.
void CommandVerifier::not_ready(actor::Context& cx) {
  const messages::RewardTrouble trouble =
      tell(cx, messages::TroubleKind::kHung,
           "the program was not ready after " + seconds_text(*config_.start_timeout),
           waiting_.front().failures + 1);
  if (given_up(cx, trouble)) return;
  drop_child(cx);
  attempt_failed(cx, take_first(), reason_of(trouble));
}

void CommandVerifier::not_started(actor::Context& cx, const Error& why) {
  if (why.code == ErrorCode::kOutOfMemory) {
    const messages::RewardTrouble trouble =
        tell(cx, messages::TroubleKind::kNotStarted,
             "this machine has no room for the program, which is not at fault: " + why.message, 0);
    if (++starts_refused_ == kCommandStartsRefused)
      return cx.fail({ErrorCode::kFailed,
                      std::to_string(kCommandStartsRefused) + " times in a row, " + text(trouble)});
    return pause(cx);
  }
  const messages::RewardTrouble trouble =
      tell(cx, messages::TroubleKind::kCannotStart, why.message, waiting_.front().failures + 1);
  if (++starts_failed_ == config_.starts_max)
    return cx.fail({ErrorCode::kInvalid, "the reward program cannot be run: " + why.message,
                    config_.key, "name a program that exists and may be executed"});
  pause(cx);
  attempt_failed(cx, take_first(), reason_of(trouble));
}

void CommandVerifier::heard(actor::Context& cx, const std::string& bytes) {
  const std::string line = valid_utf8(bytes);
  if (!ready_) {
    ready_ = true;
    cx.cancel(start_timer_);
    pump(cx);
  }
  if (line.find_first_not_of(" \t\r") == std::string::npos) return;
  const std::optional<RewardAnswer> answer = read_reward_answer(line);
  auto item = in_flight_.end();
  // An answer without an id is taken to be for the item that has been in flight the longest: most
  // programs answer in order, and waiting for the timeout would tell their authors less.
  if (answer) item = answer->id ? in_flight_.find(*answer->id) : in_flight_.begin();
  if (item == in_flight_.end()) {
    garbage_of_child_ = "garbage on stdout: " + node::one_line(line, kGarbageBytesMax);
    tell(cx, messages::TroubleKind::kGarbage, garbage_of_child_, 0);
    return;
  }
  if (answer->id) {
    ever_answered_ = true;
    ++answers_of_child_;
  }
  cx.cancel(item->second.timer);
  Attempt attempt = std::move(item->second);
  in_flight_.erase(item);
  if (const auto* score = std::get_if<double>(&answer->score)) {
    // A score shows that the program works; an error does not.
    restart_pause_ = config_.restart_pause_min;
    if (answer->extra_fault) tell(cx, messages::TroubleKind::kReported, *answer->extra_fault, 0);
    attempt.done(cx,
                 messages::Scored{.value = *score, .vote = answer->vote, .extra = answer->extra});
  } else {
    const messages::RewardTrouble trouble =
        tell(cx, messages::TroubleKind::kReported, std::get<std::string>(answer->score),
             attempt.failures + 1);
    attempt_failed(cx, std::move(attempt), reason_of(trouble));
  }
  pump(cx);
}

void CommandVerifier::attempt_failed(actor::Context& cx, Attempt attempt, const std::string& why) {
  ++attempt.failures;
  if (attempt.failures > config_.retries) {
    attempt.done(cx, messages::ScoreFailed{why});
    return;
  }
  waiting_.push_back(std::move(attempt));
}

// Charges the item whose time has passed, and no other item in flight: these may have waited behind
// it.
void CommandVerifier::timed_out(actor::Context& cx, ItemId id) {
  const auto item = in_flight_.find(id);
  if (item == in_flight_.end()) return;
  Attempt attempt = std::move(item->second);
  in_flight_.erase(item);
  std::string what = "the program hung for " + seconds_text(attempt.allowed) + " without an answer";
  if (!garbage_of_child_.empty()) what += "; it wrote " + garbage_of_child_;
  const messages::RewardTrouble trouble =
      tell(cx, messages::TroubleKind::kHung, what, attempt.failures + 1);
  if (given_up(cx, trouble)) return;
  drop_child(cx);
  attempt_failed(cx, std::move(attempt), reason_of(trouble));
  pump(cx);
}

void CommandVerifier::ended(actor::Context& cx, const node::ChildEnd& end) {
  std::string what = "the program " + end.why;
  const bool after_answers = end.clean && answers_of_child_ > 0;
  starts_of_one_line_ = end.clean && answers_of_child_ == 1 ? starts_of_one_line_ + 1 : 0;
  const bool starting = !ready_;  // an item waits for the program, none is in flight
  const bool charged = starting || (in_flight_.size() == 1 && !after_answers);
  if (starts_of_one_line_ >= kCommandStartsOfOneLine) {
    tell(cx, messages::TroubleKind::kEndsAfterEachLine,
         "the program works, but ends after each line and is started again for the next one; let "
         "it read lines until its input ends",
         0);
    return drop_child(cx);
  }
  // A program that ends between two items, after answers, has done its work: no trouble is told.
  if (after_answers && in_flight_.empty()) return drop_child(cx);
  if (!garbage_of_child_.empty()) what += "; it wrote " + garbage_of_child_;
  const messages::RewardTrouble trouble =
      tell(cx, messages::TroubleKind::kEnded, what,
           !charged   ? 0
           : starting ? waiting_.front().failures + 1
                      : in_flight_.begin()->second.failures + 1);
  if (given_up(cx, trouble)) return;
  if (!charged) return drop_child(cx);
  if (starting) {
    drop_child(cx);
    return attempt_failed(cx, take_first(), reason_of(trouble));
  }
  const auto item = in_flight_.begin();
  cx.cancel(item->second.timer);
  Attempt attempt = std::move(item->second);
  in_flight_.erase(item);
  drop_child(cx);
  attempt.suspect = true;
  attempt_failed(cx, std::move(attempt), reason_of(trouble));
}

bool CommandVerifier::given_up(actor::Context& cx, const messages::RewardTrouble& last) {
  if (ever_answered_ || ++starts_unanswered_ < config_.starts_max) return false;
  cx.fail({ErrorCode::kInvalid,
           "the reward program was started " + std::to_string(starts_unanswered_) +
               " times and never answered; the last time, " + text(last),
           config_.key, "`tandem score` tries it without a job"});
  return true;
}

void CommandVerifier::drop_child(actor::Context& cx) {
  child_.reset();
  ++child_number_;
  if (!std::exchange(ready_, true)) cx.cancel(start_timer_);
  std::map<ItemId, Attempt> hit;
  hit.swap(in_flight_);
  // The loop runs in reverse, so that the items keep their order at the front of the queue.
  for (auto item = hit.rbegin(); item != hit.rend(); ++item) {
    cx.cancel(item->second.timer);
    item->second.suspect = true;
    waiting_.push_front(std::move(item->second));
  }
  pause(cx);
}

void CommandVerifier::pause(actor::Context& cx) {
  pausing_ = true;
  cx.after(restart_pause_, [this](actor::Context& later) {
    pausing_ = false;
    pump(later);
  });
  restart_pause_ = std::min(restart_pause_ * 2, config_.restart_pause_max);
}

}  // namespace tandem::reward
