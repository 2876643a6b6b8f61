// The facts that an actor of a user's program is told when it starts: its name, its arguments, its
// peers.
#pragma once

#include <cstdint>
#include <string>

#include "actors/messages/program.h"
#include "actors/program/json_value.h"
#include "actors/program/peers.h"
#include "runtime/base/ids.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem {

struct ActorStart {
  std::string job;            // "counter-demo-1"
  std::string name;           // "counter-demo-1/counter/0"
  std::string role;           // "counter"
  int index = 0;              // 0 of "counter/0"
  int replicas = 1;           // the role's replicas, as wanted when this incarnation started
  Incarnation incarnation;    // grows with every start of this actor
  nlohmann::json args;        // the job's `args:`, an object
  std::string run_directory;  // files written there stay with the run
  Peers peers;

  // `args` as a struct with TANDEM_WIRE. Errors: kInvalid, with the key that is unknown, missing or
  // of another kind.
  template <class T>
  Result<T> read_args() const {
    T value{};
    if (auto read = program::json_detail::read(args, value, "args"); !read) return read.error();
    return value;
  }
};

// Errors: kInvalid, if the arguments are no JSON object.
Result<ActorStart> actor_start(const messages::StartActor& start, Peers peers);

}  // namespace tandem
