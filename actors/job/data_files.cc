#include "actors/job/data_files.h"

#include <string>
#include <system_error>
#include <utility>

#include "actors/job/dataset_folder.h"
#include "actors/job/file_pattern.h"

namespace tandem::job {

namespace fs = std::filesystem;

Result<std::vector<fs::path>> data_files(const fs::path& entry, Split split) {
  std::error_code ignored;
  if (fs::is_directory(entry, ignored)) return files_of_folder(entry, split);
  // A file whose name has a bracket is that file.
  if (fs::exists(entry, ignored) || !is_pattern(entry.native())) return std::vector{entry};
  auto files = files_matching("", entry);
  if (files && files->empty())
    return Error{ErrorCode::kFailed, "no file matches " + entry.string(), entry.string(),
                 "`*` stands for any part of one name, `**` for any folders"};
  return files;
}

void settle_data_files(JobSpec& job, const PositionOf& position_of, JobFaults& faults) {
  const auto settle = [&](std::vector<fs::path>& entries, const std::string& key, Split split) {
    std::vector<fs::path> files;
    for (const fs::path& entry : entries) {
      auto found = data_files(entry, split);
      // A fault of the whole job, so that the entry need not stay.
      if (!found)
        faults.add(position_of(key), "`" + key + "`: " + found.error().message, found.error().help);
      else
        files.insert(files.end(), found->begin(), found->end());
    }
    entries = std::move(files);
  };
  settle(job.data.train_files, "data.train_files", Split::kTrain);
  settle(job.data.val_files, "data.val_files", Split::kHeldOut);
  if (job.warm_start) settle(job.warm_start->train_files, "warm_start.train_files", Split::kTrain);
}

}  // namespace tandem::job
