// The actor keeps results until it hears that they have arrived: an ask that is answered too late
// loses its reply, so each ask says how many results its sender has, and the reply begins behind
// these.
#include "actors/main/judging.h"

#include <deque>
#include <utility>
#include <variant>

#include "actors/main/roles/role_config.h"
#include "actors/reward/reward_sandbox.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/guarded.h"
#include "runtime/base/home_path.h"
#include "runtime/base/log.h"

namespace tandem::app {
namespace {

constexpr int kTroublesTold = 20;  // the most that are logged
// Every ask has a deadline; this one is not meant to be reached.
constexpr Duration kJudgementMax = std::chrono::hours(24);

struct Judge {
  using Reply = std::vector<Judged>;
  std::vector<reward::ScoreItem> items;
  std::size_t received = 0;  // results that the asker has
};

class Judges {
 public:
  using Inbox = std::variant<actor::Ask<Judge>>;
  explicit Judges(std::unique_ptr<reward::Verifier> verifier) : verifier_(std::move(verifier)) {
    verifier_->report_to([this](actor::Context&, const messages::RewardTrouble& trouble) {
      if (++troubles_ <= kTroublesTold)
        log::warn("event=reward_trouble what={}", nlohmann::json(text(trouble)).dump());
    });
  }

  void handle(actor::Context& cx, actor::Ask<Judge> ask) {
    for (; dropped_ < ask.question.received; ++dropped_) finished_.pop_front();
    // A verifier may answer within score(): the reply waits until all items are taken.
    waiting_.reset();
    for (reward::ScoreItem& item : ask.question.items) {
      ++open_;
      auto found = verifier_->found(item);
      verifier_->score(cx, std::move(item),
                       [this, number = given_++, found = std::move(found)](
                           actor::Context&, messages::TrajectoryScore score) {
                         --open_;
                         finished_.push_back({number, std::move(score), found});
                         answer();
                       });
    }
    waiting_ = std::move(ask.reply);
    answer();
  }

 private:
  void answer() {
    if (!waiting_ || (finished_.empty() && open_ > 0)) return;
    (*waiting_)(Judge::Reply(finished_.begin(), finished_.end()));
    waiting_.reset();
  }

  std::unique_ptr<reward::Verifier> verifier_;
  std::size_t given_ = 0, open_ = 0;
  std::deque<Judged> finished_;  // without the first `dropped_`, which have arrived
  std::size_t dropped_ = 0;
  std::optional<actor::ReplyTo<Judge::Reply>> waiting_;
  int troubles_ = 0;
};
static_assert(actor::Actor<Judges>);

}  // namespace

Result<std::unique_ptr<reward::Verifier>> verifier_of(const job::JobSpec& job, link::IoThread& io) {
  reward::RewardParts parts = reward_parts(job, "");
  if (const auto boxed = reward::enter_sandboxes(parts, {state_folder().string()}); !boxed)
    return boxed.error();
  return reward::make_reward(parts, node::process_spawner(io));
}

struct Judging::Room {
  Guarded<std::optional<Error>> gave_up;
  actor::ThreadedExecutor executor{1, 0};
  actor::System system{executor, [this](const ActorId&, const Error& why) {
                         gave_up.with([&](std::optional<Error>& error) { error = why; });
                       }};
  actor::Ref<Judges::Inbox> judges;
};

Judging::Judging(std::unique_ptr<reward::Verifier> verifier) : room_(std::make_unique<Room>()) {
  auto kept = std::make_shared<std::unique_ptr<reward::Verifier>>(std::move(verifier));
  room_->judges = room_->system.spawn<Judges>(
      "judge", [kept] { return std::make_unique<Judges>(std::move(*kept)); });
}

Judging::~Judging() { room_->executor.stop(); }

Result<std::vector<Judged>> Judging::next(std::vector<reward::ScoreItem> items, Duration wait) {
  given_ += items.size();
  auto judged = ask_and_wait(room_->judges, Judge{std::move(items), returned_}, wait);
  if (judged) {
    returned_ += judged->size();
    return judged;
  }
  if (judged.error().code == ErrorCode::kTimedOut) return std::vector<Judged>{};
  // The actor has ended, by an error of the verifier, which its thread may be about to write.
  room_->executor.stop();
  const std::optional<Error> why = room_->gave_up.with([](auto& error) { return error; });
  return why ? *why : judged.error();
}

Result<std::vector<messages::TrajectoryScore>> judge_all(std::unique_ptr<reward::Verifier> verifier,
                                                         std::vector<reward::ScoreItem> items) {
  std::vector<messages::TrajectoryScore> scores(items.size());
  Judging judging(std::move(verifier));
  auto judged = judging.next(std::move(items), kJudgementMax);
  for (; judged; judged = judging.next({}, kJudgementMax)) {
    for (Judged& one : *judged) scores[one.number] = std::move(one.score);
    if (judging.open() == 0) return scores;
  }
  return judged.error();
}

}  // namespace tandem::app
