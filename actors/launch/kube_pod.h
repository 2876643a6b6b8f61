// The pods of a job (kube_manifest.h), as the template that the objects which make them have. Pure.
#pragma once

#include <string>

#include "actors/launch/kube_job.h"

namespace tandem::launch {

enum class KubeRole { kController, kNode };

// Lines of YAML: the labels of all objects of the job, and those by which its pods are found.
std::string kube_labels(const KubeJob& job);
std::string kube_labels(const KubeJob& job, KubeRole role);

// A port of the controller: for nodes, for payloads, and of /healthz and /readyz.
inline constexpr int kKubePort = 7420, kKubePayloadPort = 7421, kKubeHealthPort = 7423;

// `metadata:` and `spec:` of a pod.
std::string kube_pod(const KubeJob& job, KubeRole role);

}  // namespace tandem::launch
