// The messages between the controller and a rank process, before and after the conversation of the
// process's role.
//
//   controller -> rank   StartRank
//   rank -> controller   RankListening (rank 0 of a gang), RankReady, RankFailed,
//                        RankPreempted
//
// A rank introduces itself by the Hello of its link, and the controller answers with StartRank.
// Once the rank has loaded everything, it sends RankReady and begins to talk with the exchange.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "actors/messages/roles.h"
#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/wire/fields.h"

namespace tandem::messages {

// Tells a rank process which rank it is and with which job file it works.
struct StartRank {
  std::string job;    // the id: "arithmetic-grpo-1"
  std::string actor;  // "arithmetic-grpo-1/rollout/0"
  Role role;
  Incarnation incarnation;
  std::int32_t rank = 0;   // the receiver's place in its gang, from 0
  std::int32_t ranks = 1;  // ranks in the gang
  std::string run_dir;
  // The effective job file: every key with its value, so that all ranks read the same settings.
  std::string job_yaml;
  // Endpoints of the payload socket: the Unix endpoint, then the TCP endpoint where one is open.
  std::vector<std::string> bulk_endpoints;
  std::string gang_endpoint;  // where rank 0 listens; empty for rank 0
  std::string gang_secret;    // made by rank 0 at random for this incarnation; empty for rank 0
  std::int64_t pages = 0;     // pages that the memory plan gives a rollout's cache; 0: no plan
  bool resume = false;        // the learner loads the newest complete checkpoint, if there is one
  bool gang_plain = false;    // ranks of a gang may talk unencrypted over the network between hosts
};
TANDEM_WIRE(StartRank, job, actor, role, incarnation, rank, ranks, run_dir, job_yaml,
            bulk_endpoints, gang_endpoint, gang_secret, pages, resume, gang_plain)

// Every message that a rank can get from the controller before its role begins.
using RankInbox = std::variant<StartRank>;

// Rank 0 of a gang listens for the other ranks. The controller starts those with this endpoint and
// secret, without which a peer is not let into the gang. Told to each controller that the rank
// meets, also once the gang has met.
struct RankListening {
  std::string actor;
  Incarnation incarnation;
  std::string gang_endpoint;
  std::string gang_secret;
};
TANDEM_WIRE(RankListening, actor, incarnation, gang_endpoint, gang_secret)

// The rank has loaded what its role needs and can work.
struct RankReady {
  std::string actor;
  Incarnation incarnation;
  std::int32_t rank = 0;
  // The sandbox of its programs, for people: "auto: namespaces, Landlock 7, …"; empty: none.
  std::string sandbox = {};
};
TANDEM_WIRE(RankReady, actor, incarnation, rank, sandbox)
inline constexpr std::size_t kSandboxTextMax = 512;  // bytes of RankReady::sandbox

// The rank cannot go on, for example because of a damaged model file or too little memory. `code`
// tells scheduler/fleet/restart_budget.h whether another start can help.
struct RankFailed {
  std::string actor;
  Incarnation incarnation;
  std::int32_t rank = 0;
  std::string message;
  ErrorCode code = ErrorCode::kFailed;
  bool disk = false;  // it could not start, since it lacks_disk() (runtime/base/file.h)
};
TANDEM_WIRE(RankFailed, actor, incarnation, rank, message, code, disk)

// The rank of an actor that may be preempted was told to end from outside. It works on for at most
// kPreemptionGrace, so that the controller can drain it.
struct RankPreempted {
  std::string actor;
  Incarnation incarnation;
  std::int32_t rank = 0;
};
TANDEM_WIRE(RankPreempted, actor, incarnation, rank)
// Machines that are taken back give half a minute, as Kubernetes does.
inline constexpr Duration kPreemptionGrace = std::chrono::seconds(25);

// Every message that the controller can get from a rank.
using RankEvents = std::variant<RankListening, RankReady, RankFailed, RankPreempted>;

}  // namespace tandem::messages
