// The objects that kubectl gets: each is valid by the schemas that scripts/kube_schemas has made of
// the published ones, and what one object says of another is so. No cluster has seen them here.
#include "actors/launch/kube_manifest.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#include <vector>

#include "actors/launch/kube_names.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tandem::launch {
namespace {

using nlohmann::json;
using Pointer = json::json_pointer;

// A scalar without quotes that some reader of YAML takes for another value than we mean.
bool has_two_meanings(const std::string& plain) {
  static const std::regex kMeans(
      "~|null|yes|no|on|off|y|n|[-+]?[0-9][0-9_]*[:.eExXob].*|0[0-9]+|.*(: | #).*|",
      std::regex::ECMAScript | std::regex::icase);
  return std::regex_match(plain, kMeans);
}

json scalar_of(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() != "?") return text;  // quoted, or a block
  if (text == "true" || text == "false") return text == "true";
  EXPECT_FALSE(has_two_meanings(text)) << text << " in line " << node.Mark().line + 1;
  const bool is_number =
      std::ranges::all_of(text, [](unsigned char c) { return c >= '0' && c <= '9'; });
  return is_number ? json(std::stoll(text)) : json(text);
}

json json_of(const YAML::Node& node) {
  if (node.IsScalar()) return scalar_of(node);
  if (node.IsSequence()) {
    json list = json::array();
    for (const YAML::Node& item : node) list.push_back(json_of(item));
    return list;
  }
  EXPECT_TRUE(node.IsMap()) << "null in line " << node.Mark().line + 1;
  json made = json::object();
  for (const auto& member : node) {
    const bool is_new = made.emplace(member.first.Scalar(), json_of(member.second)).second;
    EXPECT_TRUE(is_new) << member.first.Scalar() << " is there twice";
  }
  return made;
}

std::vector<json> objects_of(const KubeJob& job) {
  std::vector<json> objects;
  for (const YAML::Node& document : YAML::LoadAll(kube_manifest(job)))
    objects.push_back(json_of(document));
  return objects;
}

std::string text_of(const json& value) { return value.get<std::string>(); }

// The member `key` of each object of a list.
std::vector<std::string> texts_of(const json& list, const char* key) {
  std::vector<std::string> texts;
  for (const json& object : list) texts.push_back(text_of(object[key]));
  return texts;
}

std::set<std::string> set_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

const json& schemas() {
  static const json kSchemas =
      parse_json(read_file(TANDEM_SOURCE_DIR "/tests/golden/kube/schemas.json").value());
  return kSchemas;
}

// What is wrong with an object by the schema of its kind.
std::vector<std::string> faults_of(const json& object) {
  const std::string kind = object.value("apiVersion", "") + " " + object.value("kind", "");
  if (!schemas()["kinds"].contains(kind)) return {"no schema for " + kind};
  json reference, root;
  reference["$ref"] = "#/definitions/" + text_of(schemas()["kinds"][kind]);
  root["allOf"].push_back(reference);
  root["definitions"] = schemas()["definitions"];
  valijson::Schema schema;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(root), schema);
  valijson::ValidationResults results;
  const valijson::adapters::NlohmannJsonAdapter target(object);
  std::vector<std::string> faults;
  if (valijson::Validator().validate(schema, target, &results)) return faults;
  for (const auto& error : results) {
    std::string at;
    for (const std::string& step : error.context) at += step;
    faults.push_back(at + ": " + error.description);
  }
  return faults;
}

const json& object_of(const std::vector<json>& objects, const std::string& kind,
                      const std::string& name) {
  const auto found = std::ranges::find_if(objects, [&](const json& object) {
    return text_of(object["kind"]) == kind && text_of(object["metadata"]["name"]) == name;
  });
  static const json kNone;
  EXPECT_NE(found, objects.end()) << kind << " " << name;
  return found == objects.end() ? kNone : *found;
}

KubeJob small_job() {
  return {.name = "arithmetic",
          .run = "0a1b2c3d",
          .image = "registry.example/tandem@sha256:0123",
          .nodes = 3,
          .min_nodes = 2,
          .job = "name: arithmetic\n\nmodel:\n  path: /tandem/models/arithmetic\n",
          .keys = {.controller_public = "p:?*&#%",
                   .controller_secret = "c@c@",
                   .node_secret = "n",
                   .token = "0f"}};
}

