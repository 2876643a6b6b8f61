// A job as the manifest of Kubernetes has it (kube_manifest.h): plain values. The functions of
// kube_names.h find no fault in the texts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::launch {

inline constexpr std::string_view kClaimFolder = "/tandem";  // in every pod

// The texts of the files below a state folder that have these names (runtime/link/curve.h).
struct KubeKeys {
  std::string controller_public, controller_secret, node_secret, token;
};

enum class KubeForm { kJobSet, kPlain };

struct KubeJob {
  std::string name;        // of the objects; not_a_name() finds no fault in it
  std::string run;         // letters and digits; tells the run of this manifest from all others
  std::string space = {};  // the namespace; empty: that of the one who applies the manifest
  std::string image;
  std::int64_t nodes = 1;      // pods, the controller's among them
  std::int64_t min_nodes = 1;  // with which the job begins
  std::int64_t gpus_per_node = 0;
  std::string cpus_per_node = "4", memory_per_node = "16Gi";  // quantities
  std::string shm = {};  // the bound of /dev/shm, a quantity; empty: all of the memory
  // The claim of the volume that all pods see. Empty: the manifest has a new one, of this size and
  // class; an empty class is the cluster's default.
  std::string claim = {}, storage = "100Gi", storage_class = {};
  std::string ports = {};  // at which pods listen for each other, as of `tandem run`; empty: any
  bool plaintext_gang = false;  // likewise
  std::string queue = {};       // of Kueue; empty: none. Only with kJobSet
  std::string job;  // the text of the job file; its relative paths start in kClaimFolder
  KubeKeys keys;
  KubeForm form = KubeForm::kJobSet;
};

// Of KubeJob::job. kubectl keeps each object once more in an annotation of 256 KiB at most, where
// quotes and ends of lines take two bytes.
inline constexpr std::size_t kKubeJobBytesMax = 100 << 10;

}  // namespace tandem::launch
