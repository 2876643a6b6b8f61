// Hosts the exchange of one job in the controller's process, with the job's run files and its
// payload segments with the socket that serves them, which last as long as the exchange does.
//
// PayloadStore is the interface by which an exchange sees the job's payloads; SegmentPayloads
// implements it over segment files. ExchangeDeps has the parts of the process that an
// ExchangeHost uses.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/controller/controller.h"
#include "actors/exchange/exchange.h"
#include "actors/job/job_spec.h"
#include "actors/main/roles/job_prompts.h"
#include "actors/runs/run_files.h"
#include "runtime/actor/system.h"
#include "runtime/link/link.h"
#include "runtime/link/remote.h"
#include "runtime/payload/bulk.h"

namespace tandem::app {

using RouteTo = std::function<link::ParcelSender(const ActorId& peer)>;

// The parts that the process lends to its jobs. They outlive every exchange.
struct ExchangeDeps {
  actor::System& system;
  link::Directory& directory;
  // How frames reach a peer that has a link.
  RouteTo route_to;
  actor::Ref<messages::ExchangeNotices> controller;
  // Called when a peer said something that it may not say: its link ends. The call comes on the
  // exchange's thread.
  std::function<void(const ActorId& peer, const std::string& why)> refuse;
  Epoch epoch;
  Duration node_grace;  // ControllerOptions::node_grace
  std::vector<link::Binding>
      bulk;  // where payloads are served; ports are preferred ones, see open()
};

// The segments of a run as its exchange sees them. The store outlives this object.
class SegmentPayloads final : public exchange::PayloadStore {
 public:
  // `node` is the name that references to payloads of this run carry; others are not held here.
  SegmentPayloads(payload::SegmentStore& store, std::string node)
      : store_(store), node_(std::move(node)), found_below_(store.open_segment()) {}
  // Those that the journal of an exchange which died tells of are live again. The others of its
  // time may follow (recover()), and no segment of theirs is deleted before settle().
  void follow(const exchange::RunFacts& facts);
  bool holds(const wire::PayloadRef& payload) const override;
  void release(const wire::PayloadRef& payload) override;
  Result<std::string> read(const wire::PayloadRef& payload) override;
  bool recover(const wire::PayloadRef& payload) override;
  void settle() override;

 private:
  void reclaim();

  payload::SegmentStore& store_;
  const std::string node_;
  const std::uint32_t found_below_;  // segments of an earlier process have lower numbers
  bool settled_ = true;
};

// Whether the store has the bytes of which the reference speaks. Their number is another's word:
// nothing is allocated for bytes that are not there.
bool has_whole(const payload::SegmentStore& store, const wire::PayloadRef& payload);

class ExchangeHost {
 public:
  // Opens everything, spawns the exchange and exposes its four ports. Where a port of `bulk` is
  // taken, as by another job, any free one is used. Errors leave no actor and no port behind.
  struct Opened {
    actor::Ref<controller::ExchangeControl> exchange;
    std::vector<link::Endpoint> bulk;
  };
  // `before`: an exchange that died is followed.
  static Result<Opened> open(const controller::JobRecord& job, const job::JobSpec& spec,
                             JobPrompts prompts, const ExchangeDeps& deps,
                             std::optional<exchange::Predecessor> before);
  // The job is over: withdraws its ports, stops the exchange, and removes payloads and published
  // weights. The run directory keeps the journal, checkpoints and logs. Files that cannot be
  // removed are left.
  static void close(const std::string& job, const std::string& run_dir, const job::JobSpec& spec,
                    const ExchangeDeps& deps);

 private:
  std::unique_ptr<runs::RunFiles> files_;
  std::unique_ptr<payload::SegmentStore> segments_;
  std::unique_ptr<SegmentPayloads> payload_store_;
  std::unique_ptr<payload::BulkServer> bulk_;
};

}  // namespace tandem::app
