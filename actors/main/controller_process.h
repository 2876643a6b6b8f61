// The controller's process: the controller, an exchange per job, the link server that agents and
// ranks dial, the payload socket of each job, and the HTTP API. `tandem controller` and `tandem up`
// run one on its own; `tandem run` runs one in itself, with an agent beside it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/controller/controller.h"
#include "actors/main/job/job_spec.h"
#include "actors/main/this_node.h"
#include "runtime/net/endpoint.h"

namespace tandem::cli {

struct ControllerOptions {
  int port = 0;                           // 0: any; payloads and HTTP on the next two
  std::string bind = runtime::kLoopback;  // where nodes and payloads of other hosts come in
  std::filesystem::path home;             // runs/ is made below it
  // The cluster of this home: holds its lock, journals to controller.sqlite, writes
  // controller.json. A `tandem run` has none of these and leaves only its run directory.
  bool of_home = false;
  std::vector<std::string> allow_hosts;  // names beside this machine's that a Host header may have
  bool metrics_without_token = false;
};

class ControllerProcess {
 public:
  // Errors: a port is busy, the home cannot be written, another controller has it (kFailed); the
  // home or its token is not this user's alone (kUnauthorised).
  static Result<std::unique_ptr<ControllerProcess>> start(const ControllerOptions& options);
  ~ControllerProcess();  // stop()

  // Where agents and ranks dial: a Unix socket, and for other hosts' TCP with keys where it is
  // open.
  const std::vector<runtime::Endpoint>& control() const;
  runtime::Endpoint http() const;
  // An address that opens the page once.
  std::string page_address() const;
  const runtime::Ref<actors::Controller::Inbox>& controller() const;

  // This process's own node. Errors: the machine's resources cannot be read.
  Result<void> start_agent(const NodeOffer& offer);
  void stop();  // ends actors, processes and sockets, in that order; again is nothing

 private:
  struct Parts;
  explicit ControllerProcess(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tandem::cli