// Every form that differs.
std::vector<KubeJob> forms() {
  std::vector<KubeJob> made;
  for (const KubeForm form : {KubeForm::kJobSet, KubeForm::kPlain})
    for (const std::int64_t nodes : {1, 3}) {
      KubeJob job = small_job();
      job.form = form;
      job.nodes = nodes;
      job.min_nodes = 1;
      made.push_back(job);
      job.name = "on";  // a truth value of YAML 1.1
      job.space = "lab";
      job.claim = "shared.data";
      job.gpus_per_node = 8;
      job.cpus_per_node = "1500m";
      job.memory_per_node = "0.5Ti";
      job.shm = "64Gi";
      job.ports = "7420-7499";
      job.plaintext_gang = true;
      if (form == KubeForm::kJobSet) job.queue = "team-a";
      job.job = "name: on\ntext: \"\xe2\x80\xa8 \xf0\x9f\x98\x80\"\n\n";
      made.push_back(job);
      job.claim.clear();
      job.storage_class = "fast";
      made.push_back(job);
    }
  return made;
}

// A pod of a manifest, with the role that its labels say.
struct PodOf {
  std::string role;
  json whole, spec;  // the second is a part of the first
  json job;          // the spec of the Job that makes it
};

std::vector<PodOf> pods_of(const std::vector<json>& objects) {
  std::vector<json> jobs;
  for (const json& object : objects) {
    const std::string kind = text_of(object["kind"]);
    if (kind == "Job") jobs.push_back(object["spec"]);
    if (kind != "JobSet") continue;
    for (const json& replicated : object["spec"]["replicatedJobs"])
      jobs.push_back(replicated["template"]["spec"]);
  }
  std::vector<PodOf> pods;
  for (const json& job : jobs) {
    const json& pod = job["template"];
    pods.push_back(
        {text_of(pod["metadata"]["labels"]["app.kubernetes.io/component"]), pod, pod["spec"], job});
  }
  return pods;
}

PodOf pod_of(const KubeJob& job, const std::string& role) {
  for (const PodOf& pod : pods_of(objects_of(job)))
    if (pod.role == role) return pod;
  ADD_FAILURE() << "no pod of the " << role;
  return {};
}

std::vector<json> containers_of(const PodOf& pod) {
  std::vector<json> all;
  for (const char* kind : {"initContainers", "containers"})
    for (const json& container : pod.spec[kind]) all.push_back(container);
  return all;
}

// The container that works.
const json& worker_of(const PodOf& pod) { return pod.spec["containers"][0]; }

// What the claim, the Secret and the ConfigMap of a volume say of themselves.
void expect_found(const json& volume, const KubeJob& job, const std::vector<json>& objects) {
  if (volume.contains("secret")) {
    const json& secret = object_of(objects, "Secret", text_of(volume["secret"]["secretName"]));
    for (const std::string& key : texts_of(volume["secret"]["items"], "key"))
      EXPECT_TRUE(secret["stringData"].contains(key)) << key;
  }
  if (volume.contains("configMap")) {
    const json& map = object_of(objects, "ConfigMap", text_of(volume["configMap"]["name"]));
    EXPECT_TRUE(map["data"].contains("job.yaml"));
  }
  if (!volume.contains("persistentVolumeClaim")) return;
  const std::string claim = text_of(volume["persistentVolumeClaim"]["claimName"]);
  if (job.claim.empty())
    object_of(objects, "PersistentVolumeClaim", claim);
  else
    EXPECT_EQ(claim, job.claim);
}

TEST(KubeManifest, EachObjectIsValidByThePublishedSchemas) {
  for (const KubeJob& job : forms())
    for (const json& object : objects_of(job))
      EXPECT_EQ(faults_of(object), std::vector<std::string>()) << object["kind"] << " of\n"
                                                               << kube_manifest(job);
}

