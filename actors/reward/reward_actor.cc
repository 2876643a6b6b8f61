// The actor fetches the payloads of one ScoreGroups message together, passes every completion to
// the verifier at once, and counts down per group until all of its verdicts are there. Verdicts may
// come at once or much later, in any order: a direct verifier answers inside score(), a user's
// program answers when it has read the line. Groups that are complete by the end of the turn that
// began them leave in one message, so that a quick verifier does not cause one message per group.
#include "actors/reward/reward_actor.h"

#include <utility>

#include "runtime/base/log.h"
#include "runtime/wire/codec.h"

namespace tandem::reward {
namespace {

using nlohmann::json;

// The value that a record has under `key`, null where it has none.
json member(const json& record, const std::string& key) {
  const json* const at = find_path(record, key);
  return at ? *at : json();
}

std::string text_or_empty(const json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace

struct RewardActor::OpenGroups {
  std::vector<messages::GroupToScore> groups;
  int attempts = 0;
  std::optional<Time> unanswered_since;
};

struct RewardActor::OpenGroup {
  messages::GroupScore score;
  std::size_t left = 0;
};

struct RewardActor::OpenTexts {
  messages::TextsScored answer;
  std::size_t left = 0;
};

RewardActor::RewardActor(const RewardConfig& config, std::unique_ptr<Verifier> verifier,
                         Connections connections)
    : config_(config),
      verifier_(std::move(verifier)),
      connections_(std::move(connections)),
      outbox_(connections_.exchange, config.retry_interval) {
  verifier_->report_to(
      [this](actor::Context& cx, messages::RewardTrouble what) { trouble(cx, std::move(what)); });
}

RewardActor::~RewardActor() {
  log::info("event=ended actor={} groups={} scored={} failed={} troubles={} seconds={:.1f}",
            config_.self.name, groups_, scored_, failed_, trouble_.count,
            seconds(last_score_ - up_));
}

void RewardActor::handle(actor::Context& cx, StartReward) {
  up_ = last_score_ = cx.now();
  outbox_.send(cx, messages::RewardUp{.from = config_.self, .capacity = config_.capacity});
}

void RewardActor::handle(actor::Context& cx, messages::ScoreGroups work) {
  if (work.groups.empty()) return;
  for (const messages::GroupToScore& group : work.groups) held_.lease(group.group, group.attempt);
  read(cx, std::make_shared<OpenGroups>(OpenGroups{.groups = std::move(work.groups)}));
}

void RewardActor::handle(actor::Context&, messages::ScoresKept kept) { held_.kept(kept.groups); }

// The exchange ignores answers that come before RewardBack (follow.h), so waiting ones are
// dropped and sent behind it.
void RewardActor::handle(actor::Context& cx, MeetAgain) {
  outbox_.clear();
  outbox_.send(cx, messages::RewardBack{config_.self, config_.capacity, held_.held()});
  messages::GroupsScored again{.from = config_.self, .groups = held_.told()};
  if (!again.groups.empty()) outbox_.send(cx, std::move(again), &messages::GroupsScored::groups);
}

void RewardActor::read(actor::Context& cx, std::shared_ptr<OpenGroups> work) {
  ++work->attempts;
  std::vector<wire::PayloadRef> refs;
  for (const messages::GroupToScore& group : work->groups) refs.push_back(group.payload);
  const auto arrived = [this, work](actor::Context& later,
                                    const Result<std::vector<std::string>>& payloads) {
    if (payloads) {
      CHECK(payloads->size() == work->groups.size());
      note("score", later.now());
      gathering_ = true;
      for (std::size_t i = 0; i < payloads->size(); ++i)
        judge_group(later, work->groups[i], (*payloads)[i]);
      gathering_ = false;
      send_completed(later);
      note("idle", later.now());
      return;
    }
    // The pause doubles with each attempt.
    log::warn("event=payload_read_failed actor={} attempt={} error=\"{}\"", config_.self.name,
              work->attempts, payloads.error().message);
    if (payload::is_waited_for(payloads.error(), work->unanswered_since, later.now()))
      work->attempts = 1;
    else if (work->attempts >= kReadAttempts)
      return later.fail(payloads.error());
    later.after(config_.retry_interval * (1 << (work->attempts - 1)),
                [this, work](actor::Context& again) { read(again, work); });
  };
  connections_.read(std::move(refs),
                    [post = cx.turn_poster(), arrived](Result<std::vector<std::string>> payloads) {
                      post([arrived, payloads = std::move(payloads)](actor::Context& later) {
                        arrived(later, payloads);
                      });
                    });
}

void RewardActor::judge_group(actor::Context& cx, const messages::GroupToScore& group,
                              const std::string& bytes) {
  const Result<messages::GroupPayload> payload = wire::decode<messages::GroupPayload>(bytes);
  // A damaged payload does not tell how many trajectories it was to hold.
  const auto expected = static_cast<std::size_t>(config_.group_size);
  if (!payload)
    return fail_group(cx, group, expected, "the payload is damaged: " + payload.error().message);
  if (const auto why = misfit(*payload, group.group))
    return fail_group(cx, group, expected, "the payload makes no sense: " + *why);
  const std::size_t n = payload->trajectories.size();
  const json record = parse_json(group.data);
  if (!record.is_object()) return fail_group(cx, group, n, "the record is no JSON object");
  if (n == 0) return completed(cx, {.group = group.group, .attempt = group.attempt});

  auto open = std::make_shared<OpenGroup>();
  open->score = {.group = group.group, .attempt = group.attempt};
  open->score.scores.resize(n);
  open->left = n;
  for (std::size_t i = 0; i < n; ++i) {
    const messages::Trajectory& trajectory = payload->trajectories[i];
    verifier_->score(cx,
                     {.prompt = payload->prompt,
                      .completion = trajectory.text,
                      .answer = member(record, config_.answer_key),
                      .data = record,
                      .data_source = text_or_empty(member(record, config_.data_source_key)),
                      .truncated = trajectory.truncated,
                      .special_text = trajectory.special_text},
                     [this, open, i](actor::Context& later, messages::TrajectoryScore score) {
                       count(later.now(), score);
                       open->score.scores[i] = std::move(score);
                       if (--open->left == 0) completed(later, std::move(open->score));
                     });
  }
}

void RewardActor::fail_group(actor::Context& cx, const messages::GroupToScore& group,
                             std::size_t trajectories, const std::string& why) {
  messages::GroupScore score{.group = group.group, .attempt = group.attempt};
  score.scores.assign(trajectories, messages::ScoreFailed{why});
  completed(cx, std::move(score));
}

void RewardActor::completed(actor::Context& cx, messages::GroupScore score) {
  held_.tell(score);
  completed_.push_back(std::move(score));
  ++groups_;
  if (!gathering_) send_completed(cx);
}

void RewardActor::send_completed(actor::Context& cx) {
  if (completed_.empty()) return;
  messages::GroupsScored scored{.from = config_.self, .groups = std::exchange(completed_, {})};
  outbox_.send(cx, std::move(scored), &messages::GroupsScored::groups);
}

void RewardActor::handle(actor::Context& cx, messages::ScoreTexts work) {
  auto open = std::make_shared<OpenTexts>();
  open->answer = {.from = config_.self, .evaluation = work.evaluation};
  open->answer.scores.resize(work.texts.size());
  open->left = work.texts.size();
  // The texts of an evaluation come with the message and need no payload.
  if (work.texts.empty()) return outbox_.send(cx, std::move(open->answer));
  note("score", cx.now());
  for (std::size_t i = 0; i < work.texts.size(); ++i) {
    messages::TextToScore& text = work.texts[i];
    open->answer.scores[i] = {.index = text.index, .sample = text.sample};
    const auto judged = [this, open, i](actor::Context& later, messages::TrajectoryScore score) {
      count(later.now(), score);
      open->answer.scores[i].score = std::move(score);
      if (--open->left > 0) return;
      outbox_.send(later, std::move(open->answer), &messages::TextsScored::scores);
    };
    const json record = parse_json(text.data);
    if (!record.is_object()) {
      judged(cx, messages::ScoreFailed{"the record is no JSON object"});
      continue;
    }
    verifier_->score(cx,
                     {.prompt = text_or_empty(member(record, config_.prompt_key)),
                      .completion = std::move(text.text),
                      .answer = member(record, config_.answer_key),
                      .data = record,
                      .data_source = text_or_empty(member(record, config_.data_source_key)),
                      .truncated = text.truncated,
                      .special_text = std::move(text.special_text)},
                     judged);
  }
  note("idle", cx.now());
}

void RewardActor::count(Time now, const messages::TrajectoryScore& score) {
  last_score_ = now;
  ++(std::holds_alternative<messages::Scored>(score) ? scored_ : failed_);
  const std::int64_t all = scored_ + failed_;
  if (all == 1 || all % kScoresPerLogLine == 0)
    log::info("event=scored actor={} scored={} failed={} seconds={:.1f}", config_.self.name,
              scored_, failed_, seconds(now - up_));
}

// Keeps the newest trouble and the count of all; tells it now, or at the end of the pause (RW-3).
void RewardActor::trouble(actor::Context& cx, messages::RewardTrouble trouble) {
  const std::int64_t count = trouble_.count + 1;
  trouble_ = std::move(trouble);
  trouble_.from = config_.self;
  trouble_.count = count;
  trouble_told_ = false;
  if (!trouble_pause_) tell_trouble(cx);
}

void RewardActor::tell_trouble(actor::Context& cx) {
  trouble_told_ = true;
  log::warn("event=reward_trouble actor={} count={} what={}", config_.self.name, trouble_.count,
            json(trouble_.what).dump());
  outbox_.send(cx, trouble_);
  trouble_pause_ = true;
  cx.after(config_.trouble_interval, [this](actor::Context& later) {
    trouble_pause_ = false;
    if (!trouble_told_) tell_trouble(later);
  });
}

void RewardActor::note(const char* phase, Time now) const {
  if (connections_.progress) connections_.progress(phase, now);
}

}  // namespace tandem::reward
