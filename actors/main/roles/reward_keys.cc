// The rows of the job table for the sections `reward` and `pools.reward`, and the rules over
// several of these keys; job_keys.cc explains how rows work.
#include <array>

#include "actors/job/key_fields.h"
#include "actors/reward/make_verifier.h"

namespace tandem::job {
namespace {

constexpr std::array<std::string_view, 1> kLaterRewards{"code"};

using J = JobSpec;

const Key kRewardKeys[] = {
    {.path = "reward.replicas",
     .field = [](J& j) { return slot(j.reward.replicas); },
     .description = "Reward actors at the start.",
     .range = between(1, kActorsMax),
     .unit = "actors"},
    {.path = "reward.type",
     .field = [](J& j) { return slot(j.reward.type); },
     .description =
         "`exact`: the completion, stripped, equals the answer. `math`: its final answer has the "
         "same exact value. `regex`: `pattern` matches. `command`: a program of yours "
         "decides.",
     .later_values = kLaterRewards},
    {.path = "reward.pattern",
     .field = [](J& j) { return slot(j.reward.pattern); },
     .description = "The expression of type `regex`; its first group, where it has one, must equal "
                    "the answer."},
    {.path = "reward.command",
     .field = [](J& j) { return slot(j.reward.command); },
     .description = "The argv of type `command`, which reads and writes one JSON object per line. "
                    "A program with a `/`, and an argument that names a file, are relative paths."},
    {.path = "reward.timeout_s",
     .field = [](J& j) { return slot(j.reward.timeout_s); },
     .description = "A completion not scored by then is a failed attempt.",
     .range = above_to(0, kDayInSeconds),
     .unit = "seconds"},
    {.path = "reward.retries",
     .field = [](J& j) { return slot(j.reward.retries); },
     .description =
         "Attempts after a failed one; then `on_failure` says what becomes of the group.",
     .range = between(0, 100)},
    {.path = "reward.on_failure",
     .field =
         [](J& j) {
           return FieldRef(WordOrNumber{"discard", &j.reward.on_failure});
         },
     .description =
         "`discard`: a group of which a completion could not be scored is discarded with "
         "the reason `reward_failed`, never scored 0. A number: the reward of such a "
         "completion, which is trained, counted (`tandem/rewards_failed`) and kept in "
         "samples.jsonl with its error.",
     .range = between(-1e6, 1e6)},
    {.path = "reward.env",
     .field = [](J& j) { return slot(j.reward.env); },
     .description = "Variables of the program's environment, as in `{ OMP_NUM_THREADS: \"1\" }`. "
                    "Beside them it sees PATH, HOME, LANG, LC_*, TZ and TMPDIR alone."},
    {.path = "reward.limits.open_files",
     .field = [](J& j) { return slot(j.reward.limits.open_files); },
     .description = "Files that the program may have open (RLIMIT_NOFILE).",
     .range = between(16, 1 << 20),
     .unit = "files"},
    {.path = "reward.limits.file_size_megabytes",
     .field = [](J& j) { return slot(j.reward.limits.file_size_megabytes); },
     .description = "The size of each file that it writes (RLIMIT_FSIZE).",
     .range = between(0, kMegabytesMax),
     .unit = "MiB"},
    {.path = "reward.limits.cpu_seconds_per_line",
     .field = [](J& j) { return slot(j.reward.limits.cpu_seconds_per_line); },
     .description = "CPU time of all its threads without a line in or out; past it the program is "
                    "ended and started again, a failed attempt.",
     .range = above_to(0, 1e9),
     .unit = "seconds"},
    {.path = "reward.limits.memory_megabytes",
     .field = [](J& j) { return slot(j.reward.limits.memory_megabytes); },
     .description = "Resident memory of the program, without processes that it starts; looked at "
                    "four times a second. Past it the program is ended and started again.",
     .range = between(1, kMegabytesMax),
     .unit = "MiB"},
};

const Key kRewardPoolKeys[] = {
    {.path = "pools.reward.cpus_per_actor",
     .field = [](J& j) { return slot(j.pools.reward.cpus_per_actor); },
     .description = "CPUs reserved for a reward actor.",
     .range = between(0, kThreadsMax),
     .unit = "CPUs"},
};

// A key of another reward type is an error, not ignored: the user meant a type that was not set.
void reward_rules(const JobSpec& job, std::vector<Violation>& broken) {
  const RewardSpec& r = job.reward;
  const bool regex = r.type == RewardType::kRegex, command = r.type == RewardType::kCommand;
  const std::string type = "`reward.type: " + std::string(spelling(r.type)) + "`";
  if (regex && !r.pattern)
    broken.push_back({"reward.type", type + " needs `reward.pattern`", "add the expression"});
  else if (regex)
    if (const auto compiled = reward::check_pattern(*r.pattern); !compiled)
      broken.push_back({"reward.pattern", compiled.error().message,
                        "write it as a Perl-compatible regular expression (PCRE2)"});
  if (!regex && r.pattern)
    broken.push_back({"reward.pattern", type + " does not use `reward.pattern`",
                      "set `reward.type: regex`, or leave the pattern out"});
  if (command && (!r.command || r.command->empty() || r.command->front().empty()))
    broken.push_back({"reward.type", type + " needs `reward.command`",
                      "add the argv, as in [python3, rewards/example.py]"});
  if (!command && r.command)
    broken.push_back({"reward.command", type + " does not use `reward.command`",
                      "set `reward.type: command`, or leave the command out"});
  else if (!command && !r.env.empty())
    broken.push_back({"reward.env", type + " starts no program that would see `reward.env`",
                      "set `reward.type: command`, or leave it out"});
  if (command) check_variables(r.env, "reward.env", broken);
}

}  // namespace

RoleKeys reward_keys() {
  return {.own = kRewardKeys, .pool = kRewardPoolKeys, .rules = reward_rules};
}

}  // namespace tandem::job
