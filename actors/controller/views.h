// Copies of the controller's records for views: all of them, or a page that costs no more than it
// shows. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "actors/controller/controller_actions.h"
#include "actors/controller/controller_core.h"

namespace tandem::controller {

// Which records a view has: all, or some of one kind, so that it costs no more than it shows.
enum class ViewOf : std::uint8_t { kAll, kJobs, kActors, kNodes, kExchanges };
struct ViewPage {
  ViewOf of = ViewOf::kAll;
  std::string job = {};    // of this job alone; empty: of all
  std::string after = {};  // those behind this name
  std::string name = {};   // of nodes: this one, with the actors that have places there
  std::size_t limit = std::numeric_limits<std::size_t>::max();
};
struct ShownActor {
  ActorRecord actor;
  std::int32_t restarts = 0;  // by its job's restart ladder
};
// A copy of records at one moment, for views. The exchanges are those of the jobs shown, or of the
// actors'; a ref may be of an exchange that ends meanwhile, and an ask of it then fails.
struct ClusterView {
  std::vector<JobRecord> jobs;     // in the order of their ids, with all of their actors
  std::vector<ShownActor> actors;  // of a page of actors, in the order of their jobs and names
  std::vector<NodeRecord> nodes;   // in the order of their names
  std::map<std::string, actor::Ref<ExchangeControl>> exchanges;
  Time now;
  bool journal_fails = false;  // the controller cannot write its journal at present
  double journal_write_s = 0;  // the slowest write of it, of the newest minute or two
};
// Answered at once with a copy of the records; for views of people and scripts.
struct GetCluster {
  using Reply = ClusterView;
  ViewPage page = {};
};
// How many there are, without a copy of them.
struct ClusterCounts {
  std::int64_t nodes_up = 0, nodes_lost = 0;
  std::map<std::string, std::int64_t> jobs;  // by the name of their state
};
struct GetCounts {
  using Reply = ClusterCounts;
};
ClusterView view_of(const ControllerCore& core,
                    const std::map<std::string, actor::Ref<ExchangeControl>>& exchanges,
                    const ViewPage& page, Time now);

ClusterCounts counts_of(const ControllerCore& core);

}  // namespace tandem::controller
