// One function for each kind of object, with a row for each field. The names of states come from
// the code that prints them, so that a new one is in its schema as well.
#include "actors/api/schemas.h"

#include <string>
#include <vector>

#include "actors/api/alert_rules.h"
#include "actors/api/schema.h"
#include "actors/messages/event_level.h"
#include "runtime/http/http.h"
#include "scheduler/fleet/ledger.h"
#include "scheduler/fleet/lifecycle.h"

namespace tandem::api {
namespace {

using schema::any;
using schema::boolean;
using schema::integer;
using schema::list_of;
using schema::map_of;
using schema::nullable;
using schema::number;
using schema::object;
using schema::open_object;
using schema::ref;
using schema::Schema;
using schema::text;
using enum schema::Presence;

constexpr const char* kUnixMs = "Milliseconds since 1970.";
constexpr const char* kWhy = "Who waits for what, the most telling entry first.";
constexpr const char* kEndedBy = "Of a wait without a deadline: who ends it.";
constexpr const char* kTroubles = "Troubles of reward programs, with the end of their stderr.";

// The names of the first `count` values of an enum.
template <class Enum>
std::vector<std::string> names_of(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.emplace_back(name(static_cast<Enum>(i)));
  return names;
}

Schema error_fields(bool first) {
  std::vector<schema::Field> fields{
      {"message", text(), "What was attempted, and why it failed."},
      {"help", text(), "How to mend it; may be empty."},
      {"where", text(), "The place, such as a line of the job file.", kSometimes}};
  if (!first) return object(fields);
  std::vector<std::string> codes;
  for (const ErrorCode code : http::kErrorCodes) codes.emplace_back(name(code));
  fields.push_back({"code", schema::one_of(codes), "docs/reasons.md explains each."});
  fields.push_back({"errors", list_of(error_fields(false)),
                    "The further faults where there are several, at most 19.", kSometimes});
  fields.push_back({"errors_left_out", integer(), "How many more there are.", kSometimes});
  return object(fields);
}

Schema status_schema() {
  return object({{"version", text()},
                 {"epoch", integer(), "How often a controller has started in this TANDEM_HOME."},
                 {"pid", integer()},
                 {"home", text(), "TANDEM_HOME."},
                 {"http", text(), "HOST:PORT of this API."},
                 {"started", integer(), kUnixMs},
                 {"runs", integer(), "How many there are below TANDEM_HOME/runs."},
                 {"nodes", object({{"ready", integer()}, {"lost", integer()}})},
                 {"jobs", map_of(integer()), "How many jobs are in each state."},
                 {"alerts", list_of(ref("Alert")), "Those that fire at present."}});
}

Schema alert_schema() {
  return object({{"name", text(), "docs/guides/alerts.md explains each."},
                 {"severity", schema::one_of(names_of<AlertSeverity>(2))},
                 {"job", nullable(text()), "Null: it is about the cluster."},
                 {"actor", nullable(text())},
                 {"message", text()},
                 {"advice", text(), "What to do."},
                 {"value", number(), "Of the figure that the alert watches."},
                 {"since_s", number(), "For so long it has fired."}});
}

Schema wait_schema() {
  return object({{"who", text()},
                 {"waits_for", text()},
                 {"since_s", number()},
                 {"deadline_s", nullable(number()), "Of a wait for work: when its actor is hung."},
                 {"ended_by", nullable(text()), kEndedBy},
                 {"detail", text()}});
}

Schema trouble_schema() {
  return object({{"who", text()},
                 {"what", text()},
                 {"attempt", integer()},
                 {"attempts", integer()},
                 {"stderr", list_of(text()), "The last lines, oldest first."},
                 {"log", text()},
                 {"count", integer()},
                 {"since_s", number()}});
}

Schema staleness_schema() {
  return object({{"bound", integer()}, {"max", integer()}, {"mean", number()}});
}

Schema fleet_rates_schema() {
  const Schema rollout = object({{"actor", text()},
                                 {"tokens_per_s", number(), "While its engine was at work."},
                                 {"busy_fraction", number()},
                                 {"install_fraction", number(), "Decoding paused for installs."},
                                 {"sequences", number(), "Decoded at once, on average."}});
  const Schema spread =
      object({{"rollouts", integer()}, {"mean", number()}, {"min", number()}, {"max", number()}});
  return object({{"steps", integer(), "Steps of the window."},
                 {"seconds", number(), "The length of the window."},
                 {"rollouts", list_of(rollout),
                  "Those that are up and have generated in it. Not in lists of jobs.", kSometimes},
                 {"rollout_tokens_per_s", nullable(spread), "Of these rollouts."},
                 {"step_seconds", number(), "Of the learner, without its waits for samples."},
                 {"step_tokens", number()},
                 {"completions_per_step", number()},
                 {"generated_per_trained", number(), "Tokens; evaluations do not count."},
                 {"engine",
                  object({{"step_s", number()},
                          {"sequence_s", number(), "Added by each sequence that runs."},
                          {"prompt_token_s", number(), "Added by each token of a prompt."}}),
                  "What a decode step takes."},
                 {"install_seconds", number(), "The mean pause of one install."},
                 {"install_bytes", number(), "The mean of what was fetched for one."},
                 {"fetch_seconds", number(), "From a version's announcement to its install."},
                 {"score_seconds", number(), "From a group's reward lease to its scores."},
                 {"turnaround_seconds", number(), "From a commit to a batch that was ready."},
                 {"prefix_hit_ratio", nullable(number())},
                 {"trainer_idle_fraction", number()},
                 {"rollout_idle_fraction", number()},
                 {"rollout_deaths", integer()},
                 {"rollout_returns", integer(), "Rollouts that drained to come back elsewhere."},
                 {"waits", map_of(number()),
                  "Seconds of each step that the learner waited, by what it waited for."},
                 {"since_resize", boolean(), "The window begins at the fleet's last change."}});
}

Schema cost_schema() {
  return object(
      {{"currency", text(), "The next two are there where the job has prices.", kSometimes},
       {"per_step", number(), "The mean of the newest steps.", kSometimes},
       {"total", number(), "Of the whole run.", kSometimes},
       {"goodput_tokens_per_device_second", number(), "Trained tokens, over the whole run."},
       {"device_seconds", object({{"rollout", number()}, {"learner", number()}})}});
}

Schema evaluation_figures(std::vector<schema::Field> further) {
  std::vector<schema::Field> fields{
      {"mean", nullable(number())},
      {"stderr", number(), "", kSometimes},
      {"mean_with_failures", number(), "", kSometimes},
      {"greedy", number(), "Of one greedy completion beside the sampled ones.", kSometimes},
      {"scored", integer()},
      {"failed", integer()},
      {"extra", map_of(number()), "Means of the numbers in the reward's `extra`.", kSometimes}};
  fields.insert(fields.end(), further.begin(), further.end());
  return schema::described(open_object(fields, number()), "Further fields are pass@K and maj@K.");
}

Schema evaluation_schema() {
  return evaluation_figures({{"sources", map_of(evaluation_figures({})),
                              "The figures by data_source, where there are several.", kSometimes}});
}

Schema memory_schema() {
  return map_of(object(
      {{"reserved_bytes", integer(), "What one rank reserves."},
       {"ranks", integer()},
       {"rows", list_of(object({{"name", text()}, {"bytes", integer()}, {"peak", boolean()}})),
        "The plan; a peak is not held all the time."}}));
}

Schema autoscale_schema() {
  return object(
      {{"on", boolean(), "False after a user has set a number or rolled back."},
       {"min", integer()},
       {"max", integer()},
       {"target_trainer_idle", number()},
       {"wanted", integer(), "How many rollouts the job is to have now."},
       {"matched", nullable(integer()), "How many would match the trainer, by the newest window."},
       {"at_limit", boolean(), "More would match than `max` or the room allows."},
       {"hold", nullable(text()), "Why the newest window changed nothing, or `changes`."},
       {"reason", nullable(text()), "The figures of that."},
       {"last", nullable(object({{"at", integer(), kUnixMs},
                                 {"from", integer()},
                                 {"to", integer()},
                                 {"reason", text()}}))}});
}

// The fields of a job that trains; null for a job of actors alone.
std::vector<schema::Field> training_fields() {
  return {{"step", nullable(integer())},
          {"total_steps", nullable(integer())},
          {"policy_version", nullable(integer())},
          {"reward_mean", nullable(number()), "Of the last batch."},
          {"eval", nullable(number()), "The mean reward of the last evaluation."},
          {"eval_scored", nullable(integer())},
          {"eval_failed", nullable(integer())},
          {"eval_figures", nullable(ref("EvaluationFigures"))},
          {"staleness", nullable(ref("Staleness"))},
          {"queue_depth", nullable(integer())},
          {"steps_skipped", nullable(integer())},
          {"steps_without_gradient", nullable(integer())},
          {"rewards_failed", nullable(integer())},
          {"trainer_idle_fraction", nullable(number())},
          {"rates", nullable(ref("FleetRates")), "Over the newest steps."},
          {"predicted",
           nullable(object({{"trainer_idle_fraction", number()},
                            {"rollout_idle_fraction", number()},
                            {"rollouts_matched", integer(), "So many would match the trainer."},
                            {"rollouts", integer(), "Up, for which this is predicted."}})),
           "Of the steady state by `rates`."},
          {"tokens_per_second", nullable(object({{"generated", number()}, {"trained", number()}}))},
          {"cost", nullable(ref("Cost"))},
          {"eta_seconds", nullable(number()), "The time until the last step."}};
}

// The figures of the warm start, of a job in that state.
Schema warm_start_schema() {
  return object({{"step", integer()},
                 {"max_steps", integer()},
                 {"metric", nullable(number())},
                 {"steps_per_second", nullable(number())},
                 {"eta_seconds", nullable(number()), "The time left until `max_steps`."}});
}

Schema job_schema() {
  std::vector<schema::Field> fields{
      {"id", text(), "NAME-N; its run has the same."},
      {"name", text()},
      {"trains", boolean(), "False for a job of actors alone, whose figures of training are null."},
      {"began", boolean(), "False for a job that ended before its run began or went on."},
      {"state", schema::one_of(names_of<scheduler::JobState>(scheduler::kJobStates))},
      {"reason", text(), "docs/reasons.md explains each."},
      {"message", text()},
      {"since", integer(), kUnixMs},
      {"created", integer(), kUnixMs},
      {"ended", nullable(integer()), kUnixMs},
      {"age_s", number()},
      {"actors", map_of(object({{"desired", integer()}, {"ready", integer()}})), "By role."},
      {"run_dir", text()},
      {"memory", memory_schema(), "By role, for roles whose memory is planned."},
      {"autoscale", nullable(autoscale_schema()), "Null without `pools.rollout.autoscale`."},
      {"why", list_of(ref("Wait")), kWhy},
      {"troubles", list_of(ref("Trouble")), kTroubles},
      {"alerts", list_of(ref("Alert")), "Those of the job that fire at present.", kSometimes},
      {"warm_start", warm_start_schema(), "In the state WarmStart.", kSometimes},
      {"ledger", object({{"issued", integer()}, {"trained", integer()}, {"live", integer()}}),
       "How many groups, while the job runs.", kSometimes},
      {"warnings", list_of(text()), "Of the job file, in the answer to its submission.",
       kSometimes}};
  const auto training = training_fields();
  fields.insert(fields.end(), training.begin(), training.end());
  return object(fields);
}

Schema actor_schema() {
  const Schema rank = object({{"rank", integer()},
                              {"node", text()},
                              {"pid", nullable(integer())},
                              {"gpus", list_of(integer())}});
  return object(
      {{"name", text(), "JOB/ROLE/INDEX."},
       {"job", text()},
       {"role", text()},
       {"state", schema::one_of(names_of<scheduler::ActorState>(scheduler::kActorStates))},
       {"reason", text(), "docs/reasons.md explains each."},
       {"message", text()},
       {"since", integer(), kUnixMs},
       {"created", integer(), kUnixMs},
       {"ended", nullable(integer()), kUnixMs},
       {"age_s", number()},
       {"node", nullable(text()), "Of rank 0, as `pid` and `gpus` are."},
       {"pid", nullable(integer())},
       {"gpus", list_of(integer())},
       {"incarnation", integer(), "Counts its starts."},
       {"restarts", integer()},
       {"policy_version", nullable(integer())},
       {"load", nullable(text()), "The work that it holds: `31/32`, `step 41`."},
       {"ranks", list_of(rank)},
       {"why", list_of(ref("Wait")), kWhy},
       {"troubles", list_of(ref("Trouble")), kTroubles},
       {"sandbox", nullable(text()), "What keeps its programs, where they are in a sandbox."},
       {"cpu_percent", nullable(number()), "Of all its living ranks."},
       {"memory_bytes", nullable(integer()), "Of all its living ranks."}});
}

Schema node_schema() {
  const Schema gpu =
      object({{"index", integer()},
              {"name", text()},
              {"uuid", text()},
              {"memory_bytes", integer()},
              {"cpu_affinity", text()},
              {"numa_affinity", text()},
              {"links", list_of(text()), "The way to each GPU of the node."},
              {"gone", boolean(), "Its agent does not find it, or has not said yet what it finds."},
              {"cordoned", nullable(text()), "Why it takes no new actors."},
              {"leased", number(), "The share that ranks hold, from 0 to 1."}});
  const Schema held = object({{"cpus", number()}, {"gpus", number()}, {"memory_bytes", integer()}});
  const Schema nccl = object({{"version", text()}, {"path", text()}, {"shares_gpus", boolean()}});
  const Schema reservation = object({{"actor", text()},
                                     {"rank", integer()},
                                     {"cpus", number()},
                                     {"gpus", number()},
                                     {"memory_bytes", integer()}});
  const std::vector<std::string> states{"Ready", "Lost"};
  return object(
      {{"name", text()},
       {"state", schema::one_of(states)},
       {"reason", text()},
       {"message", text()},
       {"cordoned", nullable(text()), "Why it takes no new actors."},
       {"since", integer(), kUnixMs},
       {"cpus", number()},
       {"memory_bytes", integer()},
       {"gpus", list_of(gpu)},
       {"gpus_unusable", list_of(text())},
       {"gpus_absent", nullable(text()), "Why the node has no GPU."},
       {"nccl", nullable(nccl)},
       {"nccl_absent", nullable(text()), "Why the node has no NCCL."},
       {"pid", nullable(integer()), "Of its agent."},
       {"leased", held, "What ranks hold of the node, GPUs that are gone too."},
       {"reserved", list_of(reservation), "By whom, in the answer about one node.", kSometimes}});
}

Schema group_schema() {
  return object(
      {{"job", text()},
       {"group", integer()},
       {"attempt", integer(), "The number of its lease; 0 without one."},
       {"state", schema::one_of(names_of<scheduler::GroupState>(scheduler::kGroupStates))},
       {"holder", nullable(text()), "The actor that has the lease."},
       {"due", nullable(integer()), "The last step that may train it."},
       {"age_s", number()}});
}

Schema event_schema() {
  std::vector<std::string> levels;
  for (const auto level :
       {messages::EventLevel::kInfo, messages::EventLevel::kWarning, messages::EventLevel::kError})
    levels.emplace_back(name(level));
  return object({{"seq", integer()},
                 {"time", integer(), kUnixMs},
                 {"kind", text(), "docs/reasons.md explains each."},
                 {"subject", text(), "Whom the event is about."},
                 {"message", text()},
                 {"level", schema::one_of(levels)}});
}

Schema wait_graph_schema() {
  const Schema node = object({{"id", text()},
                              {"kind", text(), "A role, `exchange`, `node` or `controller`."},
                              {"job", nullable(text())},
                              {"state", text()},
                              {"reason", text()}});
  const Schema edge = object({{"from", text(), "The id of a node of the graph."},
                              {"to", text(), "The id of a node of the graph."},
                              {"what", text()},
                              {"detail", text()},
                              {"since", integer(), kUnixMs},
                              {"until", nullable(integer()), kUnixMs},
                              {"ended_by", nullable(text()), kEndedBy}});
  return object({{"nodes", list_of(node)}, {"edges", list_of(edge)}});
}

// The evaluations in result.json.
Schema result_evaluations() {
  const Schema counts = object({{"scored", integer()}, {"failed", integer()}});
  return object({{"before", nullable(number())},
                 {"after_warm_start", nullable(number())},
                 {"final", nullable(number())},
                 {"counts", map_of(counts)},
                 {"figures", map_of(ref("EvaluationFigures"))},
                 {"failed", integer()},
                 {"failure", text(), "Why everything failed.", kSometimes},
                 {"records",
                  list_of(evaluation_figures(
                      {{"kind", text()},
                       {"version", integer()},
                       {"sources", map_of(ref("EvaluationFigures")), "", kSometimes}})),
                  "The newest 1000, in order."}});
}

// result.json: the first fields are those of every run, the next ones those of training, the last
// one that of actors alone. Files of earlier versions may lack some.
Schema result_schema() {
  const Schema best =
      object({{"step", integer()}, {"key", text()}, {"value", number()}, {"path", text()}});
  const Schema ledger = object({{"issued", integer()},
                                {"trained", integer()},
                                {"discarded", map_of(integer())},
                                {"live", integer()},
                                {"retrained", integer()}});
  const Schema ended =
      object({{"actors", integer()}, {"finished", integer()}, {"restarts", integer()}});
  std::vector<schema::Field> fields{
      {"state", text()},
      {"reason", text()},
      {"message", text()},
      {"wall_seconds", number()},
      {"steps", integer()},
      {"policy_version", integer()},
      {"reward_mean", nullable(number())},
      {"eval", nullable(result_evaluations())},
      {"staleness", ref("Staleness")},
      {"ledger", ledger},
      {"tokens", object({{"generated", integer()}, {"trained", integer()}})},
      {"logprob_diff",
       object({{"max_at_staleness_0", nullable(number())}, {"tokens_at_staleness_0", integer()}})},
      {"weight_publish",
       object({{"count", integer()}, {"bytes_mean", number()}, {"seconds_p50", number()}})},
      {"trainer_idle_fraction", number()},
      {"rates", ref("FleetRates")},
      {"rollout_idle_fraction", number()},
      {"cost", ref("Cost")},
      {"steps_skipped", integer()},
      {"steps_without_gradient", integer()},
      {"rewards_failed", integer()},
      {"best_checkpoint", nullable(best)},
      {"groups_kept_by_filter", integer()},
      {"warnings", list_of(text())},
      {"warnings_left_out", integer()},
      {"lineages", list_of(integer())},
      {"weights_sha256", text()},
      {"recorded_bytes", integer()},
      {"actors", map_of(ended)}};
  for (schema::Field& field : fields) field.presence = kSometimes;
  return object(fields);
}

Schema disk_schema() {
  const Schema dropped =
      object({{"lines", integer(), "", kSometimes},
              {"bytes", integer(), "", kSometimes},
              {"archived", integer(), "Rows of the kind `archived`, into which others are packed.",
               kSometimes},
              {"summed_to", integer(), "Archived rows up to this one have gone.", kSometimes}});
  return object({{"bytes", integer()},
                 {"parts", map_of(integer()), "Bytes, by what they are for."},
                 {"dropped", map_of(dropped),
                  "What has gone, by file, because the file had reached its limit."}});
}

Schema run_schema() {
  auto states = names_of<scheduler::JobState>(scheduler::kJobStates);
  states.emplace_back("Interrupted");
  return object(
      {{"id", text()},
       {"name", text()},
       {"trains", boolean()},
       {"run_name", text()},
       {"group", text()},
       {"tags", list_of(text())},
       {"notes", text()},
       {"state", schema::one_of(states), "Interrupted: it ended without a result."},
       {"reason", text()},
       {"message", text()},
       {"step", nullable(integer())},
       {"total_steps", nullable(integer())},
       {"policy_version", nullable(integer())},
       {"created", integer(), kUnixMs},
       {"started", nullable(integer()), kUnixMs},
       {"ended", nullable(integer()), kUnixMs},
       {"age_s", number()},
       {"reward_mean", nullable(number())},
       {"eval_final", nullable(number())},
       {"eval_scored", nullable(integer())},
       {"eval_failed", nullable(integer())},
       {"eval_figures", nullable(ref("EvaluationFigures"))},
       {"staleness", nullable(ref("Staleness"))},
       {"trainer_idle_fraction", nullable(number())},
       {"rollout_idle_fraction", nullable(number())},
       {"cost", nullable(ref("Cost"))},
       {"wall_seconds", nullable(number())},
       {"run_dir", text()},
       {"live", boolean(), "A process works on the run."},
       {"actors", list_of(object({{"name", text()}, {"incarnations", list_of(integer())}})),
        "In the answer about one run, as `result` is.", kSometimes},
       {"result", nullable(ref("RunResult")), "result.json.", kSometimes},
       {"disk", disk_schema(), "What the run has on the disk.", kSometimes}});
}

Schema run_metrics_schema() {
  const Schema values = list_of(nullable(number()));
  const Schema series = object({{"steps", list_of(integer()), "The first step of each bucket."},
                                {"min", values},
                                {"max", values},
                                {"mean", values}});
  return object(
      {{"id", text()},
       {"live", boolean()},
       {"step_min", nullable(integer())},
       {"step_max", nullable(integer())},
       {"keys", list_of(text()), "All that the run has."},
       {"series", map_of(series), "One for each key that is asked for; a gap is null."},
       {"complete", boolean(), "False while a large file is still being read: ask again."}});
}

Schema metrics_lines_schema() {
  const Schema line = open_object(
      {{"step", integer()}, {"eval", text(), "Which evaluation, in the line of one.", kSometimes}},
      nullable(number()));
  return object({{"lines", list_of(line), "Lines of metrics.jsonl (docs/metrics.md)."},
                 {"next", nullable(text()), "The value of `after` for the next page."}});
}

Schema sample_schema() {
  return object({{"seq", integer(), "Its number within the run."},
                 {"step", integer(), "From 1; of an evaluation: the evaluated version."},
                 {"group", integer(), "", kSometimes},
                 {"prompt", text(), "", kSometimes},
                 {"completion", text(), "", kSometimes},
                 {"reward", nullable(number()), "", kSometimes},
                 {"advantage", nullable(number()), "", kSometimes},
                 {"versions", list_of(integer()), "The policy versions of its tokens.", kSometimes},
                 {"finish_reason", text(), "`stop` or `length`.", kSometimes},
                 {"answer", any(), "", kSometimes},
                 {"data_source", text(), "", kSometimes},
                 {"user", text(), "The last message of the user in a conversation.", kSometimes},
                 {"extra", map_of(any()), "Of the reward program.", kSometimes},
                 {"error", text(), "Why it could not be scored.", kSometimes},
                 {"eval", text(), "Which evaluation, if it is a sample of one.", kSometimes},
                 {"sample", nullable(integer()),
                  "Which completion; null for the greedy one beside.", kSometimes},
                 {"greedy", boolean(), "", kSometimes}});
}

}  // namespace

nlohmann::json component_schemas() {
  const Schema setting = object({{"key", text()}, {"value", text(), "As YAML."}});
  const Schema config =
      object({{"id", text()}, {"config", list_of(setting), "In the order of the job file."}});
  const Schema page_key = object({{"path", text(), "Of this server."},
                                  {"expires_s", number(), "How long it opens the page."}});
  Schema schemas = Schema::object();
  schemas["Error"] = object({{"error", error_fields(true)}});
  schemas["Id"] = object({{"id", text()}});
  schemas["Status"] = status_schema();
  schemas["Alert"] = alert_schema();
  schemas["Wait"] = wait_schema();
  schemas["Trouble"] = trouble_schema();
  schemas["Staleness"] = staleness_schema();
  schemas["FleetRates"] = fleet_rates_schema();
  schemas["Cost"] = cost_schema();
  schemas["EvaluationFigures"] = evaluation_schema();
  schemas["Job"] = job_schema();
  schemas["Actor"] = actor_schema();
  schemas["Node"] = node_schema();
  schemas["Group"] = group_schema();
  schemas["Event"] = event_schema();
  schemas["WaitGraph"] = wait_graph_schema();
  schemas["Run"] = run_schema();
  schemas["RunResult"] = result_schema();
  schemas["RunConfig"] = config;
  schemas["RunMetrics"] = run_metrics_schema();
  schemas["MetricsLines"] = metrics_lines_schema();
  schemas["Sample"] = sample_schema();
  schemas["PageKey"] = page_key;
  return schemas;
}

}  // namespace tandem::api
