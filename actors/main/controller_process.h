// The controller's process: the controller actor, an exchange per job, the link server that agents
// and ranks dial, the payload socket of each job, and the HTTP API.
//
//   port      who comes there
//   PORT      agents and ranks, by links (and a Unix socket for those of this host)
//   PORT + 1  ranks, for payloads; a second job gets any free port (of ControllerOptions::ports)
//   PORT + 2  HTTP, on the loopback address only
//   any other probes of /healthz and /readyz, on the address for other hosts, where a port is named
//
// Where any free ports will do, those of a controller of this state folder that died are tried
// first: whoever spoke with that one then finds this one. Its jobs are taken up before this one
// listens.
//
// An object is made, used and stopped by one thread; the references that it returns stay valid as
// long as it does.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/controller/controller.h"
#include "actors/main/background.h"
#include "actors/main/roles/job_prompts.h"
#include "runtime/link/endpoint.h"
#include "runtime/link/port_range.h"
#include "scheduler/fleet/cost.h"

namespace tandem::app {

// A job that its user's process has checked, whose data it has read, and which it submits by HTTP
// like any other: nobody reads the data again.
struct ExpectedJob {
  std::string yaml, resume;  // by which the submission is known (api::SubmittedJob)
  controller::JobShape shape;
  std::optional<JobPrompts> prompts;
};

struct ControllerOptions {
  int port = 0;                        // 0: any free ones
  std::string bind = link::kLoopback;  // where nodes and payloads of other hosts arrive
  link::PortRange ports = {};          // at `bind`; with one, PORT + 1 counts only if it is in it
  std::filesystem::path home;          // TANDEM_HOME: runs/ is made below it
  // The state folder, whose lock the controller holds, with controller.sqlite and controller.json.
  // Other hosts can join the cluster of a `tandem run` only where `bind` is not the loopback.
  ClusterFolder cluster;
  // The words that start such a controller again, written into controller.json.
  std::vector<std::string> words;
  std::vector<std::string> allow_hosts;  // further names that a Host header may have
  // For so long a host that hears of no controller keeps its ranks.
  Duration node_grace = node::kNodeGraceDefault;
  std::optional<std::int64_t> health_port = {};  // for probes; else there is no such server
  bool plaintext_gang = false;                   // ClusterRules::plaintext_gang
  // Serve /metrics to clients without the token.
  bool metrics_without_token = false;
  std::optional<scheduler::Pricing> pricing = {};  // of submitted jobs that have none
  std::optional<ExpectedJob> expected = {};
};

class ControllerProcess {
 public:
  // Returns once all sockets listen. Errors: a port is busy, `home` cannot be written, or another
  // controller holds its lock (kFailed); `home` belongs to another user, or others can read its
  // token (kUnauthorised).
  static Result<std::unique_ptr<ControllerProcess>> start(ControllerOptions options);
  ~ControllerProcess();  // stop()

  // Where agents and ranks dial: a Unix socket first; then TCP with keys, where other hosts may
  // join.
  const std::vector<link::Endpoint>& control() const;
  link::Endpoint http() const;
  // An address that opens the web page once. Each call makes another key.
  std::string page_address() const;
  const actor::Ref<controller::Controller::Inbox>& controller() const;
  // Whether a node of this host whose process has this pid has a link.
  bool has_agent(pid_t pid) const;
  // Its process has ended: the controller hears it before the link of that agent is given up.
  void agent_ended(pid_t pid);
  // Kills this process if a handler hangs; call it several times a second (turn_watch.h).
  void end_if_hung();
  void stop();  // HTTP, links, then actors; a second call does nothing

 private:
  struct Parts;
  explicit ControllerProcess(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tandem::app
