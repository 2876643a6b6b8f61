// A run that measures itself has `rates`, in the object of a live job and in its result. The lines
// of metrics.jsonl are read for any other.
#include "actors/main/run_rates.h"

#include <iterator>
#include <system_error>
#include <utility>

#include "actors/cli/object_names.h"
#include "actors/main/job_shape.h"
#include "actors/main/metric_rates.h"
#include "actors/main/rates_in.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kResultBytesMax = std::size_t{64} << 20;

// What the two kinds of sources have in common.
struct Found {
  json job;     // the job's object; null where no controller has the job
  json result;  // that of the run; null while it runs, and of a run that was killed
  json nodes;   // of the cluster, while the job lives
  runs::JobKeys keys;
};

json member(const json& object, const char* name) {
  return object.is_object() ? object.value(name, json()) : json();
}

// A run that was killed has no end on record; nobody holds its lock, so that it is not `live`.
bool is_live(const json& job) {
  return job.is_object() && member(job, "ended").is_null() && member(job, "live") != false;
}

// By the name that the API knows it by.
Result<Found> found_by_api(const cli::Client& client, const std::string& id) {
  Found found;
  const std::string escaped = cli::url_escape(id);
  auto job = client.api.get("/jobs/" + escaped);
  if (job)
    found.job = *std::move(job);
  else if (job.error().code != ErrorCode::kNotFound)
    return job.error();
  if (is_live(found.job))
    if (auto nodes = cli::get_list(client, "/nodes")) found.nodes = *std::move(nodes);
  const auto run = client.api.get("/runs/" + escaped);
  if (!run) return run.error();
  found.result = member(*run, "result");
  const auto config = client.api.get("/runs/" + escaped + "/config");
  if (!config) return config.error();
  for (const json& row : member(*config, "config"))
    if (const json key = member(row, "key"), value = member(row, "value");
        key.is_string() && value.is_string())
      found.keys.emplace_back(key.get<std::string>(), value.get<std::string>());
  return found;
}

Result<Found> found_in(const fs::path& directory) {
  const auto yaml = read_file(directory / "job.yaml");
  if (!yaml) return yaml.error();
  auto keys = job_readers().keys(*yaml, directory);
  if (!keys) return keys.error();
  const auto result = read_file(directory / "result.json", kResultBytesMax);
  return Found{
      .job = {}, .result = result ? parse_json(*result) : json(), .keys = *std::move(keys)};
}

Result<MetricRates> lines_of(const cli::Client& client, const std::string& id) {
  const std::string path =
      "/jobs/" + cli::url_escape(id) + "/metrics?keys=" + cli::url_escape(MetricRates::kKeys);
  MetricRates lines;
  for (std::string after;;) {
    const auto page =
        client.api.get(path + (after.empty() ? "" : "&after=" + cli::url_escape(after)));
    if (!page) return page.error();
    for (const json& line : member(*page, "lines")) lines.add(line);
    const json next = member(*page, "next");
    if (!next.is_string() || next.get_ref<const std::string&>().empty()) break;
    after = next.get<std::string>();
  }
  return lines;
}

// The present fleet is the one that the rates are of. A job that was just scaled wants another one.
void settle_fleet(RunRates& run, const json& desired, std::optional<std::int64_t> measured) {
  const auto wanted =
      desired.is_number_integer() ? std::optional(desired.get<std::int64_t>()) : std::nullopt;
  if (run.live && wanted && measured && *wanted != *measured)
    run.unsettled = std::to_string(*wanted) + (*wanted == 1 ? " rollout is" : " rollouts are") +
                    " wanted, and these rates are of " + std::to_string(*measured);
  if (measured && *measured > 0)
    run.plan.replicas = measured;
  else if (!wanted)
    run.notes.emplace_back(
        "how many rollouts were up last is not on record: the number is the job file's");
}

Result<RunRates> rates_of(const cli::Client& client, std::string id, const Found& found) {
  auto plan = plan_of(found.keys, id);
  if (!plan) return plan.error();
  RunRates run{.id = std::move(id), .plan = *std::move(plan), .rates = {}, .staleness_mean = {}};
  run.live = is_live(found.job);
  run.autoscaled = run.live && member(member(found.job, "autoscale"), "on") == true;
  if (run.live) run.room = room_on_nodes(found.nodes, found.job, found.keys);
  if (const json troubles = member(found.job, "troubles"); troubles.is_array())
    run.troubles = troubles.size();
  for (const json* const object : {&found.job, &found.result})
    if (const json mean = member(member(*object, "staleness"), "mean");
        mean.is_number() && !run.staleness_mean)
      run.staleness_mean = mean.get<double>();
  // A job may have been scaled since it was written.
  const json desired = member(member(member(found.job, "actors"), "rollout"), "desired");
  if (desired.is_number_integer()) run.plan.replicas = desired.get<std::int64_t>();
  for (const json* const object : {&found.job, &found.result})
    if (auto own = rates_in(member(*object, "rates"))) {
      run.rates = *std::move(own);
      run.from = "rates";
      // One that is up and has too little to do is not among those with a rate.
      const json up = member(member(member(found.job, "actors"), "rollout"), "ready");
      settle_fleet(run, desired,
                   run.live && up.is_number_integer() ? up.get<std::int64_t>()
                                                      : std::ssize(run.rates.rollouts));
      return run;
    }
  const auto lines = lines_of(client, run.id);
  if (!lines) return lines.error();
  auto rates = lines->rates(run.plan);
  if (!rates) {
    Error error = rates.error();
    error.where = run.id;
    return error;
  }
  run.rates = *std::move(rates);
  run.from = "metrics.jsonl";
  settle_fleet(run, desired, lines->rollouts());
  return run;
}

}  // namespace

Result<RunRates> read_run_rates(const cli::VerbContext& context, const std::string& named) {
  Result<RunRates> run = Error{};
  std::error_code ignored;
  const fs::path directory = fs::absolute(named, ignored).lexically_normal();
  const bool in_files = context.offline && fs::exists(directory / "job.yaml", ignored);
  const auto call = [&](cli::Client& client) -> Result<void> {
    auto id = in_files ? Result<std::string>(directory.string())
                       : cli::find_job(client, named, cli::PastRuns::kIncluded);
    if (!id) return id.error();
    const auto found = in_files ? found_in(directory) : found_by_api(client, *id);
    if (!found) return found.error();
    run = rates_of(client, *std::move(id), *found);
    return {};
  };
  const auto done = in_files ? cli::with_offline_api(context, call)
                             : cli::with_api(context, cli::AnsweredBy::kRunsAsWell, call);
  if (!done) return done.error();
  return run;
}

}  // namespace tandem::app
