// One look at a run costs a few stat calls, a try at its lock, and one small file or the end of
// one. A list of a thousand runs takes some tens of milliseconds.
//
// The files belong to other processes, and may be written, torn or replaced at any moment. Every
// file is opened as a regular file with a bound on its size, and a part that cannot be read is
// shown as missing.
#include "actors/runs/run_catalogue.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "actors/runs/run_files.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/line_file.h"

namespace tandem::runs {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kDeleted = ".deleted";  // below runs/; an empty folder per deleted run
constexpr std::size_t kSmallFileBytesMax = std::size_t{4} << 20;
constexpr std::size_t kLastLineBytes = std::size_t{256} << 10;

struct FileTimes {
  std::int64_t born_ms = 0;  // the time of the last change if the file system does not know it
  std::int64_t changed_ms = 0;
};

// statx gives the time of birth, which stat does not have. A symbolic link is not followed.
std::optional<FileTimes> times_of(const fs::path& path) {
  struct statx facts;
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME | STATX_MTIME, &facts) != 0)
    return std::nullopt;
  const auto ms = [](const statx_timestamp& time) {
    return time.tv_sec * 1000 + time.tv_nsec / 1'000'000;
  };
  const std::int64_t changed = ms(facts.stx_mtime);
  const bool known = (facts.stx_mask & STATX_BTIME) != 0;
  return FileTimes{known ? ms(facts.stx_btime) : changed, changed};
}

// The content of a file that is small by its purpose; nullopt if it is not small, or unreadable.
std::optional<std::string> small_file(const fs::path& path) {
  auto file = LineFile::open(path);
  if (!file || file->size() > kSmallFileBytesMax) return std::nullopt;
  auto text = file->read(0, file->size());
  if (!text) return std::nullopt;
  return std::move(*text);
}

json object_of(const std::optional<std::string>& text) {
  json value = text ? parse_json(*text) : json();
  return value.is_object() ? value : json();
}

// The last whole line that is a JSON object and no record of an evaluation, searched from the end
// in the file's last 256 KiB.
json last_line(const fs::path& path) {
  auto file = LineFile::open(path);
  if (!file) return json();
  const std::uint64_t bytes = std::min<std::uint64_t>(file->size(), kLastLineBytes);
  const auto text = file->read(file->size() - bytes, bytes);
  if (!text) return json();
  std::string_view rest = *text;
  while (!rest.empty()) {  // the very last line may be torn
    const std::size_t end = rest.rfind('\n');
    if (end == std::string_view::npos) return json();
    const std::size_t before = end == 0 ? std::string_view::npos : rest.rfind('\n', end - 1);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    json line = parse_json(rest.substr(begin, end - begin));
    if (line.is_object() && !line.contains("eval")) return line;
    rest = rest.substr(0, begin);
  }
  return json();
}

// The value at a path of keys, null where there is none.
json value_at(const json& object, std::initializer_list<const char*> keys) {
  const json* at = &object;
  for (const char* const key : keys) {
    if (!at->is_object()) return json();
    const auto it = at->find(key);
    if (it == at->end()) return json();
    at = &*it;
  }
  return *at;
}

json number_at(const json& object, std::initializer_list<const char*> keys) {
  json value = value_at(object, keys);
  return value.is_number() ? value : json();
}

std::string text_at(const json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

json first_of(json preferred, json other) {
  return preferred.is_null() ? std::move(other) : std::move(preferred);
}

}  // namespace

std::string name_of_run(const std::string& id) { return id.substr(0, id.rfind('-')); }

bool was_deleted(const fs::path& runs, const std::string& id) {
  std::error_code ignored;
  return fs::exists(runs / kDeleted / id, ignored);
}

