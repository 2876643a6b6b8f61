#include "actors/main/kube_command.h"

#include <ostream>
#include <type_traits>
#include <variant>

#include "actors/cli/shared_options.h"
#include "actors/job/load_job.h"
#include "actors/job/print_job.h"
#include "actors/launch/kube_manifest.h"
#include "actors/launch/kube_names.h"
#include "actors/main/background.h"
#include "runtime/base/file.h"
#include "runtime/base/secret.h"
#include "runtime/link/curve.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRunChars = 8;  // of a random name

Result<job::LoadedJob> load(const KubeCommand& command) {
  const auto text = read_file_or_pipe(command.job, job::kJobFileBytesMax, job::kJobFileSilenceMax);
  if (!text) {
    Error error = text.error();
    error.message = "cannot read the job file: " + cause_of(error);
    return error;
  }
  const fs::path folder(launch::kClaimFolder);
  return job::parse_job({.yaml = *text,
                         .origin = command.job.string(),
                         .base = folder,
                         .set_base = folder,
                         .sets = command.sets,
                         .files = job::Files::kUnchecked});
}

bool is_in_claim(const std::string& path) {
  return path == launch::kClaimFolder || path.starts_with(std::string(launch::kClaimFolder) + "/");
}

// The absolute paths in the value of a field.
std::vector<std::string> paths_in(const auto&) { return {}; }
std::vector<std::string> paths_in(const fs::path& path) {
  return path.is_absolute() ? std::vector{path.string()} : std::vector<std::string>();
}
std::vector<std::string> paths_in(const job::NameOrPath& word) {
  return paths_in(fs::path(word.text));
}
std::vector<std::string> paths_in(const job::PlacedName& name) {
  return paths_in(fs::path(name.text));
}
std::vector<std::string> paths_in(const std::vector<fs::path>& list) {
  std::vector<std::string> paths;
  for (const fs::path& path : list)
    if (path.is_absolute()) paths.push_back(path.string());
  return paths;
}
template <class T>
std::vector<std::string> paths_in(const std::optional<T>& value) {
  return value ? paths_in(*value) : std::vector<std::string>();
}

std::vector<std::string> paths_of(const std::string& key, const job::FieldRef& field) {
  const job::Key* const row = job::find_key(job::table_path(key).path);
  if (const auto* const command = std::get_if<std::optional<std::vector<std::string>>*>(&field);
      command && row && row->argv)
    return **command ? paths_in(std::vector<fs::path>((**command)->begin(), (**command)->end()))
                     : std::vector<std::string>();
  return std::visit(
      [](const auto& value) -> std::vector<std::string> {
        if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(value)>>)
          return paths_in(*value);
        else
          return {};
      },
      field);
}

// Whether a pod without GPUs has no place for some actor of the job.
bool asks_for_gpus(const job::JobSpec& job) {
  for (const auto& [name, actor] : job.actors)
    if (actor.gpus_per_actor > 0) return true;
  return job::trains(job) &&
         (job.pools.rollout.gpus_per_actor > 0 || job.pools.learner.gpus_per_actor > 0);
}

std::vector<std::string> pod_warnings(const job::JobSpec& job, std::int64_t gpus_per_node) {
  std::vector<std::string> warnings;
  job::for_each_field(job, [&warnings](const std::string& key, const job::FieldRef& field) {
    for (const std::string& path : paths_of(key, field))
      if (!is_in_claim(path))
        warnings.push_back("`" + key + "` names " + path + ", which is not below " +
                           std::string(launch::kClaimFolder) +
                           ", where pods see the claim: the image has to have it");
  });
  if (gpus_per_node == 0 && asks_for_gpus(job))
    warnings.emplace_back("the job asks for GPUs, and its pods have none: see --gpus-per-node");
  return warnings;
}

launch::KubeKeys new_keys() {
  const link::CurveKeys controller = link::make_curve_keys(), node = link::make_curve_keys();
  return {.controller_public = controller.public_key,
          .controller_secret = controller.secret_key,
          .node_secret = node.secret_key,
          .token = random_secret()};
}

// `name` as not_a_name() lets it pass, for the help: "My_Job" becomes "my-job".
std::string name_like(const std::string& name) {
  std::string made;
  for (const char c : name)
    made += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A'))
                                 : (c == '.' || c == '_' ? '-' : c);
  return launch::not_a_name(made).empty() ? made : "my-job";
}

