#include "actors/program/program_host.h"

#include <algorithm>
#include <utility>

#include "actors/rank/rank_failure.h"
#include "runtime/base/log.h"

namespace tandem::program {
namespace {

constexpr Duration kMarkRetry = std::chrono::milliseconds(10);
constexpr std::int64_t kDrainMsMax = 24 * 3'600'000;  // keeps arithmetic on times from overflowing

std::string roles_of(const std::map<std::string, SpawnHosted>& classes) {
  std::string roles;
  for (const auto& [role, spawn] : classes) roles += (roles.empty() ? "" : ", ") + role;
  return roles;
}

}  // namespace

void ProgramHost::handle(actor::Context& cx, messages::StartActor start) {
  if (actor_) {
    if (ready_) report(messages::RankReady{start.actor, start.incarnation, 0, process_.sandbox});
    return;
  }
  name_ = start.actor;
  log::info("event=actor_started job={} actor={} incarnation={} args={}", start.job, start.actor,
            start.incarnation.value, start.args_json);
  if (const auto spawned = spawn(cx, start); !spawned) {
    log::error("event=actor_failed actor={} message=\"{}\"", start.actor, spawned.error().message);
    report(rank::rank_failed({start.actor, start.incarnation, 0}, spawned.error()));
  }
}

Result<void> ProgramHost::spawn(actor::Context& cx, const messages::StartActor& start) {
  const auto known = process_.classes.find(start.role);
  if (known == process_.classes.end())
    return Error{ErrorCode::kInvalid, "the program has no actor class for " + start.role +
                                          "; it has classes for " + roles_of(process_.classes)};
  const auto read = actor_start(start, Peers(start.job, process_.directory, process_.out));
  if (!read) return read.error();
  const auto ready = [this, start](actor::Context&) {
    (void)actor_->start();  // a mailbox without room has a message that starts the actor as well
    if (std::exchange(ready_, true)) return;  // a restart within the process
    report(messages::RankReady{start.actor, start.incarnation, 0, process_.sandbox});
  };
  actor_ = known->second({process_.system, process_.directory,
                          [post = cx.turn_poster(), ready] { post(ready); }, process_.enter},
                         *read);
  // After a failure for good the system's handler has ended the process with 1 already.
  cx.monitor(actor_->address, [this](actor::Context&, const Error&) {
    log::info("event=actor_ended actor={}", name_);
    process_.end(0);
  });
  return {};
}

void ProgramHost::report(messages::RankEvents event) {
  if (process_.controller.tell(std::move(event)) != actor::Delivery::kAccepted)
    log::warn("event=rank_report_lost actor={}", name_);
}

void ProgramHost::handle(actor::Context&, actor::Ask<messages::AskJson> ask) {
  if (!actor_ || !ready_)
    return ask.reply(Error{ErrorCode::kUnreachable, name_ + " has not started yet"});
  if (draining_) return ask.reply(Error{ErrorCode::kUnreachable, name_ + " is being drained"});
  actor_->ask_json(ask.question.body, ask.reply);
}

void ProgramHost::handle(actor::Context& cx, messages::DrainProgram drain) {
  if (!actor_) return process_.end(0);
  if (std::exchange(draining_, true)) return;
  log::info("event=draining actor={} deadline_ms={}", name_, drain.deadline_ms);
  actor_->withdraw();
  post_mark(cx);
  const std::int64_t within = std::clamp<std::int64_t>(drain.deadline_ms, 0, kDrainMsMax);
  cx.after(std::chrono::milliseconds(within), [this](actor::Context&) {
    log::error("event=drain_overdue actor={}", name_);
    process_.end(1);
  });
}

void ProgramHost::post_mark(actor::Context& cx) {
  if (actor_->drain() != actor::Delivery::kFull) return;
  cx.after(kMarkRetry, [this](actor::Context& later) { post_mark(later); });
}

}  // namespace tandem::program