// A check that passes whatever it gets would prove nothing.
TEST(KubeManifest, TheSameCheckRefusesWhatIsWrong) {
  const std::vector<json> objects = objects_of(small_job());
  const json& right = object_of(objects, "JobSet", "arithmetic");
  const std::string pod = "/spec/replicatedJobs/1/template/spec/template/spec";
  const std::pair<std::string, json> kWrong[] = {
      {pod + "/restartPolcy", "Never"},  // misspelt
      {pod + "/restartPolicy", "Nevr"},
      {pod + "/containers/0/resources/limits/cpu", "4 cores"},
      {pod + "/terminationGracePeriodSeconds", "660"},
      {pod + "/volumes/0/persistentVolumeClaim", json::object()},  // without a name
      {pod + "/containers/0/ports/0", {{"containerPort", 1}, {"protocol", "tcp"}}},
      {"/spec/failurePolicy/rules/0/action", "FailPod"},
      {"/spec/failurePolicy/restartStrategy", "Blocking"},
      {"/spec/succesPolicy", json::object()},
      {"/status", json::object()},
      {"/kind", "JobSets"}};
  EXPECT_TRUE(faults_of(right).empty());
  for (const auto& [at, value] : kWrong) {
    json wrong = right;
    wrong[Pointer(at)] = value;
    EXPECT_FALSE(faults_of(wrong).empty()) << at;
  }
  json nameless = right;
  nameless[Pointer(pod + "/containers/0")].erase("name");
  EXPECT_FALSE(faults_of(nameless).empty());
}

TEST(KubeManifest, VolumesThatAreMountedAreThereWithWhatTheyName) {
  for (const KubeJob& job : forms()) {
    const std::vector<json> objects = objects_of(job);
    for (const PodOf& pod : pods_of(objects)) {
      std::set<std::string> mounted;
      for (const json& container : containers_of(pod))
        mounted.merge(set_of(texts_of(container["volumeMounts"], "name")));
      EXPECT_EQ(mounted, set_of(texts_of(pod.spec["volumes"], "name")));
      for (const json& volume : pod.spec["volumes"]) expect_found(volume, job, objects);
    }
  }
}

TEST(KubeManifest, TheJobAndTheKeysReadBackAsTheyWere) {
  for (const KubeJob& job : forms()) {
    const std::vector<json> objects = objects_of(job);
    EXPECT_EQ(object_of(objects, "ConfigMap", job.name + "-job-" + job.run)["data"]["job.yaml"],
              job.job);
    const json& keys = object_of(objects, "Secret", job.name + "-keys-" + job.run)["stringData"];
    EXPECT_EQ(keys["controller.public"], job.keys.controller_public);
    EXPECT_EQ(keys["controller.secret"], job.keys.controller_secret);
    EXPECT_EQ(keys["node.secret"], job.keys.node_secret);
    EXPECT_EQ(keys["token"], job.keys.token);
    for (const PodOf& pod : pods_of(objects))
      for (const json& container : containers_of(pod)) EXPECT_EQ(container["image"], job.image);
  }
}

TEST(KubeManifest, VariablesThatACommandNamesAreSet) {
  static const std::regex kVariable(R"(\$[({]?([A-Z_]+))");
  for (const KubeJob& job : forms())
    for (const PodOf& pod : pods_of(objects_of(job)))
      for (const json& container : containers_of(pod)) {
        const std::set<std::string> given = set_of(texts_of(container["env"], "name"));
        const std::string words = dump_json(container["command"]);
        int named = 0;
        for (std::sregex_iterator it(words.begin(), words.end(), kVariable), end; it != end; ++it) {
          EXPECT_TRUE(given.contains((*it)[1].str())) << (*it)[1].str() << " in " << words;
          ++named;
        }
        EXPECT_GT(named, 0) << words;
      }
}

std::map<std::string, int> ports_of(const PodOf& pod) {
  std::map<std::string, int> ports;
  for (const json& port : worker_of(pod)["ports"])
    ports.emplace(text_of(port["name"]), port["containerPort"].get<int>());
  return ports;
}

