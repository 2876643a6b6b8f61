// One template for both roles, with gaps for that in which they differ. A pod's state folder is its
// own and not in the claim, where `fsGroup` may give the group rights to every file: Tandem refuses
// a key that others than its owner can read. Run directories are in the claim; a link below the
// state folder makes their paths the same in all pods.
#include "actors/launch/kube_pod.h"

#include <vector>

#include "actors/launch/yaml_text.h"

namespace tandem::launch {
namespace {

constexpr int kHttpPort = 7422;  // of the controller, on loopback
// A job that is cancelled has two minutes to save, and its processes half a minute to end.
constexpr int kControllerGraceSeconds = 300;
// A node whose host is to end is drained: its learner has ten minutes for its step and to save.
constexpr int kNodeGraceSeconds = 660;

constexpr std::string_view kPod = R"(
metadata:
  labels:
    @labels@
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: @grace@
  automountServiceAccountToken: false
  enableServiceLinks: false # a Service named tandem would set variables such as TANDEM_PORT
  shareProcessNamespace: true # the pod waits for processes whose parent has died
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  @tolerations@
  initContainers:
    # A key that others can read is refused, and those of a mounted Secret are.
    - name: keys
      image: @image@
      command:
        - /bin/sh
        - -euc
        - @script@
      env:
        @home@
      resources:
        requests:
          cpu: 100m
          memory: 64Mi
        limits:
          cpu: 100m
          memory: 64Mi
      securityContext:
        @confined@
      volumeMounts:
        - name: keys
          mountPath: /etc/tandem/keys
          readOnly: true
        - name: state
          mountPath: /var/lib/tandem
        - name: data
          mountPath: /tandem
  containers:
    - name: tandem
      image: @image@
      workingDir: /tandem
      command:
        @command@
      env:
        @home@
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        @address@
      @probes@
      resources:
        requests:
          @amounts@
        limits:
          @amounts@
      securityContext:
        @confined@
      volumeMounts:
        - name: data
          mountPath: /tandem
        - name: state
          mountPath: /var/lib/tandem
        - name: tmp
          mountPath: /tmp
        - name: shm
          mountPath: /dev/shm
        @job_mount@
  volumes:
    - name: data
      persistentVolumeClaim:
        claimName: @claim@
    - name: keys
      secret:
        secretName: @name@-keys-@run@
        defaultMode: 288 # 0440
        items:
          @keys@
    - name: state
      emptyDir: {}
    - name: tmp
      emptyDir: {}
    - name: shm
      emptyDir:
        medium: Memory
        sizeLimit: @shm@
    @job_volume@
)";

constexpr std::string_view kConfined = R"(
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
    - ALL
)";

// HOME is for caches of the programs that a job starts.
constexpr std::string_view kHome = R"(
- name: HOME
  value: /var/lib/tandem
- name: TANDEM_HOME
  value: /var/lib/tandem/home
)";

// The path of the run directory, below TANDEM_HOME/runs, leads to the claim in all pods.
constexpr std::string_view kNodeScript = R"(|
umask 077
install -d -m 700 "$TANDEM_HOME" "$TANDEM_HOME/keys"
cd /etc/tandem/keys
install -m 600 controller.public node.secret "$TANDEM_HOME/keys/"
mkdir -p /tandem/runs
ln -sfn /tandem/runs "$TANDEM_HOME/runs"
)";
constexpr std::string_view kControllerScript = R"(
install -m 600 controller.secret token "$TANDEM_HOME/"
mkdir -p /tandem/resume
)";

constexpr std::string_view kNodeCommand = R"(
- tandem
- node
- --controller
- @host@:@port@
- --join
- --bind
- $(POD_IP)
@node_ports@
)";

// The job comes by standard input, so that its relative paths start in the working directory.
constexpr std::string_view kControllerCommand = R"(
- /bin/sh
- -c
- @script@
)";
constexpr std::string_view kControllerRun = R"(|
exec tandem run /dev/stdin --cluster "$TANDEM_HOME/cluster" --bind "$POD_IP" \
  --port @port@@run_network@ --health-port @health_port@ --min-nodes @min_nodes@ --nodes @nodes@ \
  --link /tandem/resume/@name@-@run@ --resume-linked </etc/tandem/job/job.yaml
)";

