// Tests score_command.h, score_summary.h and judging.h: given completions are scored by the very
// verifiers of a job, in the order of the input, and everything that goes wrong has its name.
#include "actors/main/score_command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <sstream>

#include "actors/main/score_summary.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/rng.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

struct Done {
  Result<int> code = 0;
  std::string out, err;
  json lines() const {  // of -o jsonl
    json all = json::array();
    std::istringstream text(out);
    for (std::string line; std::getline(text, line);) all.push_back(parse_json(line));
    return all;
  }
};

Done run(ScoreCommand command) {
  std::ostringstream out, err;
  const cli::Console console{.out = out, .err = err, .width = {}};
  Done done{command.run({.console = console}), out.str(), err.str()};
  return done;
}

class ScoreCommandTest : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    model::testing::write_text(folder_ / name, text);
    return (folder_ / name).string();
  }
  ScoreCommand of_type(const std::string& type, const Words& files, const Words& sets = {}) const {
    return {.files = files, .type = type, .sets = sets, .output = cli::OutputForm::kJsonl};
  }
  const fs::path folder_ = model::testing::scratch_folder("score_command");
};

TEST_F(ScoreCommandTest, SaysWhatIsPaidAndWhy) {
  const std::string records = file(
      "a.jsonl",
      R"({"prompt": "1+1=", "completion": "it is \\boxed{2}", "answer": "2", "data_source": "easy"}

{"prompt": "?", "completions": ["7", [{"role": "assistant", "content": "so 8"}]], "answer": 8}
{"prompt": "1+1=", "error": "the payload is damaged"}
{"prompt": "1+1=", "completion": "2"}
)");
  const Done done = run(of_type("math", {records}));
  EXPECT_EQ(done.code.value(), 1) << "a completion failed";
  EXPECT_EQ(done.lines(), parse_json(R"([
    {"line": 1, "completion": "it is \\boxed{2}", "answer": "2", "data_source": "easy", "found": "2", "reward": 1.0},
    {"line": 3, "sample": 0, "completion": "7", "answer": 8, "found": "7", "reward": 0.0},
    {"line": 3, "sample": 1, "completion": "so 8", "answer": 8, "found": "8", "reward": 1.0},
    {"line": 5, "completion": "2", "found": "2", "error": "the record has no answer"}])"));
  for (const char* said : {"easy", "all", "1 failed: the record has no answer", "1 skipped"})
    EXPECT_NE(done.err.find(said), std::string::npos) << said << " in\n" << done.err;

  ScoreCommand table = of_type("math", {records});
  table.output = cli::OutputForm::kTable;
  const std::string text = run(table).out;
  for (const char* said :
       {"     1         1  found 2, answer 2\n", "   3.0         0  found 7, answer 8\n",
        "     5         -  failed: the record has no answer\n", "REWARDS"})
    EXPECT_NE(text.find(said), std::string::npos) << said << " in\n" << text;

  ScoreCommand whole = of_type("math", {records, records});
  whole.output = cli::OutputForm::kJson;
  const json answer = parse_json(run(whole).out);
  EXPECT_EQ(answer["scores"].size(), 8u);
  EXPECT_EQ(answer["scores"][4]["file"], records);
  EXPECT_EQ(answer["summary"]["count"], 8);
  EXPECT_EQ(answer["summary"]["mean"], 4.0 / 6);
  EXPECT_EQ(answer["summary"]["skipped"], 2);
  EXPECT_EQ(answer["summary"]["failures"], json({{"the record has no answer", 2}}));
  EXPECT_EQ(answer["summary"]["sources"]["easy"]["count"], 2);
  whole.summary = true;
  EXPECT_EQ(parse_json(run(whole).out)["summary"], answer["summary"]);
}

