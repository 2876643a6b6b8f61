#include "actors/main/import_command.h"

#include <algorithm>
#include <ostream>

#include "actors/translate/dialects.h"
#include "actors/translate/read_config.h"
#include "actors/translate/translate.h"
#include "actors/translate/write_job.h"
#include "runtime/base/file.h"

namespace tandem::app {
namespace {

using translate::Severity;

constexpr std::size_t kColumns = 100;  // of the findings on stderr

std::vector<std::string> framework_names() {
  std::vector<std::string> names;
  for (const translate::Dialect& dialect : translate::dialects()) names.emplace_back(dialect.name);
  return names;
}

// "12 keys of the job, from verl. Differences: 2, not understood: 0, …".
std::string summary(const translate::Translation& translation) {
  const auto count = [&](Severity severity) {
    return std::ranges::count(translation.findings, severity, &translate::Finding::severity);
  };
  return std::to_string(translation.job.size()) + " keys of the job, from " +
         translation.framework + ". Differences: " + std::to_string(count(Severity::kDiffers)) +
         ", not understood: " + std::to_string(count(Severity::kUnknown)) +
         ", to be done: " + std::to_string(count(Severity::kToDo)) +
         ", without effect: " + std::to_string(count(Severity::kSame));
}

Result<translate::Translation> translated(const ImportCommand& command) {
  const auto config = translate::read_config(command.file);
  if (!config) return config.error();
  const translate::Dialect* dialect =
      command.from ? translate::find_dialect(*command.from) : nullptr;
  if (!dialect) {
    const auto known = translate::recognise(*config);
    if (!known) return known.error();
    dialect = *known;
  }
  return translate::translate(*config, *dialect);
}

}  // namespace

Result<int> ImportCommand::run(const cli::VerbContext& context) {
  std::error_code ignored;
  if (output && !force && std::filesystem::exists(*output, ignored))
    return Error{ErrorCode::kFailed,
                 "there is a file of this name, which may have been changed since",
                 output->string(), "`--force` replaces it; or give another name"};
  const auto translation = translated(*this);
  if (!translation) return translation.error();
  const std::string text = translate::write_job(*translation);
  if (output) {
    const auto written = write_file_atomic(*output, text);
    if (!written) return written.error();
  } else {
    context.console.out << text;
  }
  context.console.err << translate::findings_text(translation->findings, "", kColumns)
                      << summary(*translation) << "\n";
  return translate::learns_the_same(translation->findings) ? 0 : kLearnsSomethingElse;
}

cli::VerbHelp ImportCommand::help() {
  return {.name = "import",
          .group = cli::VerbGroup::kRun,
          .description = "Turn a configuration of another framework into a job file",
          .examples = {"tandem import run_grpo.sh -o job.yaml",
                       "tandem import recipe.yaml --from trl -o job.yaml",
                       "tandem import rl.toml -o job.yaml"}};
}

void ImportCommand::options(cli::Options& options) {
  options
      .add("FILE", file,
           "A YAML or TOML file, or a shell script that starts the training, of verl, TRL, "
           "OpenRLHF, AReaL, NeMo-RL, SkyRL or prime-rl; or a Python script that calls TRL's "
           "GRPOConfig")
      .required();
  options
      .add(
          "-o,--output", output,
          "Where the job file is written; else to standard output. What has no counterpart is told "
          "on stderr, and in the file's last comments")
      .value("JOB.yaml");
  options.flag("--force", force, "Replace the file that --output names");
  options.add("--from", from, "The framework; else it is known by the file's keys")
      .value("NAME")
      .choices(framework_names());
}

}  // namespace tandem::app
