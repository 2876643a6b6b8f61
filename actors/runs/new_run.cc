#include "actors/runs/new_run.h"

#include <unistd.h>

#include <system_error>

#include "actors/runs/run_catalogue.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace tandem::runs {

namespace fs = std::filesystem;

Result<fs::path> make_run_directory(const fs::path& runs, const std::string& name,
                                    const std::string& yaml) {
  std::error_code error;
  fs::create_directories(runs, error);
  for (int n = 1; !error; ++n) {
    const std::string id = name + "-" + std::to_string(n);
    const fs::path path = runs / id;
    // The number of a deleted run is not used again (RC-2).
    if (was_deleted(runs, id)) continue;
    if (!fs::create_directory(path, error)) continue;
    // The job file comes first: a directory without one is empty.
    const auto written = write_file_atomic(path / "job.yaml", yaml);
    if (!written) {
      ::rmdir(path.c_str());
      return written.error();
    }
    fs::create_directories(path / "logs", error);
    if (!error) return path;
  }
  return Error{ErrorCode::kFailed, "cannot make a run directory: " + error.message(), runs.string(),
               "set TANDEM_HOME to a folder that you can write"};
}

void remove_empty_runs(const fs::path& runs, const std::set<std::string>& owned) {
  const auto old = fs::file_time_type::clock::now() - kRunIsBeingMade;
  std::error_code failed;
  for (fs::directory_iterator run(runs, failed), end; !failed && run != end;
       run.increment(failed)) {
    std::error_code unknown;
    const std::string id = run->path().filename().string();
    if (id.starts_with('.') || owned.contains(id)) continue;
    if (const auto changed = run->last_write_time(unknown); unknown || changed > old) continue;
    // rmdir removes nothing but an empty directory.
    if (::rmdir(run->path().c_str()) == 0) log::info("event=empty_run_removed run={}", id);
  }
}

}  // namespace tandem::runs