TEST_F(ScoreCommandTest, TakesTheKeysAndTheRewardOfAJob) {
  const std::string job = file("job.yaml", R"(
name: j
model: {path: missing}
data: {train_files: [missing.jsonl], answer_key: gold, completion_key: text}
reward: {type: regex, pattern: '= (\d+)', on_failure: -1}
)");
  const std::string records = file("a.jsonl", R"({"prompt": "", "text": "x = 12", "gold": 12}
{"prompt": "", "text": "x = 12"}
)");
  const Done done = run({.job = job, .files = {records}, .output = cli::OutputForm::kJsonl});
  const json lines = done.lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["reward"], 1.0);
  EXPECT_EQ(lines[0]["found"], "12");
  EXPECT_EQ(lines[1]["reward"], -1.0) << "on_failure";
  EXPECT_EQ(lines[1]["error"], "the record has no answer");
}

// More completions than are under judgement at a time, by a program that answers in reverse.
TEST_F(ScoreCommandTest, ManyCompletionsOfAProgramStayInOrder) {
  const std::string program = file("grade.py", R"(
import json, os, sys
held = []
while True:
    data = os.read(0, 1 << 20)
    if not data: break
    held.append(data)
    if not data.endswith(b"\n"): continue
    for line in reversed(b"".join(held).splitlines()):
        item = json.loads(line)
        print(json.dumps({"id": item["id"], "score": int(item["completion"]), "extra": {"pred": "p"}}))
    held = []
    sys.stdout.flush()
)");
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += "{\"prompt\": \"\", \"completion\": \"" + std::to_string(i) + "\"}\n";
  const Done done = run(
      of_type("command", {file("a.jsonl", text)}, {"reward.command=[python3, " + program + "]"}));
  EXPECT_EQ(done.code.value(), 0);
  const json lines = done.lines();
  ASSERT_EQ(lines.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(lines[static_cast<std::size_t>(i)]["reward"], i);
  EXPECT_EQ(lines[999]["extra"], json({{"pred", "p"}}));
}

// As by `tandem run`, before anything is started.
TEST_F(ScoreCommandTest, AMissingProgramIsRefusedAtOnce) {
  const std::string records = file("a.jsonl", "{\"prompt\": \"\", \"completion\": \"1\"}\n");
  for (const auto& [type, set] :
       {std::pair("command", "reward.command=[/nonexistent]"),
        std::pair("python", "reward.function=/nonexistent/reward.py:score")}) {
    const Done gone = run(of_type(type, {records}, {set}));
    ASSERT_FALSE(gone.code) << type;
    EXPECT_NE(gone.code.error().message.find("/nonexistent"), std::string::npos);
    EXPECT_EQ(gone.code.error().code, ErrorCode::kFailed);
    EXPECT_EQ(gone.out, "");
  }
}

// More records than are under judgement at a time: each has its line, whatever the program does.
TEST_F(ScoreCommandTest, AProgramThatIsGivenUpFailsAllThatAreLeft) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "{\"prompt\": \"\", \"completion\": \"1\"}\n";
  const std::string function = file("reward.py", "import nothing_of_that_name\n");
  const Done done =
      run(of_type("python", {file("a.jsonl", text)}, {"reward.function=" + function + ":score"}));
  ASSERT_TRUE(done.code) << done.code.error().message;
  EXPECT_EQ(done.code.value(), 1) << "one failed";
  const json lines = done.lines();
  ASSERT_EQ(lines.size(), 300u);
  EXPECT_NE(lines[299]["error"].get<std::string>().find("never answered"), std::string::npos)
      << lines[299];
  EXPECT_NE(done.err.find("300 failed"), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("start the program by hand"), std::string::npos) << done.err;
  EXPECT_EQ(done.err.find("`tandem score`"), std::string::npos) << "it is what was run";
}

TEST_F(ScoreCommandTest, AProgramThatNeverAnswersIsNamed) {
  const std::string records = file("a.jsonl", "{\"prompt\": \"\", \"completion\": \"1\"}\n");
  const Done hangs =
      run(of_type("command", {records},
                  {"reward.command=[sleep, \"60\"]", "reward.timeout_s=0.02", "reward.retries=0"}));
  EXPECT_EQ(hangs.lines()[0]["error"], "the program hung for 0.02 s without an answer");
}

