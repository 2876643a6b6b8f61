// The kinds of objects that the API lists, and the forms in which they are printed, with their
// names on the command line.
#pragma once

#include "runtime/base/enum_names.h"

namespace tandem::cli {

// A kind's name is also the collection in the path of the API.
enum class Kind { kJobs, kRuns, kActors, kNodes, kGroups, kEvents };
constexpr auto enum_names(Kind) {
  using enum Kind;
  return enum_name_rows<Kind>({{kJobs, "jobs"},
                               {kRuns, "runs"},
                               {kActors, "actors"},
                               {kNodes, "nodes"},
                               {kGroups, "groups"},
                               {kEvents, "events"}});
}

// kTable and kWide are for people and may change; kJson, kJsonl (an object per line) and kYaml are
// for programs; kName has one "kind/name" per line.
enum class OutputForm { kTable, kWide, kJson, kJsonl, kYaml, kName };
constexpr auto enum_names(OutputForm) {
  using enum OutputForm;
  return enum_name_rows<OutputForm>({{kTable, "table"},
                                     {kWide, "wide"},
                                     {kJson, "json"},
                                     {kJsonl, "jsonl"},
                                     {kYaml, "yaml"},
                                     {kName, "name"}});
}

}  // namespace tandem::cli
