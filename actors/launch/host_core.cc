// Every fault ends in failed(), which decides whether there is another attempt, and says so. A line
// or an end that comes in a state which does not expect it is of a connection that was given up,
// and changes nothing.
#include "actors/launch/host_core.h"

#include <algorithm>
#include <utility>

namespace tandem::launch {
namespace {

std::string in_seconds(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

Duration pause_after(int faults) {
  Duration pause = kPauseFirst;
  for (int i = 1; i < faults && pause < kPauseMax; ++i) pause *= 2;
  return std::min(pause, kPauseMax);
}

}  // namespace

void HostCore::enter(State state, Time deadline) {
  state_ = state;
  deadline_ = deadline;
}

HostEffects HostCore::connect(Time now) {
  enter(State::kConnecting, now + kConnectWithin);
  copied_ = joined_ = hinted_ = false;
  return {effect::Connect{}};
}

HostEffects HostCore::give_up(const std::string& why) {
  state_ = State::kGivenUp;
  deadline_.reset();
  return {effect::Disconnect{}, effect::Say{why + "; it is left out"}};
}

HostEffects HostCore::failed(const std::string& why, Time now) {
  if (state_ == State::kRunning && now - running_since_ >= kWellAfter) faults_ = 0;
  ++faults_;
  if (!has_joined_ && faults_ >= kFirstAttempts) return give_up(why);
  const Duration pause = pause_after(faults_);
  enter(State::kWaiting, now + pause);
  return {effect::Disconnect{}, effect::Say{why + "; attempt " + std::to_string(faults_ + 1) +
                                            " in " + in_seconds(pause)}};
}

HostEffects HostCore::look(Time now) {
  if (state_ == State::kIdle) return connect(now);
  if (state_ == State::kRunning) {
    if (joined_ || hinted_ || now - running_since_ < kJoinsWithin) return {};
    hinted_ = true;
    return {effect::Say{"its agent runs, and its node has not come within " +
                        in_seconds(kJoinsWithin) + ": can it reach " + rules_.controller +
                        "? It goes on trying"}};
  }
  if (!deadline_ || now < *deadline_) return {};
  switch (state_) {
    case State::kWaiting:
      return connect(now);
    case State::kConnecting:
      return failed("it did not answer within " + in_seconds(kConnectWithin), now);
    case State::kCopying:
      return failed("the copy took longer than " + in_seconds(kCopyWithin), now);
    case State::kStarting:
      return failed("its agent did not start within " + in_seconds(kStartWithin), now);
    case State::kEnding:
      state_ = State::kEnded;
      deadline_.reset();
      return {effect::Disconnect{}, effect::Say{"its agent did not end in time, and is left"}};
    case State::kIdle:
    case State::kRunning:
    case State::kEnded:
    case State::kGivenUp:
      break;
  }
  return {};
}

HostEffects HostCore::heard(const HostLine& line, Time now) {
  return std::visit([&](const auto& one) { return on(one, now); }, line);
}

HostEffects HostCore::on(const said::Machine& line, Time) {
  if (state_ == State::kConnecting) machine_ = line.id;
  return {};
}

HostEffects HostCore::on(const said::Found&, Time now) {
  if (state_ != State::kConnecting) return {};
  enter(State::kStarting, now + kStartWithin);
  return {effect::StartAgent{}};
}

HostEffects HostCore::on(const said::NotFound& line, Time now) {
  if (state_ != State::kConnecting) return {};
  const std::string theirs = line.other.empty() ? "no tandem" : line.other;
  if (!rules_.copies)
    return give_up("it has " + theirs + ", and this is " + rules_.build +
                   ": install this one there, or leave --no-copy out");
  if (copied_) return failed("it does not find the program that was copied", now);
  enter(State::kCopying, now + kCopyWithin);
  return {effect::Copy{}, effect::Say{"it has " + theirs + "; copying " + rules_.build}};
}

HostEffects HostCore::on(const said::Running& line, Time now) {
  if (state_ != State::kStarting) return {};
  state_ = State::kRunning;
  deadline_.reset();
  running_since_ = now;
  return {effect::Say{"its agent " + std::string(line.taken_over ? "still runs" : "runs") +
                      ", pid " + line.pid}};
}

HostEffects HostCore::on(const said::Ended& line, Time now) {
  if (state_ != State::kRunning && state_ != State::kEnding) return {};
  if (state_ == State::kEnding || line.code == 0) {
    state_ = State::kEnded;
    deadline_.reset();
    return {effect::Disconnect{}, effect::Say{"its agent has ended"}};
  }
  const std::string how =
      line.code ? "its agent ended with " + std::to_string(*line.code) : "its agent ended";
  return failed(line.why.empty() ? how : how + " (" + line.why + ")", now);
}

HostEffects HostCore::on(const said::Failed& line, Time now) {
  if (state_ != State::kStarting) return {};
  return failed(line.why, now);
}

HostEffects HostCore::disconnected(const std::string& why, Time now) {
  switch (state_) {
    case State::kConnecting:
    case State::kCopying:
    case State::kStarting:
      return failed(why, now);
    case State::kRunning:
      return failed("the connection is lost (" + why + ")", now);
    case State::kEnding:
      state_ = State::kEnded;
      deadline_.reset();
      return {effect::Say{"the connection is lost (" + why + ") before its agent has ended"}};
    case State::kIdle:
    case State::kWaiting:
    case State::kEnded:
    case State::kGivenUp:
      break;
  }
  return {};
}

HostEffects HostCore::copied(Time now) {
  if (state_ != State::kCopying) return {};
  enter(State::kConnecting, now + kConnectWithin);
  copied_ = true;
  return {effect::Send{"look"}};
}

HostEffects HostCore::not_copied(const std::string& why, Time now) {
  if (state_ != State::kCopying) return {};
  return failed("the copy failed: " + why, now);
}

HostEffects HostCore::joined() {
  if (!awaits_join()) return {};
  joined_ = has_joined_ = true;
  return {effect::Say{"its node is ready"}};
}

HostEffects HostCore::is_same_machine_as(const std::string& other) {
  if (state_ != State::kConnecting) return {};
  return give_up("it is the machine of " + other + ", which one agent offers whole");
}

HostEffects HostCore::told_to_end(bool at_once, Time now) {
  switch (state_) {
    case State::kRunning:
    case State::kEnding:
      enter(State::kEnding, now + (at_once ? kEndNowWithin : kEmptyWithin));
      return {effect::Send{at_once ? "now" : "end"}};
    case State::kIdle:
    case State::kConnecting:
    case State::kCopying:
    case State::kStarting:
    case State::kWaiting:
      state_ = State::kEnded;
      deadline_.reset();
      return {effect::Disconnect{}};
    case State::kEnded:
    case State::kGivenUp:
      break;
  }
  return {};
}

}  // namespace tandem::launch