// The value of --controller in the command of a node.
std::string dialled_by(const PodOf& node) {
  const auto words = worker_of(node)["command"].get<std::vector<std::string>>();
  const auto option = std::ranges::find(words, "--controller");
  return option == words.end() ? "" : *(option + 1);
}

TEST(KubeManifest, NodesDialTheHostAndThePortOfTheController) {
  KubeJob job = small_job();
  const std::vector<json> objects = objects_of(job);
  auto ports = ports_of(pod_of(job, "controller"));
  EXPECT_EQ(ports["payloads"], ports["nodes"] + 1);
  const std::string port = ":" + std::to_string(ports["nodes"]);
  EXPECT_EQ(dialled_by(pod_of(job, "node")), "arithmetic-controller-0-0.arithmetic" + port);
  EXPECT_EQ(objects.back()["spec"]["network"]["enableDNSHostnames"], true);
  job.form = KubeForm::kPlain;
  EXPECT_EQ(dialled_by(pod_of(job, "node")), "arithmetic-controller" + port);
}

TEST(KubeManifest, TheServiceLeadsToTheControllerAlone) {
  KubeJob job = small_job();
  job.form = KubeForm::kPlain;
  const std::vector<json> objects = objects_of(job);
  const json& service = object_of(objects, "Service", "arithmetic-controller");
  EXPECT_EQ(service["spec"]["publishNotReadyAddresses"], true);
  const PodOf controller = pod_of(job, "controller"), node = pod_of(job, "node");
  auto ports = ports_of(controller);
  for (const json& port : service["spec"]["ports"])
    EXPECT_EQ(port["port"], ports[text_of(port["name"])]);
  const json& selector = service["spec"]["selector"];
  EXPECT_FALSE(selector.empty());
  bool selects_node = true;
  for (const auto& [label, value] : selector.items()) {
    EXPECT_EQ(controller.whole["metadata"]["labels"][label], value);
    if (node.whole["metadata"]["labels"][label] != value) selects_node = false;
  }
  EXPECT_FALSE(selects_node);
}

TEST(KubeManifest, TheControllerListensAtThePortsOfItsPod) {
  for (const KubeJob& job : forms()) {
    const PodOf pod = pod_of(job, "controller");
    const json& container = worker_of(pod);
    auto ports = ports_of(pod);
    const std::string script = text_of(container["command"][2]);
    const auto says = [&script](const std::string& option, std::int64_t value) {
      return script.find(option + " " + std::to_string(value) + " ") != script.npos;
    };
    EXPECT_TRUE(says("--port", ports["nodes"])) << script;
    EXPECT_TRUE(says("--health-port", ports["health"])) << script;
    EXPECT_TRUE(says("--min-nodes", job.min_nodes)) << script;
    for (const char* probe : {"startupProbe", "livenessProbe", "readinessProbe"})
      EXPECT_EQ(container[probe]["httpGet"]["port"], "health") << probe;
    EXPECT_EQ(container["startupProbe"]["httpGet"]["path"], "/healthz");
    EXPECT_EQ(container["livenessProbe"]["httpGet"]["path"], "/healthz");
    EXPECT_EQ(container["readinessProbe"]["httpGet"]["path"], "/readyz");
  }
}

TEST(KubeManifest, ANodeThatFailsIsReplacedAlone_KU1) {
  KubeJob job = small_job();
  const json jobset = objects_of(job).back();
  EXPECT_EQ(jobset["spec"]["replicatedJobs"][1]["replicas"], 2);
  const PodOf node = pod_of(job, "node");
  EXPECT_EQ(node.job["completions"], 1);  // a Job of its own
  EXPECT_GT(node.job["backoffLimit"].get<int>(), 0);
  EXPECT_EQ(node.spec["restartPolicy"], "Never");
  job.form = KubeForm::kPlain;
  const PodOf plain = pod_of(job, "node");
  EXPECT_EQ(plain.job["completions"], 2);
  EXPECT_EQ(plain.job["parallelism"], 2);
  EXPECT_GT(plain.job["backoffLimitPerIndex"].get<int>(), 0);
}

