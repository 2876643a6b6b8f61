#include "actors/program/actor_start.h"

#include <charconv>
#include <utility>

namespace tandem {

Result<ActorStart> actor_start(const messages::StartActor& start, Peers peers) {
  ActorStart read{.job = start.job,
                  .name = start.actor,
                  .role = start.role,
                  .index = 0,
                  .replicas = start.replicas,
                  .incarnation = start.incarnation,
                  .args = parse_json(start.args_json.empty() ? "{}" : start.args_json),
                  .run_directory = start.run_dir,
                  .peers = std::move(peers)};
  if (!read.args.is_object())
    return Error{ErrorCode::kInvalid, "the arguments of " + start.actor + " are no JSON object"};
  const std::string number = start.actor.substr(start.actor.rfind('/') + 1);
  std::from_chars(number.data(), number.data() + number.size(), read.index);
  return read;
}

}  // namespace tandem