launch::KubeJob kube_job(const KubeCommand& command, const job::JobSpec& job) {
  launch::KubeJob made{
      .name = job.name,
      .run = random_secret().substr(0, kRunChars),
      .space = command.space.value_or(""),
      .image = command.image,
      .nodes = command.hosts.count,
      .min_nodes = command.hosts.least(),
      .gpus_per_node = command.hosts.gpus,
      .shm = command.shm.value_or(""),
      .claim = command.claim.value_or(""),
      .storage_class = command.storage_class.value_or(""),
      .ports = to_string(command.ports),
      .plaintext_gang = command.plaintext_gang,
      .queue = command.queue.value_or(""),
      .job = job::print_job(job),
      .keys = new_keys(),
      .form = command.plain ? launch::KubeForm::kPlain : launch::KubeForm::kJobSet};
  if (command.cpus_per_node) made.cpus_per_node = *command.cpus_per_node;
  if (command.memory_per_node) made.memory_per_node = *command.memory_per_node;
  if (command.storage) made.storage = *command.storage;
  return made;
}

// The options that name objects of the cluster.
void add_objects(KubeCommand& command, cli::Options& options) {
  options.add("--namespace", command.space, "The namespace; else the one that kubectl takes")
      .value("NAME")
      .refuse_by(launch::not_a_label);
  const cli::Option claim =
      options
          .add("--claim", command.claim,
               "A claim that is there, of a volume that all pods can write; else a new one")
          .value("NAME")
          .refuse_by(launch::not_an_objects_name);
  options.add("--storage", command.storage, "The size of a new claim; else 100Gi")
      .value("QUANTITY")
      .refuse_by(launch::not_a_quantity)
      .excludes(claim);
  options.add("--storage-class", command.storage_class, "Its class; else the cluster's default")
      .value("NAME")
      .refuse_by(launch::not_an_objects_name)
      .excludes(claim);
  options.add("--queue", command.queue, "The queue of Kueue that admits the job")
      .value("NAME")
      .refuse_by(launch::not_a_label);
}

}  // namespace

cli::VerbHelp KubeCommand::help() {
  return {.name = "kube",
          .group = cli::VerbGroup::kRun,
          .description = "Run a job on pods that Kubernetes gives",
          .examples = {
              "tandem kube manifest job.yaml --image registry.example/tandem:1.0 --nodes 4",
              "tandem kube manifest job.yaml --image tandem:1.0 --claim data --gpus-per-node 8 "
              "--queue team-a"}};
}

void KubeCommand::options(cli::Options& options) {
  options.add("ACTION", action, "manifest: print the objects that kubectl apply takes")
      .required()
      .choices({"manifest"});
  options.add("JOB.yaml", job, "The job file; relative paths in it start in the claim").required();
  options
      .add("--set", sets,
           "Replace one key; VALUE is YAML, relative paths in it start in the claim; the last wins")
      .value("KEY=VALUE")
      .one_each();
  options.add("--image", image, "The image that has tandem")
      .value("IMAGE")
      .required()
      .refuse_by(launch::not_an_image);
  add_launch_hosts(options, hosts, "pod");
  options.add("--cpus-per-node", cpus_per_node, "CPUs of each pod; else 4")
      .value("QUANTITY")
      .refuse_by(launch::not_a_quantity);
  options.add("--memory-per-node", memory_per_node, "Memory of each pod; else 16Gi")
      .value("QUANTITY")
      .refuse_by(launch::not_a_quantity);
  options.add("--shm", shm, "How much of it shared memory may have; else all")
      .value("QUANTITY")
      .refuse_by(launch::not_a_quantity);
  cli::add_ports(options, ports);
  cli::add_plaintext_gang(options, plaintext_gang);
  add_objects(*this, options);
  options.flag("--plain", plain, "For a cluster without JobSet: a Service and two Jobs");
  options.check([this]() -> Result<void> {
    if (plain && queue)
      return Error{ErrorCode::kInvalid, "--queue is for a JobSet", "",
                   "Kueue would admit the Jobs of --plain one by one: leave one of both out"};
    return {};
  });
}

Result<int> KubeCommand::run(const cli::VerbContext& context) {
  const auto loaded = load(*this);
  if (!loaded) return loaded.error();
  const job::JobSpec& spec = loaded->spec;
  if (const std::string fault = launch::not_a_name(spec.name); !fault.empty())
    return Error{ErrorCode::kInvalid, fault, place_of(*loaded, "name"),
                 "as in --set name=" + name_like(spec.name)};
  const launch::KubeJob made = kube_job(*this, spec);
  if (made.job.size() > launch::kKubeJobBytesMax)
    return Error{ErrorCode::kInvalid,
                 "the job has " + std::to_string(made.job.size()) + " bytes, and an object of " +
                     "Kubernetes takes " + std::to_string(launch::kKubeJobBytesMax),
                 job.string(), "name patterns or folders instead of many files"};
  for (const auto& warnings : {loaded->warnings, pod_warnings(spec, hosts.gpus)})
    for (const std::string& warning : warnings)
      context.console.err << "warning: " << warning << "\n";
  context.console.out << launch::kube_manifest(made);
  return 0;
}

}  // namespace tandem::app
