#include "actors/job/job_files.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "actors/job/foreign_input.h"
#include "actors/model/model_directory.h"
#include "runtime/base/file.h"
#include "runtime/base/text.h"
#include "runtime/node/find_program.h"

namespace tandem::job {
namespace {

namespace fs = std::filesystem;

// The line `number`, from 0, without its end; empty where there is none.
std::string_view line_of(std::string_view text, int number) {
  for (; number > 0; --number) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  return number < 0 ? std::string_view() : text.substr(0, text.find('\n'));
}

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
  void model(const fs::path& folder, const WrittenJob& written) const {
    const SourcePosition at = position_of("model.path");
    if (at.source == 0)
      if (const auto noted = noted_hub_id_error(folder, line_of(written.yaml, at.line)))
        return faults.add(at, noted->message, noted->help);
    for (const fs::path& base : written.bases)
      if (const auto hub = hub_id_error(folder, base, at.text))
        return faults.add(at, hub->message, hub->help);
    std::error_code ignored;
    if (readable(folder / "config.json", "model.path") || fs::is_directory(folder, ignored))
      // Another form of a tokenizer is refused by its reader, which knows a remedy.
      if (!model::other_tokenizer(folder)) readable(folder / "tokenizer.json", "model.path");
  }

  // `path` is the PATH in which a name without a slash is searched; it may be null.
  void program(const std::string& name, const char* path, const std::string& key) const {
    if (node::find_program(name, path)) return;
    const bool is_path = name.find('/') != std::string::npos;
    faults.add(
        position_of(key), "cannot run `" + name + "`, named by `" + key + "`",
        is_path ? "the file must exist and be executable (chmod +x)" : "no such program in PATH");
  }

  // The program of a reward is searched in the PATH of its env, if that has one.
  void reward(const NamedReward& reward) const {
    const RewardPartSpec& spec = *reward.spec;
    const auto given = spec.env.find("PATH");
    const char* const path = given == spec.env.end() ? std::getenv("PATH") : given->second.c_str();
    if (spec.command) program(spec.command->front(), path, reward.path + ".command");
    if (!spec.function) return;
    program(spec.python.text, path, reward.path + ".python");
    const std::string file = spec.function->text.substr(0, spec.function->text.rfind(':'));
    if (file.ends_with(".py")) readable(file, reward.path + ".function");
  }
};

}  // namespace

void check_files(const JobSpec& job, const WrittenJob& written, const PositionOf& position_of,
                 JobFaults& faults) {
  const FileCheck check{position_of, faults};
  for (const auto& [name, actor] : job.actors)
    check.program(actor.command->front(), std::getenv("PATH"), "actors." + name + ".command");
  if (!trains(job)) return;
  check.model(job.model.path, written);
  if (job.data.system_prompt_file)
    check.readable(*job.data.system_prompt_file, "data.system_prompt_file");
  check.all_readable(job.data.train_files, "data.train_files");
  check.all_readable(job.data.val_files, "data.val_files");
  if (job.warm_start) check.all_readable(job.warm_start->train_files, "warm_start.train_files");
  check_reward_files(job, position_of, faults);
}

void check_reward_files(const JobSpec& job, const PositionOf& position_of, JobFaults& faults) {
  const FileCheck check{position_of, faults};
  for (const NamedReward& reward : rewards_of(job.reward)) check.reward(reward);
}

void take_system_prompt(JobSpec& job, const PositionOf& position_of, JobFaults& faults) {
  if (!job.data.system_prompt_file) return;
  const fs::path file = *std::exchange(job.data.system_prompt_file, std::nullopt);
  const auto refuse = [&](std::string message, std::string help) {
    faults.add(position_of("data.system_prompt_file"), std::move(message), std::move(help));
  };
  auto text = read_file(file, kSystemPromptBytesMax);
  if (!text)
    return refuse("cannot read " + file.string() +
                      ", named by `data.system_prompt_file`: " + cause_of(text.error()),
                  text.error().help);
  if (text->ends_with('\n')) text->pop_back();
  if (text->ends_with('\r')) text->pop_back();
  if (text->empty())
    return refuse(file.string() + ", named by `data.system_prompt_file`, is empty",
                  "write the system prompt into it, or leave the key out");
  if (valid_utf8(*text) != *text || text->find('\0') != text->npos)
    return refuse(file.string() + ", named by `data.system_prompt_file`, is not UTF-8 text",
                  "save it as UTF-8");
  job.data.system_prompt = *std::move(text);
}

}  // namespace tandem::job