// The controller answers after it has read the data of its job, for which it may take an hour. One
// that has died is started again by the others in its container: a probe only sees what they miss.
constexpr std::string_view kProbes = R"(
ports:
  - name: nodes
    containerPort: @port@
  - name: payloads
    containerPort: @payload_port@
  - name: health
    containerPort: @health_port@
startupProbe:
  httpGet:
    path: /healthz
    port: health
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 360
livenessProbe:
  httpGet:
    path: /healthz
    port: health
  periodSeconds: 30
  timeoutSeconds: 10
  failureThreshold: 20
readinessProbe:
  httpGet:
    path: /readyz
    port: health
  periodSeconds: 10
  timeoutSeconds: 10
)";

std::string host_of_controller(const KubeJob& job) {
  return job.form == KubeForm::kPlain ? job.name + "-controller"
                                      : job.name + "-controller-0-0." + job.name;
}

std::string secret_items(const std::vector<std::string>& files) {
  std::string made;
  for (const std::string& file : files)
    made += (made.empty() ? "" : "\n") + ("- key: " + file + "\n  path: " + file);
  return made;
}

// Adds the values in which the pod of the controller and those of nodes differ.
void add_role(const KubeJob& job, KubeRole role, GapValues& values) {
  values["host"] = host_of_controller(job);
  if (role == KubeRole::kNode) {
    values["grace"] = std::to_string(kNodeGraceSeconds);
    values["script"] = filled(kNodeScript, {});
    values["command"] = filled(kNodeCommand, values);
    values["keys"] = secret_items({"controller.public", "node.secret"});
    values["address"] = values["probes"] = values["job_mount"] = values["job_volume"] = "";
    return;
  }
  values["grace"] = std::to_string(kControllerGraceSeconds);
  values["command"] = filled(kControllerCommand, {{"script", filled(kControllerRun, values)}});
  values["script"] = filled(kNodeScript, {}) + "\n" + filled(kControllerScript, {});
  values["keys"] = secret_items({"controller.public", "controller.secret", "node.secret", "token"});
  // For the commands of `kubectl exec`.
  values["address"] =
      "- name: TANDEM_ADDRESS\n  value: \"127.0.0.1:" + std::to_string(kHttpPort) + "\"";
  values["probes"] = filled(kProbes, values);
  values["job_mount"] = "- name: job\n  mountPath: /etc/tandem/job\n  readOnly: true";
  values["job_volume"] = "- name: job\n  configMap:\n    name: " + job.name + "-job-" + job.run;
}

}  // namespace

std::string kube_labels(const KubeJob& job) {
  return "app.kubernetes.io/name: tandem\napp.kubernetes.io/instance: " + quoted(job.name);
}

std::string kube_labels(const KubeJob& job, KubeRole role) {
  return kube_labels(job) + "\napp.kubernetes.io/component: " +
         (role == KubeRole::kController ? "controller" : "node");
}

std::string kube_pod(const KubeJob& job, KubeRole role) {
  GapValues values{{"name", job.name},
                   {"run", job.run},
                   {"image", quoted(job.image)},
                   {"nodes", std::to_string(job.nodes)},
                   {"min_nodes", std::to_string(job.min_nodes)},
                   {"port", std::to_string(kKubePort)},
                   {"payload_port", std::to_string(kKubePayloadPort)},
                   {"health_port", std::to_string(kKubeHealthPort)},
                   {"node_ports", job.ports.empty() ? "" : "- --ports\n- " + quoted(job.ports)},
                   {"run_network", (job.ports.empty() ? "" : " --ports " + job.ports) +
                                       (job.plaintext_gang ? " --allow-plaintext-gang" : "")},
                   {"home", filled(kHome, {})},
                   {"confined", filled(kConfined, {})}};
  add_role(job, role, values);
  values["labels"] = kube_labels(job, role);
  values["claim"] = job.claim.empty() ? job.name + "-data" : quoted(job.claim);
  values["shm"] = quoted(job.shm.empty() ? job.memory_per_node : job.shm);
  values["amounts"] =
      "cpu: " + quoted(job.cpus_per_node) + "\nmemory: " + quoted(job.memory_per_node);
  values["tolerations"] = "";
  if (job.gpus_per_node > 0) {
    values["amounts"] += "\nnvidia.com/gpu: " + std::to_string(job.gpus_per_node);
    values["tolerations"] =
        "tolerations:\n  - key: nvidia.com/gpu\n    operator: Exists\n    effect: NoSchedule";
  }
  return filled(kPod, values);
}

}  // namespace tandem::launch
