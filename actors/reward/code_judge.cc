// Python programs reach the interpreter by its stdin, before the input of the case: no file of ours
// is in the sandbox. C++ programs are compiled in a sandbox as well, since a compiler can be made
// to read files and to run for ever; the executable comes back by stdout, and is executed from
// memory. Asserts of C++ are compiled into it, all cases into one, of which a run executes one.
#include "actors/reward/code_judge.h"

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <variant>

#include "actors/reward/cpp_asserts.h"
#include "runtime/base/file.h"
#include "runtime/base/secret.h"
#include "runtime/base/text.h"
#include "runtime/node/find_program.h"
#include "runtime/node/last_lines.h"
#include "runtime/sandbox/run.h"

namespace tandem::reward {
namespace {

using nlohmann::json;
using sandbox::Outcome;
using sandbox::RunEnd;

constexpr std::size_t kOutputBytesMax = 4u << 20;       // of a case
constexpr std::size_t kExecutableBytesMax = 64u << 20;  // of a compiled program
constexpr std::uint64_t kCompilerBytes = 2u << 30;      // memory, at least
constexpr std::size_t kResultsShown = 200;              // of the cases, in `extra`
constexpr std::size_t kWhyBytesMax = 300;
constexpr std::size_t kShownBytesMax = 60;  // of an output in `why`
constexpr int kAssertFailed = 96;           // the runner's exit code

// Reads the program, and what else a case has, from stdin by counts of bytes, so that the rest of
// stdin is the program's own. Arguments: kind, bytes of the program, bytes of the case's input.
//
// The interpreter starts without its packages, whose folders can take longer to look through than a
// case takes to run; the first import that needs them looks.
constexpr const char* kRunner = R"(import builtins, os, sys, _sitebuiltins
builtins.exit = builtins.quit = _sitebuiltins.Quitter("exit", "")
class _Packages:
    def find_spec(self, name, path=None, target=None):
        if path is not None: return None
        sys.meta_path.remove(self)
        import importlib.util, site
        site.main()
        return importlib.util.find_spec(name)
sys.meta_path.append(_Packages())
def _take(count):
    held = b""
    while len(held) < count:
        more = os.read(0, count - len(held))
        if not more: os._exit(97)
        held += more
    return held.decode("utf-8", "replace")
_kind, _size, _more = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
_program = compile(_take(_size), "program.py", "exec")
sys.argv = ["program.py"]
if _kind == "output":
    exec(_program, globals())
else:
    import json
    _out = os.dup(1)
    os.dup2(2, 1)
    exec(_program, globals())
    _input = json.loads(_take(_more))
    if _kind == "call":
        _function = globals().get(_input["function"]) or getattr(Solution(), _input["function"])
        _said = json.dumps(_function(*_input["arguments"]), default=list)
    else:
        try:
            exec(compile(_input["test"], "test.py", "exec"), globals())
        except AssertionError:
            import traceback
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(96)
        _said = _input["word"]
    sys.stdout.flush()
    _said = _said.encode()
    while _said: _said = _said[os.write(_out, _said):]
)";

enum class Verdict : std::uint8_t { kPassed, kWrong, kError, kTimeout, kNotRun };
constexpr auto enum_names(Verdict) {
  using enum Verdict;
  return enum_name_rows<Verdict>({{kPassed, "passed"},
                                  {kWrong, "wrong"},
                                  {kError, "error"},
                                  {kTimeout, "timeout"},
                                  {kNotRun, "not run"}});
}

struct CaseResult {
  Verdict verdict = Verdict::kNotRun;
  std::string why = {};
};

std::string shown(std::string_view text) {
  return "\"" + node::one_line(text, kShownBytesMax) + "\"";
}

std::string last_line(std::string_view text) {
  const auto end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return "";
  text = text.substr(0, end + 1);
  return node::one_line(text.substr(text.find_last_of('\n') + 1), kWhyBytesMax / 2);
}

std::uint64_t whole_seconds(Duration duration) {
  return static_cast<std::uint64_t>(std::max(1.0, std::ceil(seconds(duration))));
}

// What kept a run from an answer; nullopt: it exited with code 0.
std::optional<CaseResult> fault_of(const Outcome& outcome) {
  const std::string said = last_line(outcome.errors);
  const std::string with = said.empty() ? "" : ": " + said;
  switch (outcome.end) {
    case RunEnd::kDeadline:
      return CaseResult{Verdict::kTimeout, "it did not end in time"};
    case RunEnd::kOutput:
      return CaseResult{Verdict::kError,
                        "it wrote more than " + std::to_string(kOutputBytesMax) + " bytes"};
    case RunEnd::kMemory:
      return CaseResult{Verdict::kError, "its processes took more memory than it has"};
    case RunEnd::kStopped:
      return CaseResult{};
    case RunEnd::kSignal:
      if (outcome.code == SIGXCPU)
        return CaseResult{Verdict::kTimeout, "it took more CPU time than it has"};
      return CaseResult{Verdict::kError, std::string("it was killed by a signal, ") +
                                             strsignal(outcome.code) + with};
    case RunEnd::kExited:
      break;
  }
  if (outcome.code == 0) return std::nullopt;
  if (outcome.code == kAssertFailed) return CaseResult{Verdict::kWrong, "an assert failed"};
  return CaseResult{Verdict::kError, "it exited with code " + std::to_string(outcome.code) + with};
}

// A run, tried again where the machine had no room for it.
Result<Outcome> run_again(const CodeTools& tools, const sandbox::Profile& profile,
                          const sandbox::Run& what) {
  for (int left = tools.retries;; --left) {
    Result<Outcome> outcome = sandbox::run(tools.box.plan, profile, what);
    if (outcome || left <= 0) return outcome;
  }
}

// One program in the form in which it is run.
struct Runnable {
  CodeLanguage language = CodeLanguage::kPython;
  std::string text;    // of Python
  OwnedFd executable;  // of C++
};

struct NoCompile {
  std::string why;
};

using MaybeRunnable = std::variant<Runnable, NoCompile>;

Result<Outcome> compile(const CodeTools& tools, const std::string& text,
                        const std::vector<std::string>& flags, int stop) {
  sandbox::Profile profile = tools.box.profile;
  profile.memory_bytes = std::max(profile.memory_bytes.value_or(kCompilerBytes), kCompilerBytes);
  profile.cpu_seconds = whole_seconds(tools.reward.compile_timeout);
  constexpr const char* kScript =
      "\"$0\" -O2 -w -std=gnu++20 \"$@\" -x c++ -o program - >&2 && cat program";
  std::vector<std::string> argv{"/bin/sh", "-c", kScript, tools.compiler};
  argv.insert(argv.end(), flags.begin(), flags.end());
  return run_again(tools, profile,
                   {.argv = std::move(argv),
                    .environment = tools.environment,
                    .input = text,
                    .deadline = tools.reward.compile_timeout * kClockPerCpu,
                    .output_bytes_max = kExecutableBytesMax,
                    .stop = stop});
}

// Why a compiler made nothing of a program, in one line; nullopt: it made a program of it.
std::optional<std::string> refusal_of(const Outcome& outcome) {
  const auto fault = fault_of(outcome);
  if (!fault) return std::nullopt;
  const std::size_t at = outcome.errors.find("error:");
  const std::string said = at == std::string::npos
                               ? fault->why
                               : outcome.errors.substr(at, outcome.errors.find('\n', at) - at);
  return node::one_line(said, kWhyBytesMax / 2);
}

// Whether the fault may be the machine's: the compiler ended with an error and did not say where in
// the program. It starts processes, for which there may be no room, and reads its own files.
bool may_be_ours(const Outcome& outcome) {
  const bool ended = outcome.end == RunEnd::kExited || outcome.end == RunEnd::kSignal;
  return ended && outcome.errors.find("<stdin>:") == std::string::npos;
}

// As refusal_of(). An Error: the compiler makes nothing of any program.
Result<std::optional<std::string>> refusal_or_ours(const CodeTools& tools, const Outcome& outcome,
                                                   int stop) {
  const auto refusal = refusal_of(outcome);
  if (!refusal || !may_be_ours(outcome)) return refusal;
  const auto smallest = compile(tools, "int main() {}\n", {}, stop);
  if (!smallest) return smallest.error();
  if (const auto fault = refusal_of(*smallest))
    return Error{ErrorCode::kFailed,
                 tools.compiler + " does not even compile an empty program: " + *fault};
  return refusal;
}

// The program that a compiler made, or `trouble` and why it made none.
Result<MaybeRunnable> program_of(const CodeTools& tools, const Outcome& outcome,
                                 const std::string& trouble, int stop) {
  const auto refusal = refusal_or_ours(tools, outcome, stop);
  if (!refusal) return refusal.error();
  if (*refusal) return MaybeRunnable(NoCompile{trouble + ": " + **refusal});
  Result<OwnedFd> executable = sandbox::executable_of(outcome.output);
  if (!executable) return executable.error();
  return MaybeRunnable(Runnable{CodeLanguage::kCpp, "", *std::move(executable)});
}

constexpr const char* kNoCompile = "it does not compile";

Result<MaybeRunnable> compiled(const CodeTools& tools, const std::string& program, int stop) {
  const auto outcome = compile(tools, program, {}, stop);
  if (!outcome) return outcome.error();
  return program_of(tools, *outcome, kNoCompile, stop);
}

// A program that compiles, but not with its tests, may lack the function that is asked for, or the
// tests may be wrong: a compiler cannot tell. It scores 0, as every public harness has it, and the
// reason differs from that of a program that does not compile alone.
Result<MaybeRunnable> compiled_with_tests(const CodeTools& tools, const std::string& program,
                                          const CodeTests& tests, int stop) {
  const auto build = [&](CppNames names) {
    return compile(tools, cpp_with_tests(program, tests, names), {kCppAssertsFlag}, stop);
  };
  const auto usual = build(CppNames::kUsual);
  if (!usual) return usual.error();
  if (!refusal_of(*usual)) return program_of(tools, *usual, kNoCompile, stop);
  const auto alone = compile(tools, cpp_program(program, CppNames::kUsual), {"-c"}, stop);
  if (!alone) return alone.error();
  const auto refusal = refusal_or_ours(tools, *alone, stop);
  if (!refusal) return refusal.error();
  if (*refusal) {
    const auto own = build(CppNames::kOwn);
    if (!own) return own.error();
    if (!refusal_of(*own)) return program_of(tools, *own, kNoCompile, stop);
    return MaybeRunnable(NoCompile{std::string(kNoCompile) + ": " + **refusal});
  }
  const auto all = build(CppNames::kAll);
  if (!all) return all.error();
  return program_of(tools, *all, "it compiles, but not with its tests", stop);
}

Result<MaybeRunnable> runnable(const CodeTools& tools, const CodeProgram& program,
                               const CodeTests& tests, int stop) {
  if (program.language == CodeLanguage::kPython)
    return MaybeRunnable(Runnable{CodeLanguage::kPython, program.text, {}});
  if (const auto able = can_compile(tools); !able) return able.error();
  if (tests.kind == CaseKind::kAssert) return compiled_with_tests(tools, program.text, tests, stop);
  return compiled(tools, program.text, stop);
}

// What a run reads from stdin; in Python behind the program.
std::string case_input(CodeLanguage language, const CodeTests& tests, std::size_t index,
                       const std::string& word) {
  const std::string& input = tests.cases[index].input;
  switch (tests.kind) {
    case CaseKind::kOutput:
      return input;
    case CaseKind::kCall:
      return "{\"function\":" + dump_json(tests.function) + ",\"arguments\":" + input + "}";
    case CaseKind::kAssert:
      break;
  }
  if (language == CodeLanguage::kCpp) return std::to_string(index) + " " + word;
  return dump_json({{"test", tests.before + input}, {"word", word}});
}

const char* runner_kind(CaseKind kind) {
  switch (kind) {
    case CaseKind::kOutput:
      return "output";
    case CaseKind::kCall:
      return "call";
    case CaseKind::kAssert:
      break;
  }
  return "assert";
}

sandbox::Run run_of(const CodeTools& tools, const Runnable& program, CaseKind kind,
                    const std::string& input, int stop) {
  sandbox::Run run{.environment = tools.environment,
                   .deadline = tools.reward.case_timeout * kClockPerCpu,
                   .output_bytes_max = kOutputBytesMax,
                   .stop = stop};
  if (program.language == CodeLanguage::kCpp) {
    run.argv = {"program"};
    run.executable = program.executable.get();
    run.input = input;
    return run;
  }
  run.argv = {tools.python,
              "-BSsc",
              kRunner,
              runner_kind(kind),
              std::to_string(program.text.size()),
              std::to_string(kind == CaseKind::kOutput ? 0 : input.size())};
  run.input = program.text + input;
  return run;
}

CaseResult compared(const CodeTests& tests, const CodeCase& one, const std::string& output,
                    const std::string& word) {
  bool same = false;
  switch (tests.kind) {
    case CaseKind::kOutput:
      same = same_output(one.expected, output);
      break;
    case CaseKind::kCall:
      if (output.empty()) return {Verdict::kError, "it ended without an answer"};
      same = same_value(parse_json(one.expected), parse_json(output));
      break;
    case CaseKind::kAssert:
      if (output.ends_with(word)) return {Verdict::kPassed};
      return {Verdict::kError, "it ended before the asserts did"};
  }
  if (same) return {Verdict::kPassed};
  return {Verdict::kWrong, "expected " + shown(one.expected) + ", not " + shown(output)};
}

// The condition of the C++ assert that ended a program, as the C library writes it to stderr.
std::optional<std::string> failed_assert(const Outcome& outcome) {
  constexpr std::string_view kBegin = "Assertion `", kEnd = "' failed.";
  const std::string_view errors = outcome.errors;
  const auto begin = errors.rfind(kBegin);
  if (outcome.end != RunEnd::kSignal || outcome.code != SIGABRT || begin == errors.npos)
    return std::nullopt;
  const auto text = errors.substr(begin + kBegin.size());
  return node::one_line(text.substr(0, text.find(kEnd)), kWhyBytesMax / 2);
}

Result<CaseResult> run_case(const CodeTools& tools, const Runnable& program, const CodeTests& tests,
                            std::size_t index, int stop) {
  const std::string word = tests.kind == CaseKind::kAssert ? random_secret() : "";
  const std::string input = case_input(program.language, tests, index, word);
  const auto outcome =
      run_again(tools, tools.box.profile, run_of(tools, program, tests.kind, input, stop));
  if (!outcome) return outcome.error();
  if (tests.kind == CaseKind::kAssert && program.language == CodeLanguage::kCpp)
    if (const auto condition = failed_assert(*outcome))
      return CaseResult{Verdict::kWrong, "an assert failed: " + *condition};
  if (auto fault = fault_of(*outcome)) return *std::move(fault);
  return compared(tests, tests.cases[index], outcome->output, word);
}

// Runs all cases of the tests, with CodeScore::kAll until one does not pass.
Result<std::vector<CaseResult>> results_of(const CodeTools& tools, const CodeProgram& program,
                                           const CodeTests& tests, int stop) {
  const auto ready = runnable(tools, program, tests, stop);
  if (!ready) return ready.error();
  if (const auto* refused = std::get_if<NoCompile>(&*ready))
    return std::vector<CaseResult>{{Verdict::kError, refused->why}};
  std::vector<CaseResult> results;
  for (std::size_t i = 0; i < tests.cases.size(); ++i) {
    const auto result = run_case(tools, std::get<Runnable>(*ready), tests, i, stop);
    if (!result) return result.error();
    results.push_back(*result);
    if (tools.reward.score == CodeScore::kAll && result->verdict != Verdict::kPassed) break;
  }
  return results;
}

// Whether each case needs a program of its own: those of C++ that have a `main`.
bool are_apart(const CodeProgram& program, const CodeTests& tests) {
  return program.language == CodeLanguage::kCpp && tests.kind == CaseKind::kAssert &&
         std::ranges::any_of(tests.cases, has_main, &CodeCase::input);
}

messages::Scored scored(const CodeTools& tools, CodeLanguage language,
                        const std::vector<CaseResult>& results) {
  json words = json::array();
  std::size_t passed = 0;
  std::string why;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const CaseResult& result = results[i];
    passed += result.verdict == Verdict::kPassed ? 1 : 0;
    if (words.size() < kResultsShown) words.push_back(spelling(result.verdict));
    if (why.empty() && !result.why.empty())
      why = "case " + std::to_string(i + 1) + ": " + result.why;
  }
  json extra{{"passed", passed},
             {"cases", results.size()},
             {"language", spelling(language)},
             {"results", std::move(words)}};
  if (!why.empty()) extra["why"] = cut_utf8(why, kWhyBytesMax);
  const bool all = passed == results.size();
  const double share = static_cast<double>(passed) / static_cast<double>(results.size());
  return {.value = tools.reward.score == CodeScore::kFraction ? share : (all ? 1.0 : 0.0),
          .extra = dump_json(extra)};
}

}  // namespace

