#include "actors/main/doctor_command.h"

#include <algorithm>
#include <ostream>
#include <vector>

#include "actors/cli/api_client.h"
#include "actors/cli/doctor.h"
#include "actors/cli/shared_options.h"
#include "actors/rollout/external/server_about.h"
#include "runtime/http/http_client.h"

namespace tandem::app {
namespace {

using cli::Finding;
using cli::Health;
using rollout::EngineName;

constexpr Duration kAskTimeout = std::chrono::seconds(10);

// Whether versions can reach the server by this way.
Result<Finding> examine_transfer(const rollout::GetFromServer& get,
                                 const rollout::ServerAbout& about,
                                 const rollout::ServerNeeds& needs) {
  Finding finding{.subject = "weights by " + std::string(spelling(needs.transfer)),
                  .detail = "it has the routes"};
  const auto missing =
      rollout::missing_routes(get, rollout::dialect_of(needs.engine).routes(needs.transfer));
  if (!missing) return missing.error();
  for (const rollout::NeededRoute& route : *missing) {
    finding.detail = (finding.health == Health::kOk ? "it has no " : finding.detail + ", ") +
                     std::string(route.target);
    finding.health = Health::kWarning;
    if (finding.help.find(route.remedy) == std::string::npos)
      finding.help += (finding.help.empty() ? "" : "; ") + std::string(route.remedy);
  }
  if (finding.health != Health::kOk) return finding;
  if (const auto unmet = rollout::unmet_need(about, needs))
    return Finding{finding.subject, Health::kWarning, unmet->message, unmet->help};
  return finding;
}

Finding examine_logprobs(const rollout::ServerAbout& about) {
  Finding finding{.subject = "log-probabilities", .detail = "of what is sampled"};
  if (about.owner == spelling(EngineName::kSglang))
    finding.detail = "after the temperature, before filters, unless it was started otherwise";
  else if (!about.processed_logprobs)
    finding.detail = "it does not say of what they are";
  else if (!*about.processed_logprobs)
    finding.detail = "from before temperature and filters";
  if (about.processed_logprobs.value_or(false)) return finding;
  finding.health = Health::kWarning;
  finding.help = "a job needs rollout.temperature 1";
  if (about.owner != spelling(EngineName::kSglang)) finding.help += " and no filters";
  if (about.owner == spelling(EngineName::kVllm))
    finding.help +=
        ", or start it with --logprobs-mode processed_logprobs and VLLM_SERVER_DEV_MODE=1";
  return finding;
}

Result<std::vector<Finding>> examine_engine(const std::string& text) {
  auto url = http::parse_url(text);
  if (!url) return url.error();
  std::string prefix = url->target;
  while (prefix.ends_with('/')) prefix.pop_back();
  const rollout::GetFromServer get = [&](const std::string& target) {
    return http::http_get(url->server, prefix + target, kAskTimeout);
  };
  const auto about = rollout::ask_about(get);
  if (!about)
    return Error{about.error().code, about.error().message, text,
                 "is the address right, and does the server run?"};
  std::vector<Finding> findings{
      {.subject = "engine",
       .detail = (about->owner.empty() ? "it does not say what it is" : about->owner) +
                 (about->version.empty() ? "" : " " + about->version)}};
  const auto name = spelt<EngineName>(about->owner);
  if (!name || *name == EngineName::kNative) {
    findings.front().health = Health::kBad;
    findings.front().help =
        "Tandem drives servers of vLLM, SGLang and TensorRT-LLM; others with OpenAI's routes can "
        "judge "
        "(reward.type: judge) and be evaluated (tandem eval --url)";
    return findings;
  }
  const auto health = get("/health");
  if (!health || health->status != 200)
    findings.push_back({"health", Health::kBad, "its /health does not answer 200", "wait for it"});
  findings.push_back(
      {"model", Health::kOk,
       about->model +
           (about->positions ? ", " + std::to_string(*about->positions) + " positions" : ""),
       ""});
  findings.push_back(examine_logprobs(*about));
  bool any_way = false;
  for (const rollout::WeightTransfer transfer : rollout::transfers_to(*name)) {
    auto way = examine_transfer(get, *about, {.engine = *name, .transfer = transfer});
    if (!way) return way.error();
    any_way = any_way || way->health == Health::kOk;
    findings.push_back(*std::move(way));
  }
  if (!any_way)
    for (Finding& finding : findings)
      if (finding.subject.starts_with("weights by")) finding.health = Health::kBad;
  return findings;
}

}  // namespace

cli::VerbHelp DoctorCommand::help() {
  return {.name = "doctor",
          .group = cli::VerbGroup::kHelp,
          .description = "What on this machine, or at a server of an engine, would stop Tandem",
          .examples = {"tandem doctor", "tandem doctor --engine http://127.0.0.1:8000"}};
}

void DoctorCommand::options(cli::Options& options) {
  using enum cli::OutputForm;
  options.add("--engine", engine, "Look at the server of vLLM or SGLang at this URL instead");
  add_output(options, output, {kTable, kJson, kYaml});
}

Result<int> DoctorCommand::run(const cli::VerbContext& context) {
  std::vector<Finding> findings;
  if (engine) {
    auto found = examine_engine(*engine);
    if (!found) return found.error();
    findings = *std::move(found);
  } else {
    findings = cli::examine_machine(cli::tandem_home(), cli::kPortDefault);
  }
  context.console.out << cli::render_findings(findings, output, context.console.columns())
                      << std::flush;
  if (!cli::any_bad(findings)) return 0;
  return Error{ErrorCode::kFailed,
               engine ? "Tandem cannot drive this server as it is"
                      : "this machine cannot run Tandem as it is",
               "", ""};
}

}  // namespace tandem::app
