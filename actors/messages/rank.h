// The conversation of the controller and a rank process, before and after its role's own.
//
//   controller -> rank   StartRank
//   rank -> controller   RankListening (rank 0 of a gang), RankReady, RankFailed
//
// A rank says Hello by its link; the controller answers with StartRank; the role's conversation
// with the exchange begins after RankReady.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "actors/messages/roles.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/wire/fields.h"

namespace tandem::actors {

struct StartRank {
  std::string job;    // the id: "arithmetic-grpo-1"
  std::string actor;  // "arithmetic-grpo-1/rollout/0"
  Role role = Role::kRollout;
  Incarnation incarnation;
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  std::string run_dir;
  std::string job_yaml;  // the effective job file
  std::vector<std::string>
      bulk_endpoints;         // of the payload socket: Unix, then TCP where it is open
  std::string gang_endpoint;  // where rank 0 listens; empty for rank 0
  std::string gang_secret;    // random, of this incarnation; rank 0 made it
  std::int64_t pages = 0;     // that a rollout's cache was planned to have; 0: not planned
  bool resume = false;        // the learner loads the newest complete checkpoint, if there is one
};
TANDEM_WIRE(StartRank, job, actor, role, incarnation, rank, ranks, run_dir, job_yaml,
            bulk_endpoints, gang_endpoint, gang_secret, pages, resume)

using RankInbox = std::variant<StartRank>;

struct RankListening {
  std::string actor;
  Incarnation incarnation;
  std::string gang_endpoint;
  std::string gang_secret;
};
TANDEM_WIRE(RankListening, actor, incarnation, gang_endpoint, gang_secret)

struct RankReady {
  std::string actor;
  Incarnation incarnation;
  std::int32_t rank = 0;
};
TANDEM_WIRE(RankReady, actor, incarnation, rank)

// The rank cannot go on by itself: a damaged model file, too little memory. Whether it is worth
// another start is scheduler/fleet's to say, by `code`.
struct RankFailed {
  std::string actor;
  Incarnation incarnation;
  std::int32_t rank = 0;
  std::string message;
  ErrorCode code = ErrorCode::kFailed;
};
TANDEM_WIRE(RankFailed, actor, incarnation, rank, message, code)

using RankEvents = std::variant<RankListening, RankReady, RankFailed>;

}  // namespace tandem::actors
