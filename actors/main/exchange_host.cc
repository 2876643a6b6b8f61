// Wires an exchange. Every port that the exchange offers to ranks has a door
// (actors/doors/doors.h), which refuses messages that do not speak for their sender.
// References to ranks are made from the name and incarnation of their link, so that a message to an
// incarnation that has ended reaches nobody.
#include "actors/main/exchange_host.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "actors/doors/doors.h"
#include "actors/job/load_job.h"
#include "actors/job/reading_notice.h"
#include "actors/main/rank_process.h"
#include "actors/main/roles/role_config.h"
#include "runtime/base/log.h"
#include "runtime/weights/weight_family.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr payload::SegmentLimits kSegmentLimits{.segment_bytes_max = 16ull << 20};

}  // namespace

bool SegmentPayloads::holds(const wire::PayloadRef& payload) const {
  return payload.node == node_ && store_.holds(payload);
}

void SegmentPayloads::release(const wire::PayloadRef& payload) {
  if (!store_.release(payload))
    log::error("event=payload_released_twice payload={}/{}", payload.segment, payload.offset);
  // The open segment still takes payloads, and is kept.
  if (const auto done = store_.reclaim(store_.open_segment()); !done)
    log::warn("event=reclaim_failed message=\"{}\"", done.error().message);
}

Result<std::string> SegmentPayloads::read(const wire::PayloadRef& payload) {
  std::string bytes(payload.bytes, '\0');
  const auto read = store_.read({payload.segment, payload.offset, payload.bytes}, 0,
                                std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
  if (!read) return read.error();
  return bytes;
}

Result<job::JobSpec> parse_kept_job(const std::string& yaml, const std::string& run_dir) {
  auto loaded = job::parse_job({.yaml = yaml,
                                .origin = "job.yaml",
                                .base = run_dir,
                                .set_base = run_dir,
                                .sets = {},
                                .files = job::Files::kUnchecked});
  if (!loaded) return loaded.error();
  return std::move(loaded->spec);
}

Result<ExchangeHost::Opened> ExchangeHost::open(const controller::JobRecord& job,
                                                const job::JobSpec& spec,
                                                const ExchangeSurroundings& surroundings) {
  const bool resume = job.shape.resume_dir.has_value();
  const auto tell = job::tell_by([&job](const std::string& notice) {
    log::info("event=reading_data job={} progress=\"{}\"", job.id, notice);
  });
  auto config = exchange_config(spec, {job.id, job.run_dir}, resume, tell);
  if (!config) return config.error();
  config->epoch = surroundings.epoch;

  // Shared with the factory of the exchange below, which is the owner that lasts.
  auto host = std::make_shared<ExchangeHost>();
  auto files = runs::RunFiles::open(
      job.run_dir, spec.tensorboard ? runs::EventFiles::kTensorboard : runs::EventFiles::kNone);
  if (!files) return files.error();
  host->files_ = std::move(*files);
  auto segments = payload::open_file_segments(job.run_dir + "/payload", kSegmentLimits);
  if (!segments) return segments.error();
  host->segments_ = std::move(*segments);
  host->payload_store_ = std::make_unique<SegmentPayloads>(*host->segments_, job.id);
  auto bulk = payload::BulkServer::listen(surroundings.bulk, job.id, *host->segments_);
  if (!bulk) {  // the preferred port is another job's
    std::vector<link::Binding> any_port = surroundings.bulk;
    for (link::Binding& binding : any_port) binding.at.port = 0;
    bulk = payload::BulkServer::listen(any_port, job.id, *host->segments_);
  }
  if (!bulk) return bulk.error();
  host->bulk_ = std::move(*bulk);

  // Makes a function that gives a reference to the actor behind `port` of the rank with that
  // address.
  const auto dial = [&surroundings]<class Inbox>(const char* port = kRolePort) {
    return [directory = &surroundings.directory, route_to = surroundings.route_to,
            port](const actor::Address& address) {
      return directory->remote<Inbox>({port, {}}, route_to({address.name, address.incarnation}));
    };
  };
  const exchange::ExchangeLinks links{
      .rollout = dial.operator()<messages::RolloutInbox>(),
      .reward = dial.operator()<messages::RewardInbox>(),
      .learner = dial.operator()<messages::LearnerInbox>(),
      .broadcast = dial.operator()<messages::BroadcastInbox>(kBroadcastPort),
      .controller = surroundings.controller,
      .refuse = [refuse = surroundings.refuse](const actor::Address& who, const std::string& why) {
        refuse({who.name, who.incarnation}, why);
      }};
  const std::vector<link::Endpoint> endpoints = host->bulk_->endpoints();
  const auto exchange = surroundings.system.spawn<exchange::Exchange>(
      messages::exchange_name(job.id), [host, links, config = std::move(*config)] {
        return std::make_unique<exchange::Exchange>(config, links, *host->files_,
                                                    *host->payload_store_);
      });
  surroundings.directory.expose(rollout_port(job.id),
                                actor::narrow<messages::RolloutEvents>(exchange),
                                doors::rollout_door(job.id));
  surroundings.directory.expose(reward_port(job.id),
                                actor::narrow<messages::RewardEvents>(exchange),
                                doors::reward_door(job.id));
  surroundings.directory.expose(learner_port(job.id),
                                actor::narrow<messages::LearnerEvents>(exchange),
                                doors::learner_door(job.id));
  surroundings.directory.expose(broadcast_port(job.id),
                                actor::narrow<messages::BroadcastEvents>(exchange),
                                doors::broadcast_door(job.id));
  return Opened{actor::narrow<controller::ExchangeControl>(exchange), endpoints};
}

void ExchangeHost::close(const std::string& job, const std::string& run_dir,
                         const job::JobSpec& spec, const ExchangeSurroundings& surroundings) {
  for (const std::string& port :
       {rollout_port(job), reward_port(job), learner_port(job), broadcast_port(job)})
    surroundings.directory.withdraw(port);
  // The exchange ends after the ports: no message of a rank reaches an exchange that ends.
  surroundings.system.stop(messages::exchange_name(job));
  const auto family = weights_family(spec, {job, run_dir});
  if (const auto removed = weights::remove_weights(family); !removed)
    log::warn("event=weights_left message=\"{}\"", removed.error().message);
  std::error_code ignored;  // what cannot be removed is only disk space
  fs::remove_all(run_dir + "/payload", ignored);
  fs::remove_all(run_dir + "/weights", ignored);
}

}  // namespace tandem::app
