// One actor on one thread: its only handler blocks until the job is over.
#include "actors/main/job_follower.h"

#include <cstdlib>
#include <utility>
#include <variant>

#include "actors/cli/api_object.h"
#include "actors/cli/job_watch.h"
#include "actors/cli/object_names.h"
#include "actors/cli/submission.h"
#include "actors/main/background.h"
#include "runtime/base/check.h"
#include "runtime/base/guarded.h"
#include "runtime/base/log.h"
#include "runtime/http/http_client.h"

namespace tandem::app {

namespace {

// As often as a person wants to see a figure move.
constexpr Duration kRefreshEvery = std::chrono::milliseconds(200);
constexpr Duration kAskAgain = std::chrono::milliseconds(200);

struct FollowNow {};

}  // namespace

struct JobFollower::State {
  struct Content {
    Seen seen;
    bool cancel = false;  // the job is to be cancelled, and has not been yet
    bool stop = false;
  };
  Guarded<Content> content;
};

class JobFollower::Follow {
 public:
  using Inbox = std::variant<FollowNow>;

  Follow(std::shared_ptr<State> state, const cli::ApiAddress& controller, Submission submission,
         std::function<bool()> may_come_back, const cli::Console& console)
      : state_(std::move(state)),
        api_(controller),
        submission_(std::move(submission)),
        may_come_back_(std::move(may_come_back)),
        console_(console) {
    api_.give_up_when([this] { return stopped(); });
  }

  void handle(actor::Context&, FollowNow) {
    const auto accepted = submitted();
    if (!accepted) return;
    job_ = cli::field(*accepted, "id");
    if (take(*accepted)) return;
    for (;;) {
      const auto end = cli::watch_job(
          client_, job_, [&](const nlohmann::json& job) { return take(job); }, kRefreshEvery);
      if (end) return;
      if (!controller_comes_back(end.error())) return;
    }
  }

 private:
  // The job, once a controller has accepted it; nothing where it is given up.
  std::optional<nlohmann::json> submitted() {
    const cli::ApiClient patient(api_.address(), cli::kSubmitTimeout);
    for (;;) {
      const auto asked = controller_process(api_.address().folder);
      const Time late = steady_now() + cli::kSubmitTimeout;
      auto answer = patient.post(submission_.path, submission_.yaml);
      if (answer) return *std::move(answer);
      // Only the next controller is asked again, since one that lives may yet accept the job. The
      // next one has the job if the one before had accepted it.
      const Error lost = answer.error();
      // A submission that the controller cannot journal yet stands (CC-6). It has no other job.
      if (lost.code == ErrorCode::kTimedOut)
        if (const auto known = cli::get_list(client_, "/jobs"); known && !known->empty())
          return known->front();
      for (bool asks_again = false; !asks_again;) {
        if (steady_now() > late) return fail(lost), std::nullopt;
        if (!controller_comes_back(lost)) return {};
        const auto known = cli::get_list(client_, "/jobs");
        if (known && !known->empty()) return known->front();
        asks_again = known && controller_process(api_.address().folder) != asked;
      }
    }
  }
  // After an error: whether to ask again, which it waits for. A controller that reads much data
  // takes longer to come back than a client waits for it.
  bool controller_comes_back(const Error& error) {
    if (stopped()) return false;
    if (error.code != ErrorCode::kUnreachable || !may_come_back_()) {
      fail(error);
      return false;
    }
    (void)http::await_server(api_.address().endpoint, kAskAgain);  // with a pause
    return true;
  }
  bool stopped() const {
    return state_->content.with([](const auto& now) { return now.stop; });
  }
  void fail(const Error& why) {
    state_->content.with([&](auto& now) { now.seen.failure = why; });
  }
  // Whether it is followed to its end.
  bool take(const nlohmann::json& job) {
    const bool over = cli::has_ended(job);
    const bool cancel = state_->content.with([&](auto& now) {
      now.seen.job = job;
      now.seen.over = over;
      return now.cancel && !over;
    });
    return over || stopped() || (cancel && !cancelled());
  }
  // Asks for the job's end; false where it cannot be asked for, and the job is given up.
  bool cancelled() {
    const auto asked = api_.post("/jobs/" + cli::url_escape(job_) + "/cancel", "{}");
    // A controller that has just died is asked again when the next one answers; one that cannot
    // journal the wish yet at the next look, since the wish is lost if it dies (CC-6).
    if (!asked && (asked.error().code == ErrorCode::kUnreachable ||
                   asked.error().code == ErrorCode::kTimedOut))
      return true;
    if (!asked) fail(asked.error());
    state_->content.with([](auto& now) { now.cancel = false; });
    return asked.has_value();
  }

  const std::shared_ptr<State> state_;
  cli::ApiClient api_;
  const Submission submission_;
  std::string job_;  // empty until it is accepted
  const std::function<bool()> may_come_back_;
  const cli::Console& console_;
  cli::Client client_{.api = api_, .console = console_};
};

JobFollower::JobFollower(const cli::ApiAddress& controller, Submission submission,
                         std::function<bool()> may_come_back, const cli::Console& console)
    : state_(std::make_shared<State>()),
      executor_(1, 1),
      system_(executor_, [](const ActorId& who, const Error& why) {
        log::critical("event=actor_failed actor={} message=\"{}\"", who.name, why.message);
        std::abort();  // a failure of this actor is a bug of ours
      }) {
  const auto follow = system_.spawn<Follow>("follow", [=, state = state_, &console] {
    return std::make_unique<Follow>(state, controller, submission, may_come_back, console);
  });
  CHECK(follow.tell(FollowNow{}) == actor::Delivery::kAccepted);
}

JobFollower::~JobFollower() {
  stop();
  executor_.stop();
}

JobFollower::Seen JobFollower::seen() const {
  return state_->content.with([](const auto& now) { return now.seen; });
}

void JobFollower::cancel() {
  state_->content.with([](auto& now) { now.cancel = true; });
}

void JobFollower::stop() {
  state_->content.with([](auto& now) { now.stop = true; });
}

}  // namespace tandem::app
