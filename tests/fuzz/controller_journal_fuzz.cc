// The changes that a controller has written down for the next one, which a disk may have damaged:
// bodies of rows of the table `state` of `controller.sqlite`, one after the other. Checked: what
// decodes, encodes to bytes that decode to the same; whatever the events, the fewest events of the
// state that they give are a state's that is equal (CC-5), also where they come behind all others;
// a controller begins with that state, and can leave all of its jobs.
#include "actors/controller/controller_core.h"
#include "actors/controller/durable.h"
#include "runtime/base/check.h"
#include "runtime/wire/codec.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {
namespace {

using controller::DurableEvent;
using controller::DurableState;

void read_row(std::string_view body, DurableState& state) {
  const auto event = wire::decode<DurableEvent>(body);
  if (!event) {
    CHECK(event.error().code == ErrorCode::kInvalid && !event.error().message.empty());
    return;
  }
  const std::string encoded = wire::encode(*event);
  const auto again = wire::decode<DurableEvent>(encoded);
  CHECK(again.has_value() && wire::encode(*again) == encoded);
  CHECK(!kind_of(*event).empty());
  (void)subject_of(*event);
  state.apply(*event);
}

}  // namespace

void controller_journal(std::string_view input) {
  DurableState state;
  for (Pieces rows(input); !rows.empty();) read_row(rows.bytes(), state);
  DurableState fewest, behind = state;
  for (const DurableEvent& event : state.events()) {
    fewest.apply(event);
    behind.apply(event);
  }
  CHECK(fewest == state && fewest.hash() == state.hash());
  CHECK(behind == state);
  controller::TakeUpJobs taken;
  for (const controller::JobTaken& job : state.jobs())
    taken.left.emplace(job.job, "its file is gone");
  controller::ControllerCore core(1, state);
  CHECK(core.step(taken, Time{}).has_value());
  for (const controller::JobTaken& job : state.jobs())
    CHECK(core.step(controller::CancelJob{job.job}, Time{}).has_value() ||
          state.outcome(job.job) != nullptr);
  CHECK(core.durable().jobs().empty() && core.durable().actors().empty());
}

}  // namespace tandem::fuzz
