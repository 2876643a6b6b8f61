// Values are checked where they are parsed, so that a mistake has exit code 64 and nothing is
// started.
#include "actors/cli/shared_options.h"

#include <utility>

namespace tandem::cli {
namespace {

constexpr const char* kPortHelp =
    "First of three ports: nodes dial PORT, payloads travel by PORT+1, and HTTP, which commands "
    "and --address use, is PORT+2. ";

// Bytes; a node with less has no room for one rank (kRankProcessBytes in planned_model.h).
constexpr std::int64_t kMemoryOfferMin = std::int64_t{64} << 20;
constexpr const char* kSizeExample = "as in 8GiB or 512MiB";

// The bytes of --memory; nullopt for an empty text.
Result<std::optional<std::int64_t>> memory_offer(const std::string& memory) {
  if (memory.empty()) return std::optional<std::int64_t>();
  const std::optional<std::int64_t> bytes = parse_bytes(memory);
  if (!bytes) return usage_error("`--memory " + memory + "` is not a size", kSizeExample);
  if (*bytes < kMemoryOfferMin)
    return usage_error("`--memory " + memory + "` is " + std::to_string(*bytes) +
                           " bytes, and a node offers at least 64 MiB",
                       kSizeExample);
  return bytes;
}

}  // namespace

void add_output(Options& options, OutputForm& form, std::initializer_list<OutputForm> forms) {
  std::vector<std::string> names;
  for (const OutputForm one : forms) names.emplace_back(spelling(one));
  options.one_of("-o,--output", form, forms, "Output form").value(joined(names, "|"));
}

Option add_job(Options& options, std::optional<std::string>& job) {
  return options.add("-j,--job", job, "The job, where an actor's name alone is ambiguous")
      .value("JOB");
}

void add_time(Options& options, const std::string& name, std::optional<double>& seconds,
              const std::string& description) {
  const auto take = [name, &seconds](const std::string& text) -> Result<void> {
    const auto time = parse_time(name, text);
    if (!time) return time.error();
    seconds = *time;
    return {};
  };
  options.read(name, take, description).value("TIME");
}

Option add_object(Options& options, const std::string& name,
                  std::function<Result<void>(ObjectName)> take, const std::string& description) {
  const auto parse = [take = std::move(take)](const std::vector<std::string>& words) {
    auto object = parse_object(words);
    return object ? take(std::move(*object)) : Result<void>(object.error());
  };
  return options.read_words(name, parse, description).required().words(1, 2);
}

void add_job_file(Options& options, std::optional<std::filesystem::path>& job,
                  std::optional<std::filesystem::path>& resume, std::vector<std::string>& sets) {
  options.add("JOB.yaml", job, "The job file; with --resume, else the run's own job.yaml");
  options
      .add("--resume", resume,
           "Continue a run, given by its directory or id, from its last checkpoint")
      .value("RUN_DIR");
  options.check([&job, &resume]() -> Result<void> {
    if (job || resume) return {};
    return usage_error("JOB.yaml is required",
                       "a job file, or --resume RUN_DIR for that run's own");
  });
  add_sets(options, sets);
}

void add_sets(Options& options, std::vector<std::string>& sets) {
  options
      .add("--set", sets,
           "Replace one key; VALUE is YAML, relative paths in it start here; the last wins")
      .value("KEY=VALUE")
      .one_each();
}

void add_sweep(Options& options, std::vector<std::string>& sets, std::vector<std::string>& sweeps,
               const std::optional<std::filesystem::path>& resume, Settings& given) {
  options
      .add("--sweep", sweeps,
           "A run for each of these values of a key, all of one group; with several options one "
           "for each combination. --set of several values means the same where the key is a "
           "number, a truth value or one of some words")
      .value("KEY=V1,V2,…")
      .one_each();
  options.check([&]() -> Result<void> {
    given = with_sweeps_found({std::move(sets), std::move(sweeps)});
    if (given.sweeps.empty() || !resume) return {};
    return usage_error("a sweep (" + given.sweeps.front() + ") and --resume exclude each other",
                       "a sweep makes new runs; each of them can be resumed");
  });
}

void add_model(Options& options, std::filesystem::path& model) {
  options.add("MODEL_DIR", model, "A Hugging Face model directory").required();
}

void add_port(Options& options, int& port) {
  // The two ports behind it must exist too.
  options
      .add("--port", port,
           kPortHelp + std::string(port == 0 ? "0, as without it: any free ones"
                                             : "0: any free ones; without it 7420, and HTTP 7422"))
      .value("PORT")
      .between(0, 65533);
}

void add_node_grace(Options& options, std::int64_t& seconds) {
  options
      .add("--node-grace-s", seconds,
           "For how many seconds a host that is cut off, or whose controller is away, keeps its "
           "actors at work and is waited for; 300 without it")
      .value("N")
      .between(kNodeGraceMinS, kNodeGraceMaxS);
}

void add_health_port(Options& options, std::optional<std::int64_t>& port) {
  options
      .add("--health-port", port,
           "Answer /healthz and /readyz at --bind and this port, for whoever asks, and nothing "
           "else")
      .value("PORT")
      .between(std::int64_t{1}, std::int64_t{65535});
}

void add_plaintext_gang(Options& options, bool& allowed) {
  options.flag("--allow-plaintext-gang", allowed,
               "Let the ranks of a learner on several hosts exchange gradients unencrypted, which "
               "NCCL between hosts needs; only where the network between them is trusted");
}

void add_ports(Options& options, link::PortRange& ports) {
  const auto take = [&ports](const std::string& text) -> Result<void> {
    const auto range = link::parse_port_range(text);
    if (!range) return usage_error(range.error().message, range.error().help);
    ports = *range;
    return {};
  };
  options
      .read("--ports", take,
            "Where no port is named, listen for other hosts at these alone, which a firewall can "
            "open, as in 7420-7499: payloads, weights, and the ranks of a learner; else at any")
      .value("LOW-HIGH");
}

void add_listen_options(Options& options, ListenOptions& listen) {
  add_port(options, listen.port);
  options
      .add("--bind", listen.bind,
           "The address of this machine at which nodes of other hosts reach the controller; "
           "127.0.0.1 without it. HTTP stays on 127.0.0.1")
      .value("ADDRESS")
      .refuse_by(not_an_address);
  options
      .add("--allow-host", listen.allow_hosts,
           "A name, besides localhost, by which HTTP clients may call this controller; "
           "repeatable")
      .value("NAME")
      .one_each();
  add_ports(options, listen.ports);
  add_node_grace(options, listen.node_grace_s);
  add_health_port(options, listen.health_port);
  add_plaintext_gang(options, listen.plaintext_gang);
  options.flag("--metrics-without-token", listen.metrics_without_token,
               "Serve /metrics to whoever can connect");
  const auto take_prices = [&listen](const std::string& text) -> Result<void> {
    auto prices = scheduler::parse_pricing(text);
    if (!prices) return prices.error();
    listen.pricing = *std::move(prices);
    return {};
  };
  options
      .read("--pricing", take_prices,
            "What the devices cost an hour, for jobs without a section `pricing`: "
            "rollout=2.10,learner=4.00, and ,currency=EUR where it is not USD")
      .value("PRICES");
}

void add_memory(Options& options, std::optional<std::int64_t>& bytes) {
  const auto take = [&bytes](const std::string& text) -> Result<void> {
    const auto offer = memory_offer(text);
    if (!offer) return offer.error();
    bytes = *offer;
    return {};
  };
  options
      .read("--memory", take,
            "Memory that the node offers, if the machine has it; else what the machine and "
            "its cgroup leave")
      .value("SIZE");
}

}  // namespace tandem::cli
