// Options that several verbs share, so that they have the same names, texts and checks everywhere.
// The values outlive `options`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/arguments.h"
#include "actors/cli/kinds.h"
#include "actors/cli/options.h"
#include "actors/cli/sweep.h"
#include "runtime/link/port_range.h"
#include "runtime/node/agent_messages.h"
#include "scheduler/fleet/cost.h"

namespace tandem::cli {

// Declares -o, which takes these forms.
void add_output(Options& options, OutputForm& form, std::initializer_list<OutputForm> forms);
// -j: the job that is meant, or to which a list is limited.
Option add_job(Options& options, std::optional<std::string>& job);
// Declares an option that takes a time, as in 90, 90s or 5m.
void add_time(Options& options, const std::string& name, std::optional<double>& seconds,
              const std::string& description);
// The argument, of one or two words, that names an object, as parse_object() reads it.
Option add_object(Options& options, const std::string& name,
                  std::function<Result<void>(ObjectName)> take, const std::string& description);

// Declares what `run` and `submit` take: JOB.yaml, --resume or both, of which one must be given;
// and --set.
void add_job_file(Options& options, std::optional<std::filesystem::path>& job,
                  std::optional<std::filesystem::path>& resume, std::vector<std::string>& sets);
void add_sets(Options& options, std::vector<std::string>& sets);
// --sweep, which --resume excludes. `given` gets what both options mean, once the line is parsed.
void add_sweep(Options& options, std::vector<std::string>& sets, std::vector<std::string>& sweeps,
               const std::optional<std::filesystem::path>& resume, Settings& given);
// Declares the argument MODEL_DIR.
void add_model(Options& options, std::filesystem::path& model);

// Below, a host would end its ranks as soon as its silence is noticed.
inline constexpr std::int64_t kNodeGraceMinS = 10, kNodeGraceMaxS = 86'400;
inline constexpr int kPortDefault = 7420;  // payloads and HTTP use the next two

// Where a controller listens, who may use its HTTP API besides clients on this machine that have
// the token, how long hosts keep their ranks without it, and what the cluster's devices cost.
struct ListenOptions {
  int port = kPortDefault;         // 0: any
  std::string bind = "127.0.0.1";  // where nodes of other hosts join
  std::vector<std::string> allow_hosts;
  bool metrics_without_token = false;
  std::int64_t node_grace_s = node::kNodeGraceDefault / std::chrono::seconds(1);
  std::optional<std::int64_t>
      health_port;  // where `bind` answers /healthz and /readyz, and nothing else
  std::optional<scheduler::Pricing> pricing;  // of jobs that have none of their own
  link::PortRange ports;                      // at `bind`, for all that has no port of its own
  bool plaintext_gang = false;                // the network between hosts is trusted
};
void add_listen_options(Options& options, ListenOptions& listen);
// Of these, the ones that every verb has which starts a controller.
void add_port(Options& options, int& port);
void add_node_grace(Options& options, std::int64_t& seconds);
void add_health_port(Options& options, std::optional<std::int64_t>& port);
// --allow-plaintext-gang of every verb that starts a controller.
void add_plaintext_gang(Options& options, bool& allowed);
// --ports of every verb that starts a controller or a node.
void add_ports(Options& options, link::PortRange& ports);

// --memory of every verb that starts a node: the bytes that it offers.
void add_memory(Options& options, std::optional<std::int64_t>& bytes);

}  // namespace tandem::cli
