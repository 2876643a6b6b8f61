// The documents are texts with gaps, in the order and the form in which a person would write them.
// Texts of the user are quoted, so that none of them means anything to YAML. Nothing is checked
// here: those who make a KubeJob do that.
#include "actors/launch/kube_manifest.h"

#include "actors/launch/kube_pod.h"
#include "actors/launch/yaml_text.h"
#include "runtime/base/check.h"

namespace tandem::launch {
namespace {

// The losses of the controller's pod, each of which costs all pods a new start.
constexpr int kRestartsMax = 20;
constexpr int kNodeRestartsMax = 100;  // of each node; the pauses between them grow to 6 minutes

constexpr std::string_view kHead =
    R"(# Written by `tandem kube manifest`; `kubectl apply -f` takes it. It holds the keys of its
# cluster, by which a process can join it and run any program there: keep it private.
#
# Once its JobSet, or Jobs, are deleted, it can be applied again, and goes on with its run. A new
# manifest begins a new one.
)";
constexpr std::string_view kClaimNote =
    R"(#
# `kubectl delete -f` deletes the claim too, with all that is in it.
)";

constexpr std::string_view kSecret = R"(
apiVersion: v1
kind: Secret
metadata:
  name: @name@-keys-@run@
  @metadata@
immutable: true
stringData:
  controller.public: @controller_public@
  controller.secret: @controller_secret@
  node.secret: @node_secret@
  token: @token@
)";

constexpr std::string_view kConfigMap = R"(
apiVersion: v1
kind: ConfigMap
metadata:
  name: @name@-job-@run@
  @metadata@
immutable: true
data:
  @job@
)";

constexpr std::string_view kClaim = R"(
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: @name@-data
  @metadata@
spec:
  accessModes:
    - @access@
  @class@
  resources:
    requests:
      storage: @storage@
)";

constexpr std::string_view kService = R"(
apiVersion: v1
kind: Service
metadata:
  name: @name@-controller
  @metadata@
spec:
  clusterIP: None
  publishNotReadyAddresses: true # nodes wait for the controller there
  selector:
    app.kubernetes.io/instance: @instance@
    app.kubernetes.io/component: controller
  ports:
    - name: nodes
      port: @port@
    - name: payloads
      port: @payload_port@
)";

constexpr std::string_view kJobSet = R"(
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: @instance@
  @metadata@
spec:
  @suspend@
  network:
    enableDNSHostnames: true
    publishNotReadyAddresses: true # nodes wait for the controller there
  successPolicy:
    operator: All
    targetReplicatedJobs:
      - controller
  # A controller that is lost costs all pods a new start, in which the job goes on with its run.
  failurePolicy:
    maxRestarts: @restarts@
    restartStrategy: BlockingRecreate # no process of the old pods writes into the run any more
    rules:
      - name: final
        action: FailJobSet
        onJobFailureReasons:
          - PodFailurePolicy
        targetReplicatedJobs:
          - controller
  replicatedJobs:
    - name: controller
      replicas: 1
      template:
        spec:
          @controller@
    @nodes@
)";

constexpr std::string_view kNodesOfJobSet = R"(
- name: nodes
  replicas: @others@
  template:
    spec:
      @spec@
)";

constexpr std::string_view kJob = R"(
apiVersion: batch/v1
kind: Job
metadata:
  name: @name@-@role@
  @metadata@
spec:
  @spec@
)";

// `tandem run` ends with 1 where the job failed, with 2 where it can never be placed, with 3 and 64
// where the job or the command is wrong, and with 4 where the keys are.
constexpr std::string_view kControllerSpec = R"(
completionMode: Indexed
completions: 1
parallelism: 1
backoffLimit: 0
podReplacementPolicy: Failed
podFailurePolicy:
  rules:
    # The job failed, can never be placed, or is wrong, or the claim can't be written.
    - action: FailJob
      onExitCodes:
        operator: In
        values: [1, 2, 3, 4, 64]
template:
  @pod@
)";

constexpr std::string_view kNodeSpec = R"(
completionMode: Indexed
completions: 1
parallelism: 1
backoffLimit: @restarts@ # of this node alone
podReplacementPolicy: Failed # two agents of one name are refused
template:
  @pod@
)";