TEST(KubeManifest, WithoutTheControllerAllBeginAgainWithTheRun_KU1) {
  const KubeJob job = small_job();
  const json spec = objects_of(job).back()["spec"];
  EXPECT_EQ(spec["successPolicy"]["targetReplicatedJobs"], json::array({"controller"}));
  EXPECT_GT(spec["failurePolicy"]["maxRestarts"].get<int>(), 0);
  EXPECT_EQ(spec["failurePolicy"]["restartStrategy"], "BlockingRecreate");
  // What `tandem run` itself reports as final; every other failure is followed by a new start.
  ASSERT_EQ(spec["failurePolicy"]["rules"].size(), 1u);
  const json& rule = spec["failurePolicy"]["rules"][0];
  EXPECT_EQ(rule["action"], "FailJobSet");
  EXPECT_EQ(rule["onJobFailureReasons"], json::array({"PodFailurePolicy"}));
  EXPECT_EQ(rule["targetReplicatedJobs"], json::array({"controller"}));
  const PodOf controller = pod_of(job, "controller");
  EXPECT_EQ(controller.job["backoffLimit"], 0);
  const auto codes = controller.job["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"]
                         .get<std::vector<int>>();
  EXPECT_TRUE(std::ranges::is_sorted(codes));  // Kubernetes asks for that
  for (const int of_tandem : {1, 2, 3, 4, 64})
    EXPECT_NE(std::ranges::find(codes, of_tandem), codes.end()) << of_tandem;
  for (const int from_outside : {5, 69, 130, 137, 143})
    EXPECT_EQ(std::ranges::find(codes, from_outside), codes.end()) << from_outside;
  const std::string script = text_of(worker_of(controller)["command"][2]);
  EXPECT_NE(script.find("--link /tandem/resume/arithmetic-0a1b2c3d --resume-linked"), script.npos);
}