std::vector<std::string> RunCatalogue::ids() const {
  std::vector<std::string> ids;
  std::error_code error;
  for (fs::directory_iterator entry(runs_, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string id = entry->path().filename().string();
    std::error_code ignored;
    // A symbolic link is not taken for a run.
    const bool folder = entry->symlink_status(ignored).type() == fs::file_type::directory;
    if (folder && !id.starts_with('.')) ids.push_back(std::move(id));
  }
  return ids;
}

std::size_t RunCatalogue::count() const { return ids().size(); }

JobFacts RunCatalogue::facts_of(const std::string& id) {
  const fs::path path = runs_ / id / "job.yaml";
  const auto times = times_of(path);
  const std::int64_t changed = times ? times->changed_ms : 0;
  // The job file is parsed outside the lock; two threads may do so at once, with the same result.
  const auto known = known_.with([&](auto& table) -> std::optional<JobFacts> {
    const auto it = table.find(id);
    if (it == table.end() || it->second.changed_ms != changed) return std::nullopt;
    return it->second.facts;
  });
  if (known) return *known;
  JobFacts facts{.name = name_of_run(id)};
  if (const auto yaml = small_file(path))
    if (auto read = read_job_.facts(*yaml, runs_ / id)) facts = std::move(*read);
  known_.with([&](auto& table) { table[id] = {changed, facts}; });
  return facts;
}

Result<JobKeys> RunCatalogue::keys_of(const Run& run) const {
  const fs::path path = run.run_dir / "job.yaml";
  const auto yaml = small_file(path);
  if (!yaml)
    return Error{ErrorCode::kNotFound, "the run has no job file that can be read", path.string(),
                 "its configuration is unknown; its other files are read all the same"};
  return read_job_.keys(*yaml, run.run_dir);
}

Run RunCatalogue::look(const std::string& id) {
  Run run{.id = id, .run_dir = runs_ / id, .job = facts_of(id)};
  // While the run is live, a result.json may be that of an earlier incarnation.
  run.live = FileLock::held(run.run_dir / "run.lock");
  if (!run.live) {
    run.result = object_of(small_file(run.run_dir / "result.json"));
    run.resume = object_of(small_file(run.run_dir / kResumeFile));
  }
  if (run.result.is_null()) run.newest = last_line(run.run_dir / "metrics.jsonl");
  const auto folder = times_of(run.run_dir);
  const auto journal = times_of(run.run_dir / "journal.sqlite");
  // The directory is made at the submission, the journal at the start.
  run.created_ms = folder ? folder->born_ms : 0;
  if (journal) run.started_ms = std::max(journal->born_ms, run.created_ms);
  if (run.live) return run;
  for (const auto& [content, file] :
       {std::pair(&run.resume, kResumeFile), std::pair(&run.result, "result.json")})
    if (const auto times = times_of(run.run_dir / file); times && !content->is_null()) {
      run.ended_ms = times->changed_ms;
      return run;
    }
  // An interrupted run ended at about the last change of a file that it wrote.
  for (const char* const file : {"journal.sqlite", "journal.sqlite-wal", "metrics.jsonl"})
    if (const auto times = times_of(run.run_dir / file))
      run.ended_ms = std::max(run.ended_ms.value_or(0), times->changed_ms);
  return run;
}

std::vector<Run> RunCatalogue::list() {
  std::vector<Run> runs;
  for (const std::string& id : ids()) runs.push_back(look(id));
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return std::pair(a.created_ms, a.id) > std::pair(b.created_ms, b.id);
  });
  return runs;
}

Result<Run> RunCatalogue::find(const std::string& wanted) {
  std::vector<std::string> found;
  for (const std::string& id : ids()) {
    if (id == wanted) return look(id);
    if (facts_of(id).name == wanted) found.push_back(id);
  }
  if (found.size() == 1) return look(found.front());
  if (found.empty())
    return Error{ErrorCode::kNotFound, "there is no run " + wanted, "",
                 "tandem get runs lists them"};
  std::sort(found.begin(), found.end());
  std::string some;
  for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 5); ++i)
    some += (i > 0 ? ", " : "") + found[i];
  return Error{ErrorCode::kInvalid, std::to_string(found.size()) + " runs have the name " + wanted,
               "", "give one's id: " + some};
}

Result<void> RunCatalogue::remove(const std::string& id) {
  const std::vector<std::string> known = ids();
  if (std::find(known.begin(), known.end(), id) == known.end())
    return Error{ErrorCode::kNotFound, "there is no run " + id, "", "tandem get runs lists them"};
  const fs::path path = runs_ / id;
  // Held until the end, the lock keeps every other process from resuming the run meanwhile.
  const auto owned =
      FileLock::take(path / "run.lock", "the run in " + path.string(),
                     "cancel it first: tandem cancel " + id + ", or Ctrl-C where it runs");
  if (!owned) {
    Error error = owned.error();
    if (FileLock::held(path / "run.lock")) error.code = ErrorCode::kInvalid;
    return error;
  }
  std::error_code error;
  fs::create_directories(runs_ / kDeleted, error);
  const fs::path removed = runs_ / kDeleted / id;
  if (!error) fs::remove_all(removed, error);  // a run of this id that was put back by hand
  // From here on the run is not listed any more (RC-2).
  if (!error) fs::rename(path, removed, error);
  // The empty folder stays, so that the number is not given again. Files that a crash left in any
  // such folder are removed as well.
  for (fs::directory_iterator run(runs_ / kDeleted, error), end; !error && run != end;
       run.increment(error))
    for (fs::directory_iterator part(run->path(), error), last; !error && part != last;
         part.increment(error))
      fs::remove_all(part->path(), error);
  if (error)
    return Error{ErrorCode::kFailed, "cannot delete the run: " + error.message(), path.string(),
                 "is the folder writable?"};
  known_.with([&](auto& table) { table.erase(id); });
  return {};
}

