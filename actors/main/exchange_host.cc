// Wires an exchange. Every port that the exchange offers to ranks has a door
// (actors/doors/exchange_door.h), which refuses messages that do not speak for their sender.
// A reference to a rank names one incarnation of it, so that a message to an incarnation that has
// ended reaches nobody.
#include "actors/main/exchange_host.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "actors/doors/exchange_door.h"
#include "actors/exchange/follow.h"
#include "actors/job/job_json.h"
#include "actors/main/roles/role_config.h"
#include "actors/messages/peers.h"
#include "runtime/base/digest.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/weights/weight_family.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr payload::SegmentLimits kSegmentLimits{.segment_bytes_max = 16ull << 20};

runs::Trackers trackers_of(const job::JobSpec& job, const std::string& run_id) {
  runs::Trackers trackers{.tensorboard = job::has_tracker(job, job::TrackerName::kTensorboard)};
  if (!job::has_tracker(job, job::TrackerName::kWandb)) return trackers;
  const job::TrackingSpec& told = job.tracking;
  trackers.wandb = runs::WandbRun{.name = told.run_name.value_or(run_id),
                                  .project = told.project.value_or(""),
                                  .entity = told.entity.value_or(""),
                                  .group = told.group.value_or(""),
                                  .notes = told.notes.value_or(""),
                                  .tags = told.tags,
                                  .config = dump_json(job::job_json(job))};
  return trackers;
}

// The places where the exchange before this one listened, each in place of one of its kind.
std::vector<link::Binding> former_places(std::vector<link::Binding> places,
                                         const std::vector<std::string>& former) {
  for (const std::string& text : former) {
    const auto at = link::parse_endpoint(text);
    for (link::Binding& place : places)
      if (at && at->is_local() == place.at.is_local()) {
        if (at->is_local())
          place.at = *at;
        else
          place.at.port = at->port;
      }
  }
  return places;
}

}  // namespace

bool has_whole(const payload::SegmentStore& store, const wire::PayloadRef& payload) {
  const payload::Extent at{payload.segment, payload.offset, payload.bytes};
  if (payload.bytes == 0 || !store.read(at, 0, {})) return false;
  std::string bytes(payload.bytes, '\0');
  const auto to = std::as_writable_bytes(std::span(bytes.data(), bytes.size()));
  return store.read(at, 0, to) && checksum64(to) == payload.checksum;
}

bool SegmentPayloads::holds(const wire::PayloadRef& payload) const {
  return payload.node == node_ && store_.holds(payload);
}

void SegmentPayloads::release(const wire::PayloadRef& payload) {
  if (!store_.release(payload))
    log::error("event=payload_released_twice payload={}/{}", payload.segment, payload.offset);
  reclaim();
}

void SegmentPayloads::follow(const exchange::RunFacts& facts) {
  settled_ = false;
  for (const auto& [group, entry] : facts.flow.entries)
    if (entry.header) store_.retain(entry.header->payload);
}

bool SegmentPayloads::recover(const wire::PayloadRef& payload) {
  if (settled_ || payload.node != node_ || payload.segment >= found_below_ || payload.bytes == 0)
    return false;
  if (!has_whole(store_, payload)) return false;
  store_.retain(payload);
  return true;
}

void SegmentPayloads::settle() {
  settled_ = true;
  reclaim();
}

void SegmentPayloads::reclaim() {
  if (!settled_) return;
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

Result<ExchangeHost::Opened> ExchangeHost::open(const controller::JobRecord& job,
                                                const job::JobSpec& spec, JobPrompts prompts,
                                                const ExchangeDeps& deps,
                                                std::optional<exchange::Predecessor> before) {
  const bool resume = job.shape.resume_dir.has_value();
  auto config = exchange_config(spec, {job.id, job.run_dir}, resume, std::move(prompts));
  config.epoch = deps.epoch;
  config.away_max = deps.node_grace + 2 * link::kGraceMargin;
  if (before) config.resume = exchange::resumes(before->state.facts(), before->has_earlier_attempt);

  // Shared with the factory of the exchange below, which is the owner that lasts.
  auto host = std::make_shared<ExchangeHost>();
  auto files = runs::RunFiles::open(job.run_dir, trackers_of(spec, job.id), config.file_limits);
  if (!files) return files.error();
  host->files_ = std::move(*files);
  auto segments = payload::open_file_segments(job.run_dir + "/payload", kSegmentLimits);
  if (!segments) return segments.error();
  host->segments_ = std::move(*segments);
  host->payload_store_ = std::make_unique<SegmentPayloads>(*host->segments_, job.id);
  if (before) host->payload_store_->follow(before->state.facts());
  // Ranks that have outlived an exchange know where it listened.
  const std::vector<link::Binding> places = former_places(deps.bulk, job.bulk);
  auto bulk = payload::BulkServer::listen(places, job.id, *host->segments_);
  if (!bulk) {  // the preferred port is another job's
    std::vector<link::Binding> any_port = deps.bulk;
    for (link::Binding& binding : any_port) binding.at.port = 0;
    bulk = payload::BulkServer::listen(any_port, job.id, *host->segments_);
  }
  if (!bulk) return bulk.error();
  host->bulk_ = std::move(*bulk);

  const auto dial = [directory = &deps.directory,
                     route_to = deps.route_to]<class Peer>(const ActorId& who) {
    return directory->remote<typename Peer::Inbox>({Peer::kPort, {}}, route_to(who));
  };
  const exchange::ExchangeLinks links{
      .dials = exchange::dials(dial), .controller = deps.controller, .refuse = deps.refuse};
  const std::vector<link::Endpoint> endpoints = host->bulk_->endpoints();
  const auto exchange = deps.system.spawn<exchange::Exchange>(
      messages::exchange_name(job.id),
      [host, links, config = std::move(config), before = std::move(before)] {
        if (before)
          return std::make_unique<exchange::Exchange>(config, links, *host->files_,
                                                      *host->payload_store_, *before, steady_now());
        return std::make_unique<exchange::Exchange>(config, links, *host->files_,
                                                    *host->payload_store_);
      });
  CHECK(exchange.tell(exchange::Begin{}) == actor::Delivery::kAccepted);
  messages::for_each_peer([&]<class Peer> {
    deps.directory.expose(messages::exchange_port<Peer>(job.id),
                          actor::narrow<typename Peer::Events>(exchange),
                          doors::exchange_door<Peer>(job.id));
  });
  return Opened{actor::narrow<controller::ExchangeControl>(exchange), endpoints};
}

void ExchangeHost::close(const std::string& job, const std::string& run_dir,
                         const job::JobSpec& spec, const ExchangeDeps& deps) {
  messages::for_each_peer(
      [&]<class Peer> { deps.directory.withdraw(messages::exchange_port<Peer>(job)); });
  // The exchange ends after the ports: no message of a rank reaches an exchange that ends.
  deps.system.stop(messages::exchange_name(job));
  const auto family = weights_family(spec, {job, run_dir});
  if (const auto removed = weights::remove_weights(family); !removed)
    log::warn("event=weights_left message=\"{}\"", removed.error().message);
  std::error_code ignored;  // what cannot be removed is only disk space
  fs::remove_all(run_dir + "/payload", ignored);
  fs::remove_all(run_dir + "/weights", ignored);
}

}  // namespace tandem::app