TEST(KubeManifest, NoContainerIsRootOrWritesElsewhere_KU2) {
  for (const KubeJob& job : forms())
    for (const PodOf& pod : pods_of(objects_of(job))) {
      EXPECT_EQ(pod.spec["securityContext"]["runAsNonRoot"], true);
      EXPECT_EQ(pod.spec["securityContext"]["runAsUser"], 10001);
      EXPECT_EQ(pod.spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
      EXPECT_EQ(pod.spec["automountServiceAccountToken"], false);
      for (const json& container : containers_of(pod)) {
        const json& context = container["securityContext"];
        EXPECT_EQ(context["allowPrivilegeEscalation"], false);
        EXPECT_EQ(context["readOnlyRootFilesystem"], true);
        EXPECT_EQ(context["capabilities"]["drop"], json::array({"ALL"}));
        const std::set<std::string> written{"/tandem", "/var/lib/tandem", "/tmp", "/dev/shm"};
        for (const json& mount : container["volumeMounts"])
          EXPECT_TRUE(mount.value("readOnly", false) ||
                      written.contains(text_of(mount["mountPath"])))
              << mount;
        for (const json& variable : container["env"])
          if (text_of(variable["name"]) == "TANDEM_HOME") {
            EXPECT_TRUE(text_of(variable["value"]).starts_with("/var/lib/tandem/"));
          }
      }
    }
}

TEST(KubeManifest, ANodeGetsNoSecretOfTheControllers_KU3) {
  for (const KubeForm form : {KubeForm::kJobSet, KubeForm::kPlain}) {
    KubeJob job = small_job();
    job.form = form;
    const PodOf node = pod_of(job, "node");
    std::set<std::string> files;
    for (const json& volume : node.spec["volumes"])
      if (volume.contains("secret")) files = set_of(texts_of(volume["secret"]["items"], "key"));
    EXPECT_EQ(files, (std::set<std::string>{"controller.public", "node.secret"}));
    // The container that works does not see the Secret at all.
    for (const PodOf& pod : pods_of(objects_of(job)))
      EXPECT_FALSE(set_of(texts_of(worker_of(pod)["volumeMounts"], "name")).contains("keys"));
  }
}

TEST(KubeManifest, ResourcesAreGuaranteedAndSharedMemoryIsBounded) {
  KubeJob job = small_job();
  job.gpus_per_node = 8;
  for (const char* role : {"controller", "node"}) {
    const PodOf pod = pod_of(job, role);
    for (const json& container : containers_of(pod))
      EXPECT_EQ(container["resources"]["requests"], container["resources"]["limits"]);
    const json& limits = worker_of(pod)["resources"]["limits"];
    EXPECT_EQ(limits["cpu"], "4");
    EXPECT_EQ(limits["memory"], "16Gi");
    EXPECT_EQ(limits["nvidia.com/gpu"], 8);
    for (const json& volume : pod.spec["volumes"]) {
      if (text_of(volume["name"]) != "shm") continue;
      EXPECT_EQ(volume["emptyDir"]["medium"], "Memory");
      EXPECT_EQ(volume["emptyDir"]["sizeLimit"], "16Gi");
    }
  }
  const PodOf without = pod_of(small_job(), "node");
  EXPECT_FALSE(worker_of(without)["resources"]["limits"].contains("nvidia.com/gpu"));
  EXPECT_FALSE(without.spec.contains("tolerations"));
}

TEST(KubeManifest, KueueAdmitsAJobSetThatHasAQueue) {
  KubeJob job = small_job();
  json jobset = objects_of(job).back();
  EXPECT_FALSE(jobset["spec"].contains("suspend"));
  EXPECT_FALSE(jobset["metadata"]["labels"].contains("kueue.x-k8s.io/queue-name"));
  job.queue = "team-a";
  jobset = objects_of(job).back();
  EXPECT_EQ(jobset["spec"]["suspend"], true);
  EXPECT_EQ(jobset["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "team-a");
}

TEST(KubeManifest, OneNodeIsTheControllersPodAlone) {
  for (const KubeForm form : {KubeForm::kJobSet, KubeForm::kPlain}) {
    KubeJob job = small_job();
    job.form = form;
    job.nodes = job.min_nodes = 1;
    const std::vector<json> objects = objects_of(job);
    EXPECT_EQ(pods_of(objects).size(), 1u);
    for (const json& object : objects) {
      EXPECT_NE(object["kind"], "Service");
      if (object["kind"] == "PersistentVolumeClaim") {
        EXPECT_EQ(object["spec"]["accessModes"], json::array({"ReadWriteOnce"}));
      }
    }
    EXPECT_NE(kube_manifest(job).find("kubectl delete"), std::string::npos);
    job.claim = "shared";  // which is not the manifest's to delete
    for (const json& object : objects_of(job)) EXPECT_NE(object["kind"], "PersistentVolumeClaim");
    EXPECT_EQ(kube_manifest(job).find("kubectl delete"), std::string::npos);
  }
}

TEST(KubeManifest, ObjectsAreInTheNamespaceAndHaveLabels) {
  KubeJob job = small_job();
  for (const json& object : objects_of(job)) EXPECT_FALSE(object["metadata"].contains("namespace"));
  job.space = "lab";
  for (const json& object : objects_of(job)) {
    EXPECT_EQ(object["metadata"]["namespace"], "lab");
    EXPECT_EQ(object["metadata"]["labels"]["app.kubernetes.io/name"], "tandem");
    EXPECT_EQ(object["metadata"]["labels"]["app.kubernetes.io/instance"], "arithmetic");
  }
}

TEST(KubeManifest, NamesFitWithTheLongestNameOfAJob) {
  constexpr std::size_t kCharsMax = 63;
  for (const KubeForm form : {KubeForm::kJobSet, KubeForm::kPlain}) {
    KubeJob job = small_job();
    while (not_a_name(job.name + "a").empty()) job.name += "a";
    job.form = form;
    job.nodes = 65536;
    std::vector<std::string> names{job.name};
    for (const json& object : objects_of(job)) names.push_back(text_of(object["metadata"]["name"]));
    // As JobSet and Jobs make the names of pods.
    for (const char* pod : {"-controller-0-0-x7k2p", "-nodes-65534-0-x7k2p", "-nodes-65534-x7k2p"})
      names.push_back(job.name + pod);
    for (const std::string& name : names) EXPECT_LE(name.size(), kCharsMax) << name;
  }
}

}  // namespace
}  // namespace tandem::launch
