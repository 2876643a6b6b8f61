// Actors are shown in the order of their jobs' ids, then of their names.
#include "actors/controller/views.h"

#include <algorithm>
#include <utility>

#include "actors/controller/upkeep.h"

namespace tandem::controller {

namespace {

using Exchanges = std::map<std::string, actor::Ref<ExchangeControl>>;

class Copying {
 public:
  Copying(const ControllerCore& core, const Exchanges& exchanges, const ViewPage& page, Time now)
      : core_(core),
        exchanges_(exchanges),
        page_(page),
        view_{.now = now, .journal_fails = core.journal_fails()} {}

  ClusterView taken() {
    switch (page_.of) {
      case ViewOf::kAll:
        add_jobs();
        add_nodes();
        view_.exchanges = exchanges_;
        break;
      case ViewOf::kJobs:
        add_jobs();
        for (const JobRecord& job : view_.jobs) add_exchange(job.id);
        break;
      case ViewOf::kActors:
        add_actors();
        for (const ShownActor& shown : view_.actors) add_exchange(shown.actor.job);
        break;
      case ViewOf::kNodes:
        page_.name.empty() ? add_nodes() : add_node();
        break;
      case ViewOf::kExchanges:
        if (page_.job.empty())
          view_.exchanges = exchanges_;
        else
          add_exchange(page_.job);
        break;
    }
    return std::move(view_);
  }

 private:
  bool wants(const std::string& job) const { return page_.job.empty() || page_.job == job; }
  void add_exchange(const std::string& job) {
    if (const auto found = exchanges_.find(job); found != exchanges_.end())
      view_.exchanges.insert(*found);
  }
  void add_jobs() {
    auto next = page_.job.empty() ? core_.jobs().upper_bound(page_.after)
                                  : core_.jobs().lower_bound(page_.job);
    for (; next != core_.jobs().end() && view_.jobs.size() < page_.limit; ++next) {
      if (!wants(next->first)) break;
      view_.jobs.push_back(next->second);
      show_reasons(view_.jobs.back());
      for (auto& [name, actor] : view_.jobs.back().actors) show_end(actor);
    }
  }
  void add_actors() {
    const std::string first = page_.job.empty() ? job_of_actor(page_.after) : page_.job;
    for (auto job = core_.jobs().lower_bound(first);
         job != core_.jobs().end() && wants(job->first) && view_.actors.size() < page_.limit; ++job)
      add_actors_of(job->second);
  }
  void add_actors_of(const JobRecord& job) {
    const bool begun = job_of_actor(page_.after) == job.id;
    auto next = begun ? job.actors.upper_bound(page_.after) : job.actors.begin();
    for (; next != job.actors.end() && view_.actors.size() < page_.limit; ++next) {
      const ActorRecord& actor = next->second;
      view_.actors.push_back({actor, job.ladder.restarts_of(actor.name)});
      view_.actors.back().actor.status.reason = reason_shown(job, actor);
      show_end(view_.actors.back().actor);
    }
  }
  // A process that was told to end while its node had no agent ends when an agent of that is heard
  // and kills it, or when the node is given up. The copy's deadline is that time where it is known.
  void show_end(ActorRecord& copy) const {
    if (copy.status.state != scheduler::ActorState::kStopping) return;
    for (RankRecord& rank : copy.ranks) {
      const auto node = core_.nodes().find(rank.node);
      if (!rank.alive || !rank.end_unheard || node == core_.nodes().end()) continue;
      if (const auto& until = node->second.agent_until)
        copy.kill_deadline = std::max(copy.kill_deadline, *until);
      rank.end_unheard = !node->second.up && !node->second.agent_until;
    }
  }
  void add_nodes() {
    for (auto next = core_.nodes().upper_bound(page_.after);
         next != core_.nodes().end() && view_.nodes.size() < page_.limit; ++next)
      view_.nodes.push_back(next->second);
  }

  void add_node() {
    const auto node = core_.nodes().find(page_.name);
    if (node == core_.nodes().end()) return;
    view_.nodes.push_back(node->second);
    const auto on = core_.lookups().actors_on.find(page_.name);
    if (on == core_.lookups().actors_on.end()) return;
    for (const std::string& name : on->second)
      view_.actors.push_back({core_.jobs().at(job_of_actor(name)).actors.at(name)});
  }

  const ControllerCore& core_;
  const Exchanges& exchanges_;
  const ViewPage& page_;
  ClusterView view_;
};

}  // namespace

ClusterView view_of(const ControllerCore& core, const Exchanges& exchanges, const ViewPage& page,
                    Time now) {
  return Copying(core, exchanges, page, now).taken();
}

ClusterCounts counts_of(const ControllerCore& core) {
  ClusterCounts counts{.nodes_up = std::ssize(core.lookups().room.nodes())};
  counts.nodes_lost = std::ssize(core.nodes()) - counts.nodes_up;
  for (const auto& [id, job] : core.jobs()) ++counts.jobs[scheduler::name(job.status.state)];
  return counts;
}

}  // namespace tandem::controller
