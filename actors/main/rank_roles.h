// What a rank process becomes: builds the actor of its role with everything that it works with
// (model, engine or trainer, weights, payload socket), exposes it at kRolePort, and begins its
// conversation with the exchange. A rank that broadcasts weights has an actor for that beside it,
// at kBroadcastPort.
#pragma once

#include <memory>

#include "actors/main/job/job_spec.h"
#include "actors/main/rank_nccl.h"
#include "actors/messages/rank.h"
#include "runtime/actor/system.h"
#include "runtime/device/parallel.h"
#include "runtime/device/queue.h"
#include "runtime/net/progress.h"
#include "runtime/net/remote.h"

namespace tandem::cli {

// What an engine computes on, and what ranks exchange bytes by. Made by build().
struct EngineDevice {
  std::unique_ptr<RankNccl> nccl;  // where the rank takes part in anything of NCCL
  std::unique_ptr<runtime::ThreadPool> threads;
  std::unique_ptr<runtime::Queue> queue;
};

// How this rank reaches its controller, and where other hosts may reach this rank.
struct RankNetwork {
  runtime::Dial controller;
  std::string bind;       // an address of this host; empty: no other host's processes come
  std::string advertise;  // how those reach `bind`; empty: as it says
};

class RoleHome {
 public:
  // Everything passed outlives the home. `bulk_io` also outlives the system, whose actors end their
  // children's pipes on it, and `device` the directory too: with it goes an engine whose actor was
  // made and never ran, and an engine waits for its device at its end. Payloads take
  // the same kind of socket as the controller; a gang meets by TCP where other hosts may come.
  RoleHome(runtime::System& system, runtime::Directory& directory, runtime::IoThread& bulk_io,
           RankNetwork network, EngineDevice& device, runtime::ParcelSender to_controller,
           runtime::Progress& progress);
  ~RoleHome();

  // In the rank's actor thread; may take as long as loading the model does. A gang's rank 0 tells
  // `controller` where it listens, and waits for the others.
  Result<void> build(const actors::StartRank& start, const JobSpec& job,
                     const runtime::Ref<actors::RankEvents>& controller);
  void begin();  // after build() and RankReady

  // No more payload traffic. A follower that still waits for rank 0 would not come back for the
  // executor's end: its process ends here, with this status.
  void close(int exit_status);
  void destroy();  // after the executor has stopped

 private:
  struct Parts;
  Result<void> build_rollout(const actors::StartRank& start, const JobSpec& job);
  Result<void> build_learner(const actors::StartRank& start, const JobSpec& job,
                             const runtime::Ref<actors::RankEvents>& controller);
  Result<void> build_reward(const actors::StartRank& start, const JobSpec& job);

  std::unique_ptr<Parts> parts_;
};

}  // namespace tandem::cli