TEST_F(ScoreCommandTest, ReadsAPipeAsItIsWritten) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const std::string text = "{\"prompt\": \"\", \"completion\": \"3\", \"answer\": \"3\"}\n";
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), std::ssize(text));
  ::close(ends[1]);
  const Done done = run(of_type("exact", {"/dev/fd/" + std::to_string(ends[0])}));
  ::close(ends[0]);
  EXPECT_EQ(done.code.value(), 0);
  EXPECT_EQ(done.lines()[0]["reward"], 1.0);
}

TEST_F(ScoreCommandTest, BadInputIsNamedWithItsLine) {
  const std::string good = "{\"prompt\": \"\", \"completion\": \"3\", \"answer\": \"3\"}\n";
  for (const auto& [bad, said] : {std::pair{"[1]\n", "the line is not a JSON object"},
                                  {"{\"completion\": 3}\n", "has no text `completion`"},
                                  {"{\"prompt\": \"\"}\n", "has no text `completion`"},
                                  {"{\"completions\": [\"a\", 7]}\n", "an entry that is no text"},
                                  {"{\"completion\": \"", "the line is not a JSON object"}}) {
    const std::string records = file("bad.jsonl", good + bad);
    const Done done = run(of_type("exact", {records}));
    ASSERT_FALSE(done.code) << bad;
    EXPECT_NE(done.code.error().message.find(said), std::string::npos) << done.code.error().message;
    EXPECT_EQ(done.code.error().where, records + ":2");
    EXPECT_EQ(done.lines().size(), 1u) << "what came before is scored";
  }
  const auto error_of = [&](const ScoreCommand& command) { return run(command).code.error(); };
  EXPECT_EQ(error_of(of_type("exact", {file("empty.jsonl", "\n")})).message,
            "there is no completion to score");
  EXPECT_EQ(error_of(of_type("exact", {(folder_ / "none").string()})).code, ErrorCode::kFailed);
  EXPECT_NE(error_of(of_type("ezact", {"-"})).message.find("exact, math"), std::string::npos);
  EXPECT_EQ(error_of(of_type("regex", {"-"})).message,
            "`reward.type: regex` needs `reward.pattern`");
}

// The figures are those of the plain formulas over all rewards.
TEST(ScoreSummary, FiguresAreThoseOfTheRewards) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const std::size_t count = 1 + rng.below(seed % 2 ? 5000 : 12);
    RewardFigures figures;
    std::vector<double> rewards;
    for (std::size_t i = 0; i < count; ++i) {
      rewards.push_back(static_cast<double>(rng.below(1'000'000)) / 1e4 - 50);
      figures.scored(rewards.back());
    }
    double mean = 0, squares = 0;
    for (const double reward : rewards) mean += reward / static_cast<double>(count);
    for (const double reward : rewards)
      squares += (reward - mean) * (reward - mean) / static_cast<double>(count);
    const json found = figures.json();
    EXPECT_NEAR(found["mean"].get<double>(), mean, 1e-9);
    EXPECT_NEAR(found["std"].get<double>(), std::sqrt(squares), 1e-9);
    EXPECT_EQ(found["min"], *std::ranges::min_element(rewards));
    EXPECT_EQ(found["max"], *std::ranges::max_element(rewards));
    std::size_t binned = 0;
    for (const json& bin : found["histogram"]) binned += bin["count"].get<std::size_t>();
    EXPECT_EQ(binned, count);
    EXPECT_LE(found["histogram"].size(), kHistogramBins);
  }
}

TEST(ScoreSummary, HoldsABoundedNumberOfSourcesAndReasons) {
  ScoreSummary summary;
  for (int i = 0; i < 1000; ++i)
    summary.add("source" + std::to_string(i), messages::ScoreFailed{"reason " + std::to_string(i)});
  const json all = summary.json();
  EXPECT_EQ(all["sources"].size(), kSourcesShownMax + 1);
  EXPECT_EQ(all["failures"].size(), kReasonsKept + 1);
  EXPECT_EQ(all["failures"]["others"], 1000 - kReasonsKept);
  EXPECT_TRUE(all["mean"].is_null());
}

}  // namespace
}  // namespace tandem::app
