#include "actors/controller/spawn.h"

#include <algorithm>
#include <string>

#include "actors/controller/programs.h"

namespace tandem::controller {

SpawnRankOn spawn_of(const JobRecord& job, const ActorRecord& actor, std::int32_t rank) {
  const RankRecord& record = actor.ranks[static_cast<std::size_t>(rank)];
  std::string file = messages::rank_name(actor.name.substr(job.id.size() + 1), rank);
  // One log per incarnation of a rank: "rollout.0.3.log".
  std::replace(file.begin(), file.end(), '/', '.');
  SpawnRankOn spawn{
      record.node,
      {actor.name, actor.incarnation, rank},
      job.run_dir + "/logs/" + file + "." + std::to_string(actor.incarnation.value) + ".log",
      {}};
  if (const RoleProgram* program = program_of(job.shape, actor.role)) {
    spawn.program = *program;
    spawn.working_directory = job.run_dir;
  }
  spawn.gpus = record.gpu_uuids;
  return spawn;
}

}  // namespace tandem::controller
