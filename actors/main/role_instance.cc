// The entry of the role builds everything (roles/role_entry.h). `begin` keeps the first message to
// its actor until the controller has heard RankReady.
#include "actors/main/role_instance.h"

#include <cstdlib>
#include <utility>

#include "actors/main/roles/registry.h"

namespace tandem::app {

RoleInstance::RoleInstance(actor::System& system, link::Directory& directory,
                           link::IoThread& bulk_io, RankNetwork network, EngineDevice& device,
                           link::ParcelSender to_controller, link::Progress& progress)
    : resources_{.system = system,
                 .directory = directory,
                 .bulk_io = bulk_io,
                 .network = std::move(network),
                 .device = device,
                 .to_controller = std::move(to_controller),
                 .progress = progress} {}

Result<void> RoleInstance::build(const messages::StartRank& start, const job::JobSpec& job,
                                 const actor::Ref<messages::RankEvents>& controller) {
  const RoleEntry* role = find_role(start.role);
  if (!role) return Error{ErrorCode::kInvalid, "this version has no role " + name(start.role)};
  auto payloads = payload_dial(start.bulk_endpoints, resources_.network.controller);
  if (!payloads) return payloads.error();
  resources_.bulk = std::make_unique<payload::BulkClient>(resources_.bulk_io, std::move(*payloads));
  auto built = role->build(resources_, start, job, controller);
  if (!built) return built.error();
  built_ = std::move(*built);
  return {};
}

void RoleInstance::begin() {
  built_.begin();
  resources_.begin_broadcasts();
}

bool RoleInstance::meet_again() {
  resources_.bulk->send_anew();
  broadcasts_have_met_ = broadcasts_have_met_ || resources_.meet_again_in_broadcasts();
  if (!broadcasts_have_met_ || (built_.meet_again && !built_.meet_again())) return false;
  broadcasts_have_met_ = false;
  return true;
}

void RoleInstance::close(int exit_status) {
  if (built_.waits && *built_.waits) std::_Exit(exit_status);  // it owns nothing that others share
}

void RoleInstance::destroy() { resources_.bulk.reset(); }

}  // namespace tandem::app
