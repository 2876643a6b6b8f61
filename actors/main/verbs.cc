#include "actors/main/verbs.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "actors/cli/verbs.h"
#include "actors/main/cluster.h"
#include "actors/main/doctor_command.h"
#include "actors/main/import_command.h"
#include "actors/main/kube_command.h"
#include "actors/main/local_run.h"
#include "actors/main/model_commands.h"
#include "actors/main/node_command.h"
#include "actors/main/ray_command.h"
#include "actors/main/replay_command.h"
#include "actors/main/score_command.h"
#include "actors/main/simulate_command.h"
#include "actors/main/size_command.h"
#include "actors/main/slurm_command.h"
#include "actors/main/timeline_command.h"
#include "actors/main/tokenize_command.h"
#include "kernels/backend.h"
#include "runtime/base/check.h"
#include "runtime/node/log_rotation.h"

namespace tandem::app {
namespace {

// Makes a verb that computes, or starts processes that do: it first checks TANDEM_ISA, and the
// variables about the logs of processes.
template <cli::VerbType T>
cli::Verb make_computing() {
  cli::Verb verb = cli::make_verb<T>();
  verb.run = [run = std::move(verb.run)](const cli::VerbContext& context) -> Result<int> {
    if (const auto isa = kernels::chosen_isa(); !isa) return isa.error();
    if (const auto limits = node::LogLimits::from_environment(); !limits) return limits.error();
    return run(context);
  };
  return verb;
}

struct Row {
  cli::Verb (*make)();
  std::string_view before;  // the verb of the client that comes next in the help
};
constexpr Row kRows[] = {
    {make_computing<RunCommand>, "submit"},         {cli::make_verb<ImportCommand>, "wait"},
    {cli::make_verb<SlurmCommand>, "wait"},         {cli::make_verb<KubeCommand>, "wait"},
    {cli::make_verb<RayCommand>, "wait"},           {make_computing<ReplayCommand>, "scale"},
    {make_computing<UpCommand>, "status"},          {cli::make_verb<DownCommand>, "status"},
    {cli::make_verb<ControllerCommand>, "explain"}, {make_computing<NodeCommand>, "explain"},
    {make_computing<GenerateCommand>, "explain"},   {make_computing<EvalCommand>, "explain"},
    {cli::make_verb<ScoreCommand>, "explain"},      {cli::make_verb<SimulateCommand>, "wait"},
    {cli::make_verb<TokenizeCommand>, "explain"},   {cli::make_verb<TimelineCommand>, "scale"},
    {make_computing<SizeCommand>, "top"},           {cli::make_verb<DoctorCommand>, "version"},
};

}  // namespace

std::vector<cli::Verb> all_verbs() {
  std::vector<cli::Verb> verbs = cli::client_verbs();
  for (const Row& row : kRows) {
    const auto next = std::ranges::find_if(
        verbs, [&row](const cli::Verb& verb) { return verb.help.name == row.before; });
    CHECK(next != verbs.end());
    verbs.insert(next, row.make());
  }
  return verbs;
}

}  // namespace tandem::app