Result<std::string> interpreter_of(const std::string& name) {
  const auto found = node::find_program(name, getenv("PATH"));
  if (!found)
    return Error{ErrorCode::kInvalid, "there is no " + name, "reward.python",
                 "name an interpreter that exists"};
  constexpr Duration kPatience = std::chrono::seconds(60);
  std::vector<std::string> environment;
  for (const char* variable : {"PATH", "HOME"})
    if (const char* value = getenv(variable))
      environment.push_back(std::string(variable) + "=" + value);
  sandbox::Profile wide;
  wide.memory_bytes.reset();
  const auto outcome = sandbox::run(sandbox::no_sandbox(), wide,
                                    {.argv = {*found, "-c", "import sys; print(sys.executable)"},
                                     .environment = environment,
                                     .deadline = kPatience});
  if (!outcome) return outcome.error();
  std::string path = outcome->output.substr(0, outcome->output.find('\n'));
  if (outcome->end != RunEnd::kExited || outcome->code != 0 || !path.starts_with('/'))
    return Error{ErrorCode::kInvalid,
                 found->string() + " is no Python that runs: " + last_line(outcome->errors),
                 "reward.python"};
  return path;
}

std::string compiler_here() {
  for (const char* name : {"g++", "clang++", "c++"})
    if (const auto found = node::find_program(name, getenv("PATH"))) return *found;
  return "";
}

