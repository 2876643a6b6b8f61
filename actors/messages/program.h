// The conversation of a controller and a user's program that holds one actor.
//
//   controller -> program   StartActor, Ask<AskJson>, DrainProgram   on port "rank"
//   program -> controller   RankReady, RankFailed (rank.h), as every rank sends them
//
// A program introduces itself by the Hello of its link, and the controller answers with StartActor.
// The program spawns the actor class that is registered for the role, and reports. It outlives a
// controller that dies, and the conversation begins anew with the next one. A JSON question
// is asked at most once and never repeated. A program that exits with 0 by itself has finished; any
// other end is a death, which the controller answers with another incarnation.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "runtime/actor/ref.h"
#include "runtime/base/ids.h"
#include "runtime/wire/fields.h"

namespace tandem::messages {

// Tells a program which actor it holds.
struct StartActor {
  std::string job;    // "counter-demo-1"
  std::string actor;  // "counter-demo-1/counter/0"
  // "counter": the key below `actors:` in the job file. The program picks the class that is
  // registered under this name.
  std::string role;
  Incarnation incarnation;
  std::int32_t replicas = 1;  // wanted at the start; `tandem scale` may have changed the number
  std::string args_json;      // the job's `args:` as the text of a JSON object
  std::string run_dir;
};
TANDEM_WIRE(StartActor, job, actor, role, incarnation, replicas, args_json, run_dir)

// A question to the actor as JSON text, such as {"add": 2}, and its answer.
struct AskedJson {
  std::string body;
};
TANDEM_WIRE(AskedJson, body)
struct AskJson {
  std::string body;
  using Reply = AskedJson;
};
TANDEM_WIRE(AskJson, body)

// The program takes no more messages, handles those that it has accepted, and exits with 0.
struct DrainProgram {
  std::int64_t deadline_ms = 0;  // from now; what is not handled by then is dropped
};
TANDEM_WIRE(DrainProgram, deadline_ms)

// Every message that a user's program can get from the controller.
using ProgramInbox = std::variant<StartActor, actor::Ask<AskJson>, DrainProgram>;

}  // namespace tandem::messages