namespace {

std::int64_t step_of(const json& result, const json& newest) {
  return first_of(first_of(number_at(result, {"steps"}), number_at(newest, {"step"})), json(0))
      .get<std::int64_t>();
}

// The outcome of a run, and the reason.
struct RunEnd {
  std::string state, reason, message;
};

RunEnd end_of(const Run& run, std::int64_t step) {
  const json& outcome = run.resume.is_null() ? run.result : run.resume;
  RunEnd end{text_at(outcome, "state"), text_at(outcome, "reason"), text_at(outcome, "message")};
  if (run.live) {
    end.state = "Running";
  } else if (end.state.empty()) {
    // Neither a process nor a result: the process was killed, or the machine went down.
    // --resume needs the journal, which a run has once it has started.
    end = {"Interrupted", "ProcessEnded",
           run.started_ms ? "its process ended without a result; tandem run --resume " +
                                run.run_dir.string() + " takes it up"
                          : "it was never started, so there is nothing to resume; submit its job "
                            "file again"};
  } else if (!run.resume.is_null()) {
    end.message = unresumed_text(end.message, step, run.run_dir);
  }
  return end;
}

}  // namespace

std::int64_t steps_in(const fs::path& run_dir) {
  const json result = object_of(small_file(run_dir / "result.json"));
  return step_of(result, result.is_null() ? last_line(run_dir / "metrics.jsonl") : json());
}

std::string unresumed_text(const std::string& why, std::int64_t step, const fs::path& run_dir) {
  return why + "; the run was not resumed and stands at step " + std::to_string(step) +
         "; tandem run --resume " + run_dir.string() + " takes it up";
}

json run_json(const Run& run, std::int64_t now_ms) {
  const auto time = [](const std::optional<std::int64_t>& ms) { return ms ? json(*ms) : json(); };
  // A line of metrics.jsonl has the fraction of the whole run up to its step.
  const auto idle = [&](const std::string& key) {
    return first_of(number_at(run.result, {key.c_str()}),
                    number_at(run.newest, {("tandem/" + key).c_str()}));
  };
  const std::int64_t step = step_of(run.result, run.newest);
  const RunEnd end = end_of(run, step);
  return {{"id", run.id},
          {"name", run.job.name},
          {"trains", run.job.trains},
          {"run_name", run.job.run_name},
          {"group", run.job.group},
          {"tags", run.job.tags},
          {"notes", run.job.notes},
          {"state", end.state},
          {"reason", end.reason},
          {"message", end.message},
          {"step", step},
          {"total_steps", run.job.total_steps},
          {"policy_version", first_of(number_at(run.result, {"policy_version"}), json(step))},
          {"created", run.created_ms},
          {"started", time(run.started_ms)},
          {"ended", time(run.ended_ms)},
          {"age_s", static_cast<double>(std::max<std::int64_t>(now_ms - run.created_ms, 0)) / 1000},
          {"reward_mean", first_of(number_at(run.result, {"reward_mean"}),
                                   number_at(run.newest, {"critic/rewards/mean"}))},
          {"eval_final", number_at(run.result, {"eval", "final"})},
          {"eval_scored", number_at(run.result, {"eval", "counts", "final", "scored"})},
          {"eval_failed", number_at(run.result, {"eval", "counts", "final", "failed"})},
          {"eval_figures", value_at(run.result, {"eval", "figures", "final"})},
          {"staleness", value_at(run.result, {"staleness"})},
          {"trainer_idle_fraction", idle("trainer_idle_fraction")},
          {"rollout_idle_fraction", idle("rollout_idle_fraction")},
          {"cost", value_at(run.result, {"cost"})},
          {"wall_seconds", number_at(run.result, {"wall_seconds"})},
          {"run_dir", run.run_dir.string()},
          {"live", run.live}};
}

}  // namespace tandem::runs