Result<void> can_compile(const CodeTools& tools) {
  if (tools.compiler.empty())
    return Error{ErrorCode::kNotFound, "this node has no C++ compiler: neither g++ nor clang++", "",
                 "install g++ on the nodes of the reward actors"};
  if (tools.box.plan.end == sandbox::EndOfAll::kNoForks)
    return Error{ErrorCode::kFailed,
                 "a C++ compiler starts processes, and the sandbox of this node refuses them", "",
                 "allow user namespaces there, or use Linux 6.12 or later"};
  return {};
}

messages::TrajectoryScore judge_code(const CodeTools& tools, const CodeProgram& program,
                                     const CodeTests& tests, int stop) {
  const std::size_t count = std::min<std::size_t>(
      tests.cases.size(),
      static_cast<std::size_t>(tools.reward.cases_max.value_or(std::int64_t{1} << 40)));
  const std::size_t at_once = are_apart(program, tests) ? 1 : count;
  CodeTests part{.kind = tests.kind, .function = tests.function, .before = tests.before};
  std::vector<CaseResult> results;
  for (std::size_t first = 0; first < count; first += at_once) {
    const auto begin = tests.cases.begin() + static_cast<std::ptrdiff_t>(first);
    part.cases.assign(begin, begin + static_cast<std::ptrdiff_t>(at_once));
    const auto some = results_of(tools, program, part, stop);
    if (!some) return messages::ScoreFailed{some.error().message};
    results.insert(results.end(), some->begin(), some->end());
    if (tools.reward.score == CodeScore::kAll && results.back().verdict != Verdict::kPassed) break;
  }
  results.resize(count);
  return scored(tools, program.language, results);
}

}  // namespace tandem::reward
