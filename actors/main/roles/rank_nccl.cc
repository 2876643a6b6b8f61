#include "actors/main/roles/rank_nccl.h"

#include <utility>

#include "actors/rank/rank_failure.h"
#include "runtime/base/log.h"
#include "runtime/device/cuda_module.h"

namespace tandem::app {
namespace {

// The report of a rank is one sentence, so that the help becomes part of it: it is meant for the
// person who set the host up.
Error with_help(Error error) {
  if (!error.help.empty()) error.message += "; " + std::exchange(error.help, {});
  return rank::of_input(std::move(error));
}

}  // namespace

Result<std::unique_ptr<RankNccl>> RankNccl::open() {
  const Result<const device::CudaModule*>& module = device::cuda_module();
  if (!module) return with_help(module.error());
  Result<collective::NcclApi> api = collective::open_nccl();
  if (!api) return with_help(api.error());
  log::info("event=nccl_opened path=\"{}\" version={}", api->path,
            collective::nccl_version_text(api->version));
  collective::NcclProcess process{.api = *std::move(api),
                                  .streams = {.create_event = (*module)->create_event,
                                              .record_event = (*module)->record_event,
                                              .event_done = (*module)->event_done,
                                              .destroy_event = (*module)->destroy_event}};
  return std::make_unique<RankNccl>(std::move(process));
}

RankNccl::RankNccl(collective::NcclProcess process) : process_(std::move(process)) {
  // process_ gets a pointer into this object, which is therefore neither copied nor moved.
  process_.thread = &thread_;
}

}  // namespace tandem::app
