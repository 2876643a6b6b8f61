#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <system_error>
#include <utility>

#include "actors/cli/object_names.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/verb.h"
#include "actors/cli/views.h"
#include "runtime/base/json.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

struct Samples {
  static VerbHelp help() {
    return {.name = "samples",
            .group = VerbGroup::kLook,
            .description = "What was said and what it earned",
            .examples = {"tandem samples arithmetic-grpo-1 --step 200",
                         "tandem samples ~/.tandem/runs/arithmetic-grpo-1 --eval -o jsonl"}};
  }

  void options(Options& options) {
    options.add("JOB", job, "A job, a run, or a run directory").required();
    options.add("--step", step, "Of this training step").value("N");
    options.add("--limit", limit, "The newest N; 64").value("N");
    options.flag("--eval", eval, "Of evaluations");
    options.flag("--failed", failed, "Whose reward failed");
    using enum OutputForm;
    add_output(options, output, {kTable, kWide, kJson, kJsonl, kYaml});
  }

  Result<int> run(const VerbContext& context) {
    const auto call = [this](Client& client) { return carry_out(client); };
    // A run directory, which may lie anywhere, needs no controller.
    const std::filesystem::path directory = std::filesystem::absolute(job);
    std::error_code ignored;
    if (!context.offline || !std::filesystem::exists(directory / "samples.jsonl", ignored))
      return with_api(context, AnsweredBy::kRunsAsWell, call);
    job = directory.lexically_normal().string();
    return with_offline_api(context, call);
  }

  Result<void> carry_out(Client& client) const;

  std::string job;                    // a job, a run, or the absolute path of a run directory
  std::optional<std::int64_t> step;   // nullopt: all steps
  std::optional<std::int64_t> limit;  // nullopt: the server's
  bool eval = false;
  bool failed = false;
  OutputForm output = OutputForm::kTable;
};

// The error for a step of which no sample is kept; it says which steps have some.
Error no_samples(const Client& client, const std::string& path, std::int64_t step) {
  const auto kept = client.api.get(path + "&steps=1");
  std::string help = "no step has any";
  if (kept && kept->is_array() && !kept->empty())
    help = "kept are samples of " + std::to_string(kept->size()) + " steps from " +
           dump_json(kept->front()) + " to " + dump_json(kept->back());
  if (kept && kept->is_array() && kept->size() > 1) {
    const json* nearest = &kept->front();
    for (const json& one : *kept)
      if (std::abs(one.get<std::int64_t>() - step) < std::abs(nearest->get<std::int64_t>() - step))
        nearest = &one;
    help += "; the nearest is --step " + dump_json(*nearest);
  }
  return {ErrorCode::kNotFound, "no sample of step " + std::to_string(step) + " is kept", "",
          std::move(help)};
}

Result<void> Samples::carry_out(Client& client) const {
  // An absolute path is a run directory, which an answer from files takes as it is.
  const bool directory = job.starts_with('/');
  auto id = directory ? Result<std::string>(job) : find_job(client, job, PastRuns::kIncluded);
  if (!id) return id.error();
  const std::string path = "/jobs/" + url_escape(*id) + "/samples?eval=" + (eval ? "1" : "0") +
                           (failed ? "&failed=1" : "");
  std::string query = path;
  if (step) query += "&step=" + std::to_string(*step);
  if (limit) query += "&limit=" + std::to_string(*limit);
  auto samples = get_list(client, query);
  if (!samples) return samples.error();
  if (samples->empty() && step) return no_samples(client, path, *step);
  client.console.out << render_samples(*samples, output, screen_of(client)) << std::flush;
  return {};
}

}  // namespace

Verb samples_verb() { return make_verb<Samples>(); }

}  // namespace tandem::cli
