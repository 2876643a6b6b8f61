// The manifest by which Kubernetes runs a job of Tandem: YAML documents for `kubectl apply`, which
// a person can read, keep and apply again. Kubernetes gives the pods; one of them becomes a
// `tandem run`, whose cluster the agents of the others join at a name that stays the same. Each
// manifest has keys of its own, and one run. Pure.
//
//   KU-1  A pod of a node that fails is replaced alone. In the form of a JobSet the loss of the
//         controller's pod replaces all pods, the old ones first, and the job goes on with its run;
//         a failure that `tandem run` itself reports as final replaces none.
//   KU-2  No container is root or has a capability; each writes to the claim, to the pod's own
//         folders, and nowhere else.
//   KU-3  The pod of a node cannot read the controller's secret key, nor the token.
//
// The form for clusters without JobSet has two Jobs. A StatefulSet or a Deployment would start its
// pods again for ever, also after the run has ended. Kubernetes cannot replace the pods of several
// Jobs together: there the loss of the controller's pod ends the attempt, and the same manifest,
// applied again once the Jobs are deleted, goes on with the run.
//
// JobSet's action RestartJob would replace one node alone as well. It is an alpha feature of JobSet
// 0.12, whose webhook refuses it unless an administrator has turned it on. The Job of each node
// replaces its own pod instead (backoffLimit).
//
// Fields are those of Kubernetes 1.31 and of JobSet 0.8, and of later ones.
#pragma once

#include <string>

#include "actors/launch/kube_job.h"

namespace tandem::launch {

// A queue is for KubeForm::kJobSet alone (CHECKed): Kueue would admit the two Jobs one by one.
std::string kube_manifest(const KubeJob& job);

}  // namespace tandem::launch