constexpr std::string_view kPlainNodesSpec = R"(
completionMode: Indexed
completions: @others@
parallelism: @others@
backoffLimitPerIndex: @restarts@ # of each node alone
podReplacementPolicy: Failed # two agents of one name are refused
podFailurePolicy:
  rules:
    # The keys are wrong, or no controller has come within an hour.
    - action: FailIndex
      onExitCodes:
        containerName: tandem
        operator: In
        values: [4, 5, 64]
template:
  @pod@
)";

// The metadata of an object, less its name.
std::string metadata(const KubeJob& job, const std::string& labels) {
  return filled("@namespace@\nlabels:\n  @labels@\n",
                {{"namespace", job.space.empty() ? "" : "namespace: " + quoted(job.space)},
                 {"labels", labels}});
}

// The values that most texts have.
GapValues values_of(const KubeJob& job) {
  return {{"name", job.name},
          {"run", job.run},
          {"instance", quoted(job.name)},
          {"metadata", metadata(job, kube_labels(job))},
          {"others", std::to_string(job.nodes - 1)},
          {"port", std::to_string(kKubePort)},
          {"payload_port", std::to_string(kKubePayloadPort)}};
}

std::string controller_spec(const KubeJob& job) {
  return filled(kControllerSpec, {{"pod", kube_pod(job, KubeRole::kController)}});
}

std::string jobset(const KubeJob& job) {
  GapValues values = values_of(job);
  std::string all = kube_labels(job);
  if (!job.queue.empty()) all += "\nkueue.x-k8s.io/queue-name: " + quoted(job.queue);
  values["metadata"] = metadata(job, all);
  values["suspend"] = job.queue.empty() ? "" : "suspend: true # until Kueue admits it";
  values["restarts"] = std::to_string(kRestartsMax);
  values["controller"] = controller_spec(job);
  values["nodes"] = "";
  if (job.nodes > 1) {
    const std::string spec = filled(kNodeSpec, {{"restarts", std::to_string(kNodeRestartsMax)},
                                                {"pod", kube_pod(job, KubeRole::kNode)}});
    values["nodes"] = filled(kNodesOfJobSet, {{"others", values["others"]}, {"spec", spec}});
  }
  return filled(kJobSet, values);
}

std::string plain_job(const KubeJob& job, KubeRole role) {
  GapValues values = values_of(job);
  values["metadata"] = metadata(job, kube_labels(job, role));
  values["restarts"] = std::to_string(kNodeRestartsMax);
  values["role"] = role == KubeRole::kController ? "controller" : "nodes";
  if (role == KubeRole::kController) {
    values["spec"] = controller_spec(job);
  } else {
    values["pod"] = kube_pod(job, role);
    values["spec"] = filled(kPlainNodesSpec, values);
  }
  return filled(kJob, values);
}

std::string new_claim(const KubeJob& job) {
  GapValues values = values_of(job);
  values["access"] = job.nodes > 1 ? "ReadWriteMany" : "ReadWriteOnce";
  values["class"] =
      job.storage_class.empty() ? "" : "storageClassName: " + quoted(job.storage_class);
  values["storage"] = quoted(job.storage);
  return filled(kClaim, values);
}

}  // namespace

std::string kube_manifest(const KubeJob& job) {
  CHECK(job.queue.empty() || job.form == KubeForm::kJobSet);
  GapValues values = values_of(job);
  values["controller_public"] = quoted(job.keys.controller_public);
  values["controller_secret"] = quoted(job.keys.controller_secret);
  values["node_secret"] = quoted(job.keys.node_secret);
  values["token"] = quoted(job.keys.token);
  values["job"] = "job.yaml: " + block(job.job);
  std::string text(kHead);
  if (job.claim.empty()) text += kClaimNote;
  const auto add = [&text](const std::string& document) { text += "---\n" + document + "\n"; };
  add(filled(kSecret, values));
  add(filled(kConfigMap, values));
  if (job.claim.empty()) add(new_claim(job));
  if (job.form == KubeForm::kJobSet) {
    add(jobset(job));
    return text;
  }
  if (job.nodes > 1) add(filled(kService, values));
  add(plain_job(job, KubeRole::kController));
  if (job.nodes > 1) add(plain_job(job, KubeRole::kNode));
  return text;
}

}  // namespace tandem::launch
