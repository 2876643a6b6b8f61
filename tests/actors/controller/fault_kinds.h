// The table of the kinds of faults: a row for each, with its name, what it does and how.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tests/actors/controller/fault.h"
#include "tests/actors/controller/simulation.h"

namespace tandem::controller {

// What a fault strikes: the cluster of one job.
struct Stricken {
  SimulatedCluster& cluster;
  std::string job;
};

struct FaultRow {
  FaultKind kind;
  const char* name;
  const char* what;  // one sentence
  std::uint64_t lasts_max_ms;
  bool of_controller;    // it may come before any effect of the controller's process
  const char* may_fail;  // the job may fail for a reason that has this text; null: it may not
  // False: there was nothing to strike.
  bool (*strike)(const Stricken&, const Fault&);
};

const std::array<FaultRow, kFaultKinds>& fault_rows();
const FaultRow& row_of(FaultKind kind);
std::optional<FaultKind> kind_named(std::string_view name);

}  // namespace tandem::controller
