#include "actors/rank/rank_session.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "actors/messages/roles.h"
#include "actors/messages/wire_build.h"
#include "actors/rank/rank_failure.h"
#include "runtime/base/log.h"
#include "runtime/node/memory_kills.h"
#include "runtime/node/process_host.h"

namespace tandem::rank {
namespace {

constexpr Duration kLookAtLink = std::chrono::seconds(1);

// Ends this process and its own children, which are in its process group. One that does not lead
// its group ends alone, since others may be in it: the shell's job that it was started in by hand.
void end_with_owner() {
  if (::getpgrp() != ::getpid()) std::_Exit(1);
  (void)::kill(0, SIGKILL);
}

}  // namespace

Duration alone_max(const link::Hello& controller) {
  return controller.grace > Duration::zero() ? controller.grace : node::kNodeGraceDefault;
}

// A controller by TCP that is silent has been waited for by its link.
bool may_come_back(link::Down::Reason reason, bool remote) {
  switch (reason) {
    case link::Down::Reason::kSilent:
      return !remote;
    case link::Down::Reason::kDisconnected:
    case link::Down::Reason::kSuperseded:
      return true;
    case link::Down::Reason::kClosed:
    case link::Down::Reason::kFenced:
    case link::Down::Reason::kRefused:
      return false;
  }
  return false;
}

Result<std::unique_ptr<RankSession>> RankSession::begin(RankWords words, ReportProgress progress,
                                                        Passing passing,
                                                        link::ProgramBuild program) {
  const bool may_outlive = words.parent == 0;
  const auto armed = may_outlive ? Result<void>()
                                 : node::arm_parent_death_signal(static_cast<pid_t>(words.parent));
  if (!armed) return armed.error();
  node::die_first_for_memory();
  init_logging(
      to_string(ActorId{messages::rank_name(words.id.actor, words.id.rank), words.id.incarnation}),
      LogLevel::kInfo);
  return std::unique_ptr<RankSession>(new RankSession(std::move(words), node::OwnLog::inherited(),
                                                      std::move(progress), std::move(passing),
                                                      std::move(program)));
}

// signals_ is made before io_, whose thread inherits the mask.
RankSession::RankSession(RankWords words, node::OwnLog log, ReportProgress progress,
                         Passing passing, link::ProgramBuild program)
    : words_(std::move(words)), log_(std::move(log)), passing_(std::move(passing)) {
  alone_max_ = words_.alone_max;
  if (auto owner = node::Owner::of_environment()) owner_.emplace(*std::move(owner), end_with_owner);
  link::LinkCallbacks callbacks;
  callbacks.on_parcel = [this](const ActorId&, std::string& frame) {
    return passing_.parcel ? passing_.parcel(frame) : directory_.deliver(frame, to_controller_);
  };
  callbacks.on_up = [this](const ActorId&, const link::Hello& hello) { controller_met(hello); };
  callbacks.on_down = [this](const ActorId&, const link::Down& down) { controller_lost(down); };
  callbacks.on_silence = [](const ActorId&, bool silent) {
    log::warn("event={}", silent ? "controller_silent consequence=\"it is waited for\""
                                 : "controller_heard_again");
  };
  link::LinkOptions options;
  options.progress = std::move(progress);
  link_ = std::make_unique<link::LinkClient>(
      io_, words_.network.controller,
      link::Hello{.name = messages::rank_name(words_.id.actor, words_.id.rank),
                  .incarnation = words_.id.incarnation,
                  .rank = words_.id.rank,
                  .pid = 0,
                  .build = messages::wire_build(),
                  .opaque = words_.id.actor,
                  .program = std::move(program)},
      options, callbacks);
  to_controller_ = link::to_server(*link_);
}

class RankSession::ToController final : public actor::Target<messages::RankEvents> {
 public:
  ToController(RankSession& session, actor::Ref<messages::RankEvents> now)
      : session_(session), now_(std::move(now)) {}

  actor::Delivery post(messages::RankEvents event) override {
    const auto* listening = std::get_if<messages::RankListening>(&event);
    if (!listening) return now_.tell(std::move(event));
    session_.listening_.with([&](auto& kept) { kept = *listening; });
    const actor::Delivery sent = now_.tell(std::move(event));
    // Where there is no controller now, the next one is told.
    return sent == actor::Delivery::kGone ? actor::Delivery::kAccepted : sent;
  }
  std::uint64_t bytes_max() const override { return now_.bytes_max(); }
  Error too_large(const messages::RankEvents& event) const override {
    return now_.too_large(event);
  }

 private:
  RankSession& session_;
  const actor::Ref<messages::RankEvents> now_;
};

actor::Ref<messages::RankEvents> RankSession::controller() {
  const auto now =
      directory_.remote<messages::RankEvents>({kControllerRanksPort, {}}, to_controller_);
  return {now.address(), std::make_shared<ToController>(*this, now)};
}

void RankSession::controller_met(const link::Hello& hello) {
  alone_max_ = alone_max(hello);
  linked_ = true;
  log::info("event=controller_met epoch={} pid={}", hello.incarnation.value, hello.pid);
  if (passing_.up) passing_.up(hello);
  const auto listening = listening_.with([](const auto& kept) { return kept; });
  if (!listening || controller().tell(*listening) == actor::Delivery::kAccepted) return;
  log::error("event=gang_endpoint_not_told consequence=\"this process ends\"");
  end(1);  // the other ranks would wait for it without an end
}

void RankSession::start() { link_->start(); }

int RankSession::wait() { return wait_for(Duration::max()); }

bool RankSession::told_from_outside() const {
  return !ending_ && signals_.sender() != ::getpid() && signals_.sender() != ::getppid();
}

int RankSession::wait_for(Duration most) {
  for (const Time began = steady_now(); steady_now() - began < most;) {
    if (const int signal = signals_.wait_for(kLookAtLink); signal != 0) return signal;
    log_.look();
    if (linked_ || words_.parent != 0 || steady_now() - alone_since_.load() < alone_max_.load())
      continue;
    log::error("event=controller_never_came consequence=\"this process ends\"");
    end(1);
  }
  return 0;
}

// The messages that the lost controller was to pass on are gone; asks among them end with this
// Error.
void RankSession::controller_lost(const link::Down& down) {
  alone_since_ = steady_now();
  linked_ = false;
  const bool waits = may_come_back(down.reason, !words_.network.controller.to.is_local());
  log::warn("event=controller_lost reason={} message=\"{}\" consequence=\"{}\"",
            link::name(down.reason), down.error.message,
            waits ? "it is looked for again" : "this process ends");
  directory_.fail_asks(down.error);
  if (passing_.down) passing_.down();
  if (!waits) end(1);
}

void RankSession::failed(const ActorId& who, const Error& why) {
  log::error("event=actor_failed actor={} message=\"{}\"", who.name, why.message);
  // The process ends whether or not this message arrives; without it the controller knows no more
  // than the exit code.
  (void)controller().tell(rank_failed_at_work(words_.id, why));
  end(1);
}

void RankSession::end(int exit_status) {
  for (int now = exit_status_; now < exit_status;)
    if (exit_status_.compare_exchange_weak(now, exit_status)) break;
  ending_ = true;
  signals_.raise();
}

void RankSession::close() { link_->close(std::chrono::milliseconds(200)); }

}  // namespace tandem::rank
