// A row is one block that a rank allocates, or several of one kind. Where an object has a function
// that gives its bytes before it is made (Weights, KvCache, the decoders, trainer_memory), the row
// is the result of that function, so that the plan and the allocation cannot differ. The other rows
// are estimates with a measured factor (planned_model.h). Each role's rows are with its entry.
//
// Options are found by trying: each list of changes is applied to a copy of the job, the rules are
// asked, and the copy is planned anew. No formula says what a change saves.
#include "actors/main/memory_plan.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "actors/job/job_rules.h"
#include "actors/main/roles/registry.h"
#include "actors/main/roles/role_config.h"
#include "actors/model/parameters.h"

namespace tandem::app {

using messages::Role;
using scheduler::MemoryDemand;
using scheduler::MemoryOption;

namespace {

// One setting as a user would give it with --set, and its effect on a job.
struct Change {
  std::string setting;
  std::function<void(job::JobSpec&)> apply;
};
using Changes = std::vector<Change>;

Change integer_change(std::string key, std::int64_t value,
                      std::function<void(job::JobSpec&, std::int64_t)> apply) {
  return {std::move(key) + "=" + std::to_string(value),
          [value, apply = std::move(apply)](job::JobSpec& job) { apply(job, value); }};
}

// Changes of a key: its halves in descending order, as long as they stay above `least`, then
// `least` itself.
Changes halvings(const char* key, std::int64_t value, std::int64_t least,
                 const std::function<void(job::JobSpec&, std::int64_t)>& apply) {
  Changes changes;
  for (std::int64_t half = value / 2; half > least; half /= 2)
    changes.push_back(integer_change(key, half, apply));
  if (least < value) changes.push_back(integer_change(key, least, apply));
  return changes;
}

// One sequence must fit into a forward pass (job_rules.cc).
Changes token_changes(const job::JobSpec& job) {
  return halvings("learner.max_token_len", job.learner.max_token_len,
                  job.data.max_prompt_length + job.data.max_response_length,
                  [](job::JobSpec& j, std::int64_t n) { j.learner.max_token_len = n; });
}

// One group must fit into the engine.
Changes sequence_changes(const job::JobSpec& job) {
  return halvings("rollout.max_num_seqs", job.rollout.args.max_num_seqs, job.rollout.n,
                  [](job::JobSpec& j, std::int64_t n) { j.rollout.args.max_num_seqs = n; });
}

// Tokens that an engine computes in a step, but no fewer than one for each sequence.
Changes batched_changes(const job::JobSpec& job) {
  return halvings("rollout.max_num_batched_tokens", job.rollout.args.max_num_batched_tokens,
                  job.rollout.args.max_num_seqs, [](job::JobSpec& j, std::int64_t n) {
                    j.rollout.args.max_num_batched_tokens = n;
                  });
}

Change checkpointing() {
  return {"learner.enable_gradient_checkpointing=true",
          [](job::JobSpec& job) { job.learner.enable_gradient_checkpointing = true; }};
}

Change by_files() {
  return {"weight_broadcast.type=disk",
          [](job::JobSpec& job) { job.weight_broadcast.type = job::BroadcastType::kDisk; }};
}

Change half_precision() {
  return {"model.dtype=bfloat16",
          [](job::JobSpec& job) { job.model.dtype = job::ModelDtype::kBfloat16; }};
}

// The strongest change of each kind, together. Each list ends with its strongest.
Changes strongest(const job::JobSpec& job) {
  Changes all{checkpointing()};
  for (Changes changes : {token_changes(job), batched_changes(job), sequence_changes(job)})
    if (!changes.empty()) all.push_back(std::move(changes.back()));
  all.push_back(by_files());
  return all;
}

// The order is: changes without an effect on the results, then those that cost speed, then another
// dtype, which changes the numbers of the training.
std::vector<Changes> changes_to_try(const job::JobSpec& job) {
  std::vector<Changes> tries{{checkpointing()}};
  for (const Change& change : token_changes(job)) tries.push_back({change});
  for (const Change& change : token_changes(job)) tries.push_back({checkpointing(), change});
  for (const Change& change : batched_changes(job)) tries.push_back({change});
  for (const Change& change : sequence_changes(job)) tries.push_back({change});
  tries.push_back({by_files()});
  tries.push_back({by_files(), checkpointing()});
  tries.push_back(strongest(job));
  tries.push_back({half_precision()});
  tries.push_back(strongest(job));
  tries.back().insert(tries.back().begin(), half_precision());
  return tries;
}

// nullopt where the changed job breaks a rule, or the model's sizes do not allow the dtype.
std::optional<MemoryOption> option_of(const job::JobSpec& job, const PlannedModel& model,
                                      Hosts hosts, const Changes& changes) {
  job::JobSpec changed = job;
  MemoryOption option{.changes = static_cast<int>(changes.size())};
  for (const Change& change : changes) {
    change.apply(changed);
    option.setting += (option.setting.empty() ? "" : " and ") + change.setting;
  }
  PlannedModel computed = model;
  if (!broken_rules(changed).empty() ||
      !model::compute_in(dtype_of(changed.model), computed.config))
    return std::nullopt;
  for (auto& [role, demand] : plan_memory(changed, computed, hosts))
    option.demand.emplace(name(role), std::move(demand));
  return option;
}

}  // namespace

std::map<Role, MemoryDemand> plan_memory(const job::JobSpec& job, const PlannedModel& model,
                                         Hosts hosts) {
  std::map<Role, MemoryDemand> plan;
  for (const RoleEntry& entry : role_entries())
    plan.emplace(entry.role, entry.memory(job, model, hosts));
  return plan;
}

std::vector<MemoryOption> memory_options(const job::JobSpec& job, const PlannedModel& model,
                                         Hosts hosts) {
  std::map<std::string, MemoryDemand> asked;
  for (auto& [role, demand] : plan_memory(job, model, hosts)) asked.emplace(name(role), demand);
  std::vector<MemoryOption> options;
  for (const Changes& changes : changes_to_try(job))
    // An option that changes no demand, such as a setting that the job has already, is left out.
    if (auto option = option_of(job, model, hosts, changes); option && option->demand != asked)
      options.push_back(*std::move(option));
  return options;
}

void add_memory_plan(const job::JobSpec& job, const PlannedModel& model, Hosts hosts,
                     controller::JobShape& shape) {
  shape.memory = plan_memory(job, model, hosts);
  shape.memory_options = memory_options(job, model, hosts);
}

}  // namespace tandem::app
