// What the controller's process keeps for one job: run files, payload segments and their socket,
// and the exchange that works with them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/controller/controller.h"
#include "actors/controller/run_files.h"
#include "actors/exchange/exchange.h"
#include "actors/main/job/job_spec.h"
#include "runtime/actor/system.h"
#include "runtime/net/bulk.h"
#include "runtime/net/link.h"
#include "runtime/net/remote.h"

namespace tandem::cli {

using RouteTo = std::function<runtime::ParcelSender(const runtime::PeerId& peer)>;

struct JobHomeJoints {
  runtime::System& system;
  runtime::Directory& directory;
  RouteTo route_to;
  runtime::Ref<actors::ExchangeNotices> controller;
  // This peer said something that it may not: its link ends.
  std::function<void(const runtime::PeerId& peer, const std::string& why)> refuse;
  Epoch epoch;
  std::vector<runtime::Binding> bulk;  // where payloads are served
};

// The segments of a run as the exchange sees them.
class SegmentShelf final : public actors::PayloadShelf {
 public:
  // `node` is what the payload socket of the run names in its references.
  SegmentShelf(runtime::SegmentStore& store, std::string node)
      : store_(store), node_(std::move(node)) {}
  bool holds(const runtime::PayloadRef& payload) const override;
  void release(const runtime::PayloadRef& payload) override;
  Result<std::string> read(const runtime::PayloadRef& payload) override;

 private:
  runtime::SegmentStore& store_;
  const std::string node_;
};

class JobHome {
 public:
  // Opens everything and spawns the exchange. The home lives as long as the exchange does.
  struct Opened {
    runtime::Ref<actors::ExchangeControl> exchange;
    std::vector<runtime::Endpoint> bulk;
  };
  static Result<Opened> open(const actors::JobRecord& job, const JobHomeJoints& joints);
  // The job is over: its ports go, the exchange ends, payloads and published weights are removed.
  static void close(const std::string& job, const std::string& run_dir, const JobSpec& spec,
                    const JobHomeJoints& joints);

 private:
  std::unique_ptr<actors::RunFiles> files_;
  std::unique_ptr<runtime::SegmentStore> segments_;
  std::unique_ptr<SegmentShelf> shelf_;
  std::unique_ptr<runtime::BulkServer> bulk_;
};

// The job file as a run keeps it.
Result<JobSpec> parse_kept_job(const std::string& yaml, const std::string& run_dir);

}  // namespace tandem::cli
