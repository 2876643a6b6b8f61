// The role of a rank process, built: the actor of the role with everything that it works with
// (model, engine or trainer, weights, payload socket). Its conversation with the exchange begins
// with begin(). A rank that broadcasts weights has a second actor for that.
//
//   role      rank  actor            it works with
//   rollout   0     RolloutActor     NativeEngine, a subscriber of weights
//   learner   0     LearnerActor     NativeTrainer, the publisher; commands the other ranks
//   learner   1..   Follower         NativeTrainer, which follows rank 0 and has no port
//   reward    0     RewardActor      a verifier, and children of the user's program
#pragma once

#include <memory>

#include "actors/job/job_spec.h"
#include "actors/main/roles/role_entry.h"
#include "actors/messages/rank.h"

namespace tandem::app {

class RoleInstance {
 public:
  // Everything that is passed outlives this object. `bulk_io` also outlives the system, whose
  // actors close the pipes of their children on it. `device` also outlives the directory: an engine
  // whose actor was made and never ran is destroyed with the directory, and an engine waits for its
  // device when it is destroyed. Payloads take the same kind of socket as the controller; a gang
  // meets by TCP where other hosts may come.
  RoleInstance(actor::System& system, link::Directory& directory, link::IoThread& bulk_io,
               RankNetwork network, EngineDevice& device, link::ParcelSender to_controller,
               link::Progress& progress);

  // Called once, on the thread of the rank's actor; may take as long as loading the model does.
  // Rank 0 of a gang tells `controller` where it listens, and waits for the other ranks. Errors:
  // input that is wrong (kInvalid, kNotFound), a GPU or memory that is missing, ranks that do not
  // come in time.
  Result<void> build(const messages::StartRank& start, const job::JobSpec& job,
                     const actor::Ref<messages::RankEvents>& controller);
  void begin();       // the actor starts work; after build() and RankReady
  bool meet_again();  // BuiltRole's; after begin()
  const std::string& sandbox() const { return built_.sandbox; }

  // Ends the process, with `exit_status`, if this rank waits within a handler for another rank
  // (BuiltRole::waits): the handler would not come back for the executor's end. Does nothing for
  // other ranks. Must be called before the executor stops.
  void close(int exit_status);
  void destroy();  // ends the payload socket, after the executor has stopped

 private:
  RankResources resources_;
  BuiltRole built_;
  bool broadcasts_have_met_ = false;  // and the role has not: meet_again() is called again
};

}  // namespace tandem::app
