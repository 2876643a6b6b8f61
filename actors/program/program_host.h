// The actor behind port "rank" of a user's program: spawns the class that is registered for the
// role when StartActor arrives, reports RankReady once its object has been made, passes JSON
// questions to it, and drains it. A later controller sends StartActor again, and hears RankReady
// again.
//
//   PG-1  The process ends with 0 when the actor stops by itself or has been drained, and with 1
//         when it fails for good or is not drained within the deadline.
//   PG-2  An actor that is being drained takes no further message from peers or as JSON, and
//         handles every message that it has accepted before.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "actors/messages/program.h"
#include "actors/messages/rank.h"
#include "actors/program/hosted_actor.h"
#include "runtime/actor/context.h"

namespace tandem::program {

class ProgramHost {
 public:
  using Inbox = messages::ProgramInbox;

  // The parts of the process that the host uses.
  struct Process {
    actor::System& system;
    link::Directory& directory;
    link::ParcelSender out;                             // to the controller
    const std::map<std::string, SpawnHosted>& classes;  // by role
    actor::Ref<messages::RankEvents> controller;
    std::function<void(int exit_status)>
        end;                   // ends the process; after several calls the greatest status counts
    std::string sandbox = {};  // RankReady::sandbox
    EnterPhase enter = {};     // of the user's actor
  };
  explicit ProgramHost(Process process) : process_(std::move(process)) {}

  void handle(actor::Context& cx, messages::StartActor start);
  void handle(actor::Context& cx, actor::Ask<messages::AskJson> ask);
  void handle(actor::Context& cx, messages::DrainProgram drain);

 private:
  Result<void> spawn(actor::Context& cx, const messages::StartActor& start);
  void report(messages::RankEvents event);
  void post_mark(actor::Context& cx);

  const Process process_;
  std::string name_ = "the actor";
  std::optional<HostedActor> actor_;
  bool ready_ = false;  // RankReady has been reported
  bool draining_ = false;
};

}  // namespace tandem::program
