#include "actors/reward/code_verifier.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/home_path.h"
#include "runtime/node/resources.h"
#include "runtime/sandbox/tree.h"

namespace tandem::reward {
namespace {

constexpr std::uint64_t kCaseProcesses = 64;
constexpr std::uint64_t kCaseFileBytes = 64u << 20;
constexpr std::uint64_t kCaseScratchBytes = 128u << 20;

std::vector<std::string> environment_of(const node::ChildProgram& program) {
  // Sets and dicts in one order each time, so that a verdict repeats.
  std::map<std::string, std::string> variables{
      {"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"LANG", "C.UTF-8"}, {"PYTHONHASHSEED", "0"}};
  for (const auto& [name, value] : program.env) variables[name] = value;
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

int threads_here() {
  const auto machine = node::read_machine_resources();
  return machine ? std::max(1, static_cast<int>(std::ceil(machine->cpus))) : 1;
}

messages::TrajectoryScore judge_item(const CodeTools& tools, const ScoreItem& item, int stop) {
  const auto tests = tests_of(item.answer, item.data);
  if (!tests) return messages::ScoreFailed{tests.error().message};
  const auto language = language_for(*tests, tools.reward.language);
  if (!language) return messages::ScoreFailed{language.error().message};
  return judge_code(tools, program_in(item.completion, *language), *tests, stop);
}

}  // namespace

CodeVerifier::CodeVerifier(CodeTools tools, int threads)
    : tools_(std::make_shared<const CodeTools>(std::move(tools))), workers_(threads) {}

void CodeVerifier::score(actor::Context& cx, ScoreItem item, Done done) {
  workers_.post([this, tools = tools_, done = std::move(done), post = cx.turn_poster(),
                 item = std::move(item)](int stop) {
    auto score = judge_item(*tools, item, stop);
    post([this, done, score = std::move(score)](actor::Context& later) {
      judged(later, score, done);
    });
  });
}

void CodeVerifier::judged(actor::Context& cx, const messages::TrajectoryScore& score,
                          const Done& done) {
  if (const auto* failed = std::get_if<messages::ScoreFailed>(&score); failed && told_)
    told_(cx, {.kind = messages::TroubleKind::kReported, .what = failed->reason});
  done(cx, score);
}

Result<std::unique_ptr<Verifier>> make_code_verifier(const CodeReward& reward,
                                                     const node::ChildProgram& program,
                                                     const std::string& python, int retries,
                                                     std::optional<int> threads) {
  const auto interpreter = interpreter_of(python);
  if (!interpreter) return interpreter.error();
  CodeTools tools{.reward = reward,
                  .box = program.sandbox.value_or(sandbox::Box{sandbox::no_sandbox(), {}}),
                  .environment = environment_of(program),
                  .python = *interpreter,
                  .compiler = compiler_here(),
                  .retries = retries};
  if (const auto able = can_compile(tools); !able && reward.language == CodeLanguage::kCpp)
    return Error{ErrorCode::kInvalid, able.error().message, "reward.language", able.error().help};
  sandbox::Profile& profile = tools.box.profile;
  profile.memory_bytes = reward.memory_bytes;
  profile.processes = kCaseProcesses;
  profile.cpu_seconds =
      static_cast<std::uint64_t>(std::max(1.0, std::ceil(seconds(reward.case_timeout))));
  profile.file_bytes = kCaseFileBytes;
  profile.scratch_bytes = kCaseScratchBytes;
  for (const std::string& tool : {tools.python, tools.compiler})
    if (!tool.empty())
      for (const std::string& path : sandbox::readable_for(tool, home_folder()))
        profile.readable.push_back(path);
  return std::unique_ptr<Verifier>(
      std::make_unique<CodeVerifier>(std::move(tools), threads ? *threads : threads_here()));
}

}  // namespace tandem::reward
