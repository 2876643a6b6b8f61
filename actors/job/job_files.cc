#include "actors/job/job_files.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "actors/job/foreign_input.h"
#include "runtime/base/file.h"

namespace tandem::job {
namespace {

namespace fs = std::filesystem;

struct FileCheck {
  const PositionOf& position_of;
  JobFaults& faults;

  bool readable(const fs::path& file, const std::string& key) const {
    const auto opened = open_regular(file);
    if (!opened)
      faults.add(
          position_of(key),
          "cannot read " + file.string() + ", named by `" + key + "`: " + cause_of(opened.error()),
          "relative paths in a job file start at the job file's folder");
    return opened.has_value();
  }

  void all_readable(const std::vector<fs::path>& files, const std::string& key) const {
    for (const fs::path& file : files) readable(file, key);
  }

  // A path is absolute by now; it may have been relative to the job file or, by --set, to the
  // caller. Where the folder is missing, only one of its files is reported.
  void model(const fs::path& folder, std::span<const fs::path> bases) const {
    const SourcePosition at = position_of("model.path");
    for (const fs::path& base : bases)
      if (const auto hub = hub_id_error(folder, base, at.text))
        return faults.add(at, hub->message, hub->help);
    std::error_code ignored;
    if (readable(folder / "config.json", "model.path") || fs::is_directory(folder, ignored))
      readable(folder / "tokenizer.json", "model.path");
  }

  // Looks for the program: a name with a slash is a path, any other one is searched in `path`,
  // which may be null.
  void program(const std::string& name, const char* path, const std::string& key) const {
    std::vector<fs::path> candidates;
    const bool is_path = name.find('/') != std::string::npos;
    if (is_path) {
      candidates.emplace_back(name);
    } else {
      std::istringstream folders(path ? path : "/usr/bin:/bin");
      for (std::string folder; std::getline(folders, folder, ':');)
        candidates.push_back(fs::path(folder) / name);
    }
    for (const fs::path& candidate : candidates)
      if (std::error_code ignored;
          fs::is_regular_file(candidate, ignored) && ::access(candidate.c_str(), X_OK) == 0)
        return;
    faults.add(
        position_of(key), "cannot run `" + name + "`, named by `" + key + "`",
        is_path ? "the file must exist and be executable (chmod +x)" : "no such program in PATH");
  }
};

}  // namespace

void check_files(const JobSpec& job, std::span<const fs::path> bases, const PositionOf& position_of,
                 JobFaults& faults) {
  const FileCheck check{position_of, faults};
  for (const auto& [name, actor] : job.actors)
    check.program(actor.command->front(), std::getenv("PATH"), "actors." + name + ".command");
  if (!trains(job)) return;
  check.model(job.model.path, bases);
  check.all_readable(job.data.train_files, "data.train_files");
  check.all_readable(job.data.val_files, "data.val_files");
  if (job.warm_start) check.all_readable(job.warm_start->train_files, "warm_start.train_files");
  if (!job.reward.command) return;
  // The program of a reward is searched in the PATH of reward.env, if that has one.
  const auto given = job.reward.env.find("PATH");
  check.program(job.reward.command->front(),
                given == job.reward.env.end() ? std::getenv("PATH") : given->second.c_str(),
                "reward.command");
}

}  // namespace tandem::job
