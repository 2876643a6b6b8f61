// The records of the controller and the report of a job's exchange become one object per job,
// actor, node or group. The exchange may be gone, or may not have answered: its part is then empty,
// never an error.
//
// The reason and message of a job are chosen among several that are true at once. A lost node comes
// first, then an actor that dies again and again, then the words of the last JobProgress, then the
// job's own reason: the more special one explains more.
#include "actors/api/api_json.h"

#include <algorithm>

#include "actors/api/wait_deadlines.h"
#include "actors/exchange/cost_json.h"
#include "actors/exchange/evaluation_json.h"
#include "actors/exchange/fleet_json.h"
#include "actors/runs/run_catalogue.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/collective/nccl_api.h"

namespace tandem::api {
namespace {

using nlohmann::json;

constexpr const char* kCrashLoop = "CrashLoop";      // as `reason`, and as `waits_for`
constexpr const char* kRewardFails = "RewardFails";  // as `reason`
constexpr const char* kDiskFull = "DiskFull";
constexpr const char* kFilterKeepsGroups = "FilterKeepsGroups";

// A time of the executor's clock as wall time, by its distance from now.
std::int64_t wall_ms(Time then, Time now) {
  return unix_ms() - std::chrono::duration_cast<std::chrono::milliseconds>(now - then).count();
}

json wait_json(const messages::Wait& wait, const controller::WorkByActor& work, Time now) {
  const auto deadline = deadline_s(wait, work, now);
  return {{"who", wait.who},
          {"waits_for", wait.waits_for},
          {"since_s", wait.since_s},
          {"deadline_s", deadline ? json(*deadline) : json()},
          {"ended_by", deadline || wait.ended_by.empty() ? json() : json(wait.ended_by)},
          {"detail", wait.detail}};
}

json waits_json(const std::vector<messages::Wait>& waits, const controller::WorkByActor& work,
                Time now) {
  json array = json::array();
  for (const messages::Wait& wait : waits) array.push_back(wait_json(wait, work, now));
  return array;
}

// The wait of an actor that is not ready, or the loop of deaths that the actor is in.
json wait_of(const controller::ActorRecord& actor, const controller::WorkByActor& work, Time now) {
  const scheduler::ActorStatus& status = actor.status;
  const auto deadline = deadline_of(actor, work);
  json wait{{"who", actor.name},
            {"waits_for", scheduler::reason_name(status.reason)},
            {"since_s", seconds(now - status.since)},
            {"deadline_s", deadline ? json(std::max(0.0, seconds(*deadline - now))) : json()},
            {"ended_by", deadline ? json() : json(scheduler::words(ended_by(actor)))},
            {"detail", scheduler::message(status.reason, now)}};
  if (const auto* lost = std::get_if<scheduler::AgentLost>(&status.reason))
    wait["since_s"] = seconds(now - lost->since);
  // Deaths explain more than the state of the newest incarnation. One death is no loop yet.
  if (const auto loop = scheduler::text(actor.crash_loop, status, now)) {
    if (scheduler::loops(actor.crash_loop, status, now)) wait["waits_for"] = kCrashLoop;
    wait["since_s"] = seconds(now - actor.crash_loop.since);
    wait["detail"] = *loop;
  }
  return wait;
}

// True for an actor that is not ready, or is ready only until it dies again or is given up.
bool waits(const controller::ActorRecord& actor, Time now) {
  return actor.status.state != scheduler::ActorState::kReady ||
         std::holds_alternative<scheduler::AgentLost>(actor.status.reason) ||
         scheduler::text(actor.crash_loop, actor.status, now);
}

// False for a job that is ending or has ended.
bool is_going_on(const controller::JobRecord& job) {
  return job.status.state != scheduler::JobState::kStopping &&
         !scheduler::is_final(job.status.state);
}

// The actor of the job that has died most often in a row; null if none loops, or the job is ending.
const controller::ActorRecord* worst_loop(const controller::JobRecord& job, Time now) {
  const controller::ActorRecord* worst = nullptr;
  if (!is_going_on(job)) return nullptr;
  for (const auto& [id, actor] : job.actors)
    if (scheduler::loops(actor.crash_loop, actor.status, now) &&
        (!worst || actor.crash_loop.deaths > worst->crash_loop.deaths))
      worst = &actor;
  return worst;
}

json trouble_json(const messages::TroubleView& view) {
  const messages::RewardTrouble& trouble = view.trouble;
  return {{"who", trouble.from.name},      {"what", trouble.what},
          {"attempt", trouble.attempt},    {"attempts", trouble.attempts},
          {"stderr", trouble.stderr_tail}, {"log", trouble.log},
          {"count", trouble.count},        {"since_s", view.since_s}};
}

json warm_start_json(const messages::WarmStartStatus& status) {
  const auto known = [](const std::optional<double>& v) { return v ? json(*v) : json(); };
  return {{"step", status.step},
          {"max_steps", status.steps_max},
          {"metric", known(status.metric)},
          {"steps_per_second", known(status.steps_per_s)},
          {"eta_seconds", known(status.eta_s)}};
}

// `created`, `age_s`, and `ended` where the state is final.
void add_ages(json& object, Time created, bool final, Time since, Time now) {
  object["created"] = wall_ms(created, now);
  object["age_s"] = seconds(now - created);
  object["ended"] = final ? json(wall_ms(since, now)) : json();
}

double cpus(const scheduler::Resources& resources) {
  return static_cast<double>(resources.cpu_milli) / 1000;
}

// Shares of GPUs are kept in thousandths and shown as numbers of GPUs.
double gpus(std::int64_t milli) {
  return static_cast<double>(milli) / static_cast<double>(scheduler::kWholeGpu);
}

// Null where the exchange did not answer, or does not know the actor.
const messages::ActorLoad* load_of(const messages::ExchangeReport* report,
                                   const std::string& actor) {
  if (!report) return nullptr;
  const auto it = std::ranges::lower_bound(report->loads, actor, {}, &messages::ActorLoad::actor);
  return it == report->loads.end() || it->actor != actor ? nullptr : &*it;
}

json nccl_json(const node::NodeNccl& nccl) {
  if (nccl.version == 0) return {};
  return {{"version", collective::nccl_version_text(nccl.version)},
          {"path", nccl.path},
          {"shares_gpus", nccl.shares_gpus}};
}

// The memory of each role whose memory is planned: what a rank reserves, and the rows of the plan.
json memory_json(const controller::JobRecord& job) {
  json roles = json::object();
  for (const auto& [role, demand] : job.shape.memory) {
    json rows = json::array();
    for (const scheduler::MemoryRow& row : scheduler::shown_rows(demand))
      rows.push_back({{"name", row.name},
                      {"bytes", row.bytes},
                      {"peak", row.use == scheduler::MemoryUse::kPeak}});
    roles[name(role)] = {{"reserved_bytes", scheduler::reserved_bytes(demand)},
                         {"ranks", job.desired.at(role) * ranks_of(job.shape, role)},
                         {"rows", rows}};
  }
  return roles;
}

// Actors that are ready of those that are desired, by role.
json actors_json(const controller::JobRecord& job) {
  json roles = json::object();
  for (const messages::Role& role : job.shape.roles) {
    std::int32_t ready = 0;
    for (const auto& [id, actor] : job.actors)
      ready += actor.role == role && (actor.status.state == scheduler::ActorState::kReady ||
                                      actor.status.state == scheduler::ActorState::kBusy);
    roles[name(role)] = {{"desired", job.desired.at(role)}, {"ready", ready}};
  }
  return roles;
}

// Null for a job without `pools.rollout.autoscale`.
json autoscale_json(const controller::JobRecord& job, Time now) {
  if (!job.shape.autoscale) return {};
  const scheduler::AutoscaleConfig& config = *job.shape.autoscale;
  const controller::Autoscaling& scaling = job.autoscaling;
  json last;
  if (const auto& change = scaling.last)
    last = {{"at", wall_ms(change->at, now)},
            {"from", change->from},
            {"to", change->to},
            {"reason", change->reason}};
  const auto& newest = scaling.newest;
  return {{"on", scaling.on},
          {"min", config.min},
          {"max", config.max},
          {"target_trainer_idle", config.target_trainer_idle},
          {"wanted", job.desired.at(messages::Role::kRollout)},
          {"matched", newest && newest->matched ? json(*newest->matched) : json()},
          {"at_limit", scaling.on && newest && newest->at_limit},
          {"hold", scaling.on && newest ? json(spelling(newest->hold)) : json()},
          {"reason", scaling.on && newest ? json(newest->reason) : json()},
          {"last", last}};
}

struct ShownReason {
  const char* reason;
  std::string message;
};

// Why the job is as it is: its worst trouble, else what its exchange says, else its own words.
ShownReason reason_of(const controller::JobRecord& job, const messages::JobStatus& status,
                      Time now) {
  const bool lost = std::holds_alternative<scheduler::NodeLost>(job.status.reason);
  if (const controller::ActorRecord* worst = lost ? nullptr : worst_loop(job, now))
    return {kCrashLoop,
            worst->name + " " + *scheduler::text(worst->crash_loop, worst->status, now)};
  if (status.disk_full && is_going_on(job)) return {kDiskFull, *status.disk_full};
  if (status.reward_fails && is_going_on(job)) return {kRewardFails, *status.reward_fails};
  if (status.filter_keeps && is_going_on(job)) return {kFilterKeepsGroups, *status.filter_keeps};
  const char* const reason = scheduler::reason_name(job.status.reason);
  // The words of the exchange are about a job that runs; an ended one has its own.
  if (!scheduler::is_final(job.status.state) && !job.message.empty() && !lost)
    return {reason, job.message};
  return {reason, scheduler::message(job.status.reason, now)};
}

// Actors that are not ready explain a job that stands still; those that died come first.
void add_actors_waits(const controller::JobRecord& job, const controller::WorkByActor& work,
                      Time now, json& why) {
  json died = json::array();
  for (const auto& [id, actor] : job.actors) {
    if (!waits(actor, now)) continue;
    json wait = wait_of(actor, work, now);
    const bool of_deaths = scheduler::text(actor.crash_loop, actor.status, now).has_value();
    (of_deaths ? died : why).push_back(std::move(wait));
  }
  why.insert(why.begin(), died.begin(), died.end());
}

}  // namespace

std::optional<node::RankUsage> usage_of(const std::vector<controller::RankRecord>& ranks) {
  std::optional<node::RankUsage> sum;
  for (const controller::RankRecord& rank : ranks) {
    // The last report of a process that has ended says nothing about now.
    if (!rank.alive || !rank.usage) continue;
    if (!sum) sum.emplace();
    sum->cpu_percent += rank.usage->cpu_percent;
    sum->memory_bytes += rank.usage->memory_bytes;
  }
  return sum;
}

namespace {

// The figures of training; all null for a job of actors alone.
json training_json(const controller::JobRecord& job, const messages::JobStatus& status) {
  json figures{
      {"step", status.step},
      {"total_steps", job.shape.total_steps},
      {"policy_version", status.policy_version},
      {"reward_mean", status.reward_mean},
      {"eval", status.eval && status.eval->all.mean ? json(*status.eval->all.mean) : json()},
      {"eval_scored", status.eval ? json(status.eval->all.scored) : json()},
      {"eval_failed", status.eval ? json(status.eval->all.failed) : json()},
      {"eval_figures", status.eval ? exchange::figures_json(*status.eval) : json()},
      {"staleness",
       {{"bound", job.shape.staleness_bound},
        {"max", status.staleness_max},
        {"mean", status.staleness_mean}}},
      {"queue_depth", status.queue_depth},
      {"steps_skipped", status.steps_skipped},
      {"steps_without_gradient", status.steps_without_gradient},
      {"rewards_failed", status.rewards_failed},
      {"trainer_idle_fraction", status.trainer_idle_fraction},
      {"rates", status.rates ? exchange::rates_json(*status.rates) : json()},
      {"predicted", status.gap ? exchange::predicted_json(*status.gap) : json()},
      {"tokens_per_second",
       {{"generated", status.tokens_generated_per_s}, {"trained", status.tokens_trained_per_s}}},
      {"cost", exchange::cost_json(status.cost)},
      {"eta_seconds", status.eta_s ? json(*status.eta_s) : json()}};
  if (!trains(job.shape))
    for (json& figure : figures) figure = nullptr;
  return figures;
}

}  // namespace

json job_json(const controller::JobRecord& job, const messages::ExchangeReport* report, Time now,
              const controller::WorkByActor& work) {
  messages::JobStatus status = report ? report->status : messages::JobStatus{};
  // The exchange of a resumed run knows its step once the learner is up.
  if (job.shape.resume_dir && (!report || status.restoring))
    status.step = status.policy_version = job.shape.resumed_step;
  const auto [reason, message] = reason_of(job, status, now);
  json object{{"id", job.id},
              {"name", job.shape.name},
              {"trains", trains(job.shape)},
              {"state", scheduler::name(job.status.state)},
              {"reason", reason},
              {"message", message},
              {"since", wall_ms(job.status.since, now)},
              {"actors", actors_json(job)},
              {"run_dir", job.run_dir},
              {"why", waits_json(status.waits, work, now)}};
  object.update(training_json(job, status));
  object["memory"] = memory_json(job);
  object["autoscale"] = autoscale_json(job, now);
  object["troubles"] = json::array();
  for (const messages::TroubleView& view : status.troubles)
    object["troubles"].push_back(trouble_json(view));
  add_ages(object, job.created, scheduler::is_final(job.status.state), job.status.since, now);
  if (job.status.state == scheduler::JobState::kWarmStart)
    object["warm_start"] = warm_start_json(status.warm_start);
  if (report)
    object["ledger"] = {{"issued", report->ledger.issued},
                        {"trained", report->ledger.trained},
                        {"live", report->ledger.live}};
  if (!scheduler::is_final(job.status.state)) add_actors_waits(job, work, now, object["why"]);
  return object;
}

json shown_job(const controller::JobRecord& record, const messages::ExchangeReport* report,
               Time now, const controller::WorkByActor& work) {
  json job = job_json(record, report, now, work);
  const scheduler::JobState state = record.status.state;
  const bool over = state == scheduler::JobState::kStopping || scheduler::is_final(state);
  job["began"] = !record.outcome || record.outcome->has_result;
  if (report || !over || !trains(record.shape)) return job;
  if (ended_unresumed(record)) {
    job["step"] = runs::steps_in(record.run_dir);
    job["message"] = runs::unresumed_text(job["message"], job["step"], record.run_dir);
  }
  const auto text = read_file(record.run_dir + "/result.json");
  const json result = text ? parse_json(*text) : json();
  if (!result.is_object()) return job;
  job["step"] = result.value("steps", 0);
  job["policy_version"] = result.value("policy_version", 0);
  job["reward_mean"] = result.value("reward_mean", 0.0);
  job["staleness"] = result.value("staleness", json());
  job["trainer_idle_fraction"] = result.value("trainer_idle_fraction", 0.0);
  job["rates"] = result.value("rates", json());
  job["cost"] = result.value("cost", json());
  if (result.contains("eval") && result["eval"].is_object()) {
    const json& evaluation = result["eval"];
    job["eval"] = evaluation["final"];
    for (const char* count : {"scored", "failed"})
      job[std::string("eval_") + count] =
          evaluation.value(json::json_pointer(std::string("/counts/final/") + count), json());
    job["eval_figures"] = evaluation.value(json::json_pointer("/figures/final"), json());
  }
  return job;
}

json actor_json(const controller::ActorRecord& actor, const messages::ExchangeReport* report,
                std::int32_t restarts, Time now, const controller::WorkByActor& work) {
  const messages::ActorLoad* load = load_of(report, actor.name);
  json ranks = json::array();
  // A pid of a process that has ended may be another process's by now. That of one which has
  // outlived its controller is known once its agent is back.
  const auto pid_of = [](const controller::RankRecord& rank) {
    return rank.alive && rank.pid > 0 ? json(rank.pid) : json();
  };
  for (std::size_t r = 0; r < actor.ranks.size(); ++r)
    ranks.push_back({{"rank", r},
                     {"node", actor.ranks[r].node},
                     {"pid", pid_of(actor.ranks[r])},
                     {"gpus", actor.ranks[r].alive ? json(actor.ranks[r].gpus) : json::array()}});
  // An actor is shown with the place of its rank 0; `ranks` has the others.
  const bool placed = !actor.ranks.empty();
  std::string message = scheduler::message(actor.status.reason, now);
  const auto loop = scheduler::text(actor.crash_loop, actor.status, now);
  // A backoff names the death itself, and the text of the loop a wait for a disk or for an actor
  // that has outlived its controller.
  if (loop && (std::holds_alternative<scheduler::WaitingForDisk>(actor.status.reason) ||
               std::holds_alternative<scheduler::Returning>(actor.status.reason)))
    message = *loop;
  else if (loop && !std::holds_alternative<scheduler::Backoff>(actor.status.reason))
    message += "; " + *loop;
  json why = json::array();
  if (waits(actor, now)) why.push_back(wait_of(actor, work, now));
  if (report)
    // The exchange also knows the waits of actors that are ready.
    for (const messages::Wait& wait : report->status.waits)
      if (wait.who == actor.name) why.push_back(wait_json(wait, work, now));
  json troubles = json::array();
  if (report)
    for (const messages::TroubleView& view : report->status.troubles)
      if (view.trouble.from.name == actor.name) troubles.push_back(trouble_json(view));
  json object{{"name", actor.name},
              {"job", actor.job},
              {"role", name(actor.role)},
              {"state", scheduler::name(actor.status.state)},
              {"reason", scheduler::reason_name(actor.status.reason)},
              {"message", message},
              {"since", wall_ms(actor.status.since, now)},
              {"node", placed ? json(actor.ranks[0].node) : json()},
              {"pid", placed ? pid_of(actor.ranks[0]) : json()},
              {"gpus", placed && actor.ranks[0].alive ? json(actor.ranks[0].gpus) : json::array()},
              {"incarnation", actor.incarnation.value},
              {"restarts", restarts},
              {"policy_version", load ? json(load->policy_version) : json()},
              {"load", load ? json(load->load) : json()},
              {"ranks", ranks},
              {"why", why}};
  object["troubles"] = std::move(troubles);
  object["sandbox"] = actor.sandbox.empty() ? json() : json(actor.sandbox);
  const auto usage = usage_of(actor.ranks);
  object["cpu_percent"] = usage ? json(usage->cpu_percent) : json();
  object["memory_bytes"] = usage ? json(usage->memory_bytes) : json();
  add_ages(object, actor.created, scheduler::is_final(actor.status.state), actor.status.since, now);
  return object;
}

namespace {

// Why the node is as it is, and the words.
std::pair<std::string, std::string> reason_of_node(const controller::NodeRecord& node, Time now) {
  if (node.awaited)
    return {"Returning", "was up under the controller before this one, and is waited for"};
  if (node.agent_until) {
    const scheduler::AgentLost lost{node.name, node.since, *node.agent_until, node.silent};
    return {scheduler::reason_name(lost), scheduler::message(lost, now)};
  }
  if (!node.up) return {"NodeLost", scheduler::message(scheduler::NodeLost{node.name}, now)};
  if (node.leaving) return {"HostEnds", "takes no new actors: its host is to end"};
  if (node.cordoned) return {"Cordoned", "takes no new actors: " + *node.cordoned};
  std::string gpus;
  for (std::size_t i = 0; i < node.gpus.size(); ++i)
    if (const auto& gpu = node.gpus[i]; gpu.cordoned && !gpu.gone)
      gpus += (gpus.empty() ? "GPU " : "; GPU ") + std::to_string(i) + " (" + gpu.device.uuid +
              ") takes no new actors: " + *gpu.cordoned;
  if (!gpus.empty()) return {"GpuCordoned", gpus};
  return {"Working", "all is well"};
}

}  // namespace

json node_json(const controller::NodeRecord& node, Time now) {
  json devices = json::array();
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const node::Gpu& gpu = node.gpus[i].device;
    json links = json::array();
    // The way to each GPU of the node.
    for (const node::GpuLink link : gpu.links) links.push_back(name(link));
    devices.push_back({{"index", i},
                       {"name", gpu.name},
                       {"uuid", gpu.uuid},
                       {"memory_bytes", gpu.memory_bytes},
                       {"cpu_affinity", gpu.cpu_affinity},
                       {"numa_affinity", gpu.numa_affinity},
                       {"links", links},
                       {"gone", node.gpus[i].gone},
                       {"cordoned", node.gpus[i].cordoned ? json(*node.gpus[i].cordoned) : json()},
                       {"leased", gpus(scheduler::kWholeGpu - node.gpus[i].free_milli)}});
  }
  const auto [reason, message] = reason_of_node(node, now);
  return {{"name", node.name},
          {"state", node.up ? "Ready" : "Lost"},
          {"reason", reason},
          {"message", message},
          {"cordoned", node.cordoned ? json(*node.cordoned) : json()},
          {"since", wall_ms(node.since, now)},
          {"cpus", cpus(node.total)},
          {"memory_bytes", node.total.memory_bytes},
          {"gpus", devices},
          {"gpus_unusable", node.gpus_unusable},
          {"gpus_absent", node.gpus_absent.empty() ? json() : json(node.gpus_absent)},
          {"nccl", nccl_json(node.nccl)},
          {"nccl_absent", node.nccl.absent.empty() ? json() : json(node.nccl.absent)},
          {"pid", node.pid > 0 ? json(node.pid) : json()},
          {"leased",
           {{"cpus", cpus(node.leased)},
            {"gpus", gpus(node.leased.gpu_milli)},
            {"memory_bytes", node.leased.memory_bytes}}}};
}

json reservations_json(const std::vector<controller::ShownActor>& actors, const std::string& node) {
  json reserved = json::array();
  for (const controller::ShownActor& shown : actors)
    for (std::size_t r = 0; r < shown.actor.ranks.size(); ++r)
      if (const controller::RankRecord& rank = shown.actor.ranks[r];
          rank.alive && rank.node == node)
        reserved.push_back({{"actor", shown.actor.name},
                            {"rank", r},
                            {"cpus", cpus(rank.need)},
                            {"gpus", gpus(rank.need.gpu_milli)},
                            {"memory_bytes", rank.need.memory_bytes}});
  return reserved;
}

json event_json(const runs::ClusterEvent& event) {
  return {{"seq", event.seq},         {"time", event.time_ms},    {"kind", event.kind},
          {"subject", event.subject}, {"message", event.message}, {"level", name(event.level)}};
}

json group_json(const messages::GroupView& group, const std::string& job) {
  return {{"job", job},
          {"group", group.group},
          {"attempt", group.attempt},
          {"state", group.state},
          {"holder", group.holder.empty() ? json() : json(group.holder)},
          {"due", group.due ? json(*group.due) : json()},
          {"age_s", group.age_s}};
}

}  // namespace tandem::api
