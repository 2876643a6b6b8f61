// The rows of the job table for the section `actors`, whose subsections have names of the user's:
// kAnyActor stands for the name, and the field of a row is that of the entry with this name.
// job_keys.cc explains how rows work and where these stand among the others (JT-1).
#include "actors/job/key_fields.h"
#include "scheduler/fleet/placement.h"

namespace tandem::job {
namespace {

using J = JobSpec;

ActorSpec& any(J& job) { return job.actors[kAnyActor]; }

const Key kActorKeys[] = {
    {.path = "actors.NAME.command",
     .field = [](J& j) { return slot(any(j).command); },
     .description = "The argv of the program, which holds one actor. A program with a `/`, and an "
                    "argument that names a file, are relative paths; a bare word is looked up in "
                    "PATH. It runs in the run directory.",
     .presence = Presence::kRequired,
     .argv = true},
    {.path = "actors.NAME.replicas",
     .field = [](J& j) { return slot(any(j).replicas); },
     .description = "Actors at the start; `tandem scale` changes it while the job runs.",
     .range = between(scheduler::kProgramReplicas.least, scheduler::kProgramReplicas.most),
     .unit = "actors"},
    {.path = "actors.NAME.cpus_per_actor",
     .field = [](J& j) { return slot(any(j).cpus_per_actor); },
     .description = "CPUs reserved for an actor; fractions are fine.",
     .range = between(0, kThreadsMax),
     .unit = "CPUs"},
    {.path = "actors.NAME.gpus_per_actor",
     .field = [](J& j) { return slot(any(j).gpus_per_actor); },
     .description = "GPUs reserved for an actor: a share of one (0.5), or 1; it sees no other.",
     .range = between(0, kGpusMax),
     .unit = "GPUs",
     .later_above = 1},
    {.path = "actors.NAME.memory_megabytes",
     .field = [](J& j) { return slot(any(j).memory_megabytes); },
     .description =
         "Memory reserved for an actor; null: none. It limits a sandboxed program alone.",
     .range = between(1, kMegabytesMax),
     .unit = "MiB"},
    {.path = "actors.NAME.args",
     .field = [](J& j) { return slot(any(j).args); },
     .description = "Any map, as in `{ start: 3, peers: [a, b] }`; the program gets it as JSON, of "
                    "at most 64 KiB."},
    {.path = "actors.NAME.env",
     .field = [](J& j) { return slot(any(j).env); },
     .description = "Variables of the program's environment, beside those of its node, as in "
                    "`{ OMP_NUM_THREADS: \"1\" }`."},
    {.path = "actors.NAME.sandbox",
     .field = [](J& j) { return slot(any(j).sandbox); },
     .description = "Whether the program runs in a sandbox: it reaches the controller and, through "
                    "it, the job's other actors, and no other network; writes to a scratch folder "
                    "alone; and reads the system's programs, its own folder and `readable`. `auto` "
                    "takes what the node allows, and needs namespaces; `strict` refuses to start "
                    "with less than all; `off`: it has your rights."},
    {.path = "actors.NAME.readable",
     .field = [](J& j) { return slot(any(j).readable); },
     .description = "Files and folders that a sandboxed program may read, beside its own folder "
                    "and those of the files that its command line names."},
};

}  // namespace

std::span<const Key> actor_keys() { return kActorKeys; }

}  // namespace tandem::job
