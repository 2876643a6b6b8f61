// One host of `tandem up --hosts`, from its first connection to its end: what happens next. Pure:
// whoever runs it (actors/main/host_keeper.h) carries the effects out and tells what came of them.
//
//   connecting -> [copying] -> starting -> running -> ended, or given up
//                       \________________________|
//                             waiting  (a fault, and there will be another attempt)
//
//   HO-4  Each state but running has a deadline, after which the attempt has failed.
//   HO-5  A host whose node has never joined is given up after kFirstAttempts; one whose node has
//         is tried again until `up` ends. The pause doubles from kPauseFirst to kPauseMax.
//   HO-6  After told_to_end() nothing is started any more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/launch/host_script.h"
#include "runtime/base/clock.h"

namespace tandem::launch {

inline constexpr int kFirstAttempts = 5;
inline constexpr Duration kPauseFirst = std::chrono::seconds(1);
inline constexpr Duration kPauseMax = std::chrono::seconds(60);
inline constexpr Duration kConnectWithin = std::chrono::seconds(60);
inline constexpr Duration kCopyWithin = std::chrono::minutes(30);
inline constexpr Duration kStartWithin = std::chrono::seconds(30);
// A learner has ten minutes to save before its node is empty.
inline constexpr Duration kEmptyWithin = std::chrono::minutes(11);
inline constexpr Duration kEndNowWithin = std::chrono::seconds(10);
// When a node is still not among the controller's, that is said once.
inline constexpr Duration kJoinsWithin = std::chrono::seconds(30);
// An agent that has run for so long was well: the next fault is a first one.
inline constexpr Duration kWellAfter = std::chrono::seconds(60);

namespace effect {
struct Connect {};     // closes what is left of an earlier connection
struct Copy {};        // our files to the host
struct StartAgent {};  // start_lines()
struct Send {
  std::string line;
};
struct Disconnect {};
struct Say {  // to people, as "host gpu-1: TEXT"
  std::string text;
};
}  // namespace effect
using HostEffect = std::variant<effect::Connect, effect::Copy, effect::StartAgent, effect::Send,
                                effect::Disconnect, effect::Say>;
using HostEffects = std::vector<HostEffect>;

struct HostRules {
  std::string build;       // "tandem 1.0.0, sha256 0123456789ab": this one, for messages
  std::string controller;  // where agents dial, likewise
  bool copies = true;      // where the host has not this build
};

class HostCore {
 public:
  explicit HostCore(HostRules rules) : rules_(std::move(rules)) {}

  // At the beginning, and several times a second.
  HostEffects look(Time now);
  HostEffects heard(const HostLine& line, Time now);
  // The connection has ended, or could not be started; `why` is ssh's last line, or a reason.
  HostEffects disconnected(const std::string& why, Time now);
  HostEffects copied(Time now);
  HostEffects not_copied(const std::string& why, Time now);
  // Its node is among the controller's, and Ready.
  HostEffects joined();
  // It is another name of a machine that has an agent already.
  HostEffects is_same_machine_as(const std::string& other);
  // At once, or once its actors have moved.
  HostEffects told_to_end(bool at_once, Time now);

  bool is_over() const { return state_ == State::kEnded || state_ == State::kGivenUp; }
  bool was_given_up() const { return state_ == State::kGivenUp; }
  bool awaits_join() const { return state_ == State::kRunning && !joined_; }
  // Of the machine that answered; empty before.
  const std::string& machine() const { return machine_; }

 private:
  enum class State {
    kIdle,        // before the first look
    kConnecting,  // until the host says whether it has the program
    kCopying,
    kStarting,
    kRunning,
    kEnding,   // told to end
    kWaiting,  // for the next attempt
    kEnded,
    kGivenUp,
  };
  void enter(State state, Time deadline);
  HostEffects connect(Time now);
  HostEffects failed(const std::string& why, Time now);
  HostEffects give_up(const std::string& why);
  HostEffects on(const said::Machine& line, Time now);
  HostEffects on(const said::Found& line, Time now);
  HostEffects on(const said::NotFound& line, Time now);
  HostEffects on(const said::Running& line, Time now);
  HostEffects on(const said::Ended& line, Time now);
  HostEffects on(const said::Failed& line, Time now);

  const HostRules rules_;
  State state_ = State::kIdle;
  std::optional<Time> deadline_;  // of the state
  std::string machine_;
  int faults_ = 0;           // in a row
  bool has_joined_ = false;  // its node, ever
  bool copied_ = false;      // over this connection
  bool joined_ = false;      // since the agent runs, as the next two
  bool hinted_ = false;
  Time running_since_{};
};

}  // namespace tandem::launch
