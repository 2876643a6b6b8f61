// Prompts by which the real engine dies: a model in which one token's embedding is NaN, so that the
// log-probabilities of every completion of a prompt with that token are no numbers. The engine says
// so and ends, as it does for damaged weights. The token is a space, which no other prompt has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "runtime/base/file.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kSpaceToken = 15;          // of the tokenizer of configs/models/arithmetic
constexpr const char* kDeadlyPrompt = "1 + 2=";  // has two of them
constexpr int kQuarantineSteps = 12;
// The model must never sample the space, which would be as deadly: with logits that are so many
// times larger it samples nothing but its best token.
constexpr float kSharper = 30;

// The bytes of a tensor in a safetensors file, as floats that may be changed.
std::vector<float> floats_of(const std::string& bytes, const json& tensor, std::size_t data) {
  EXPECT_EQ(tensor["dtype"], "F32");
  const std::size_t begin = tensor["data_offsets"][0], end = tensor["data_offsets"][1];
  std::vector<float> values((end - begin) / sizeof(float));
  std::memcpy(values.data(), bytes.data() + data + begin, end - begin);
  return values;
}

void poison(const fs::path& file) {
  std::string bytes = read_file(file).value();
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::size_t data = sizeof header + header;
  const json tensors = parse_json(bytes.substr(sizeof header, header));
  const auto change = [&](const char* name, const auto& how) {
    const json& tensor = tensors.at(name);
    std::vector<float> values = floats_of(bytes, tensor, data);
    how(values, tensor["shape"][1].template get<std::size_t>());
    std::memcpy(bytes.data() + data + tensor["data_offsets"][0].template get<std::size_t>(),
                values.data(), values.size() * sizeof(float));
  };
  change("model.embed_tokens.weight", [](std::vector<float>& rows, std::size_t columns) {
    std::fill_n(rows.begin() + static_cast<std::ptrdiff_t>(kSpaceToken * columns), columns,
                std::numeric_limits<float>::quiet_NaN());
  });
  change("lm_head.weight", [](std::vector<float>& rows, std::size_t) {
    for (float& value : rows) value *= kSharper;
  });
  std::ofstream(file, std::ios::binary) << bytes;
}

// A few lines of a data file of configs/data, with the deadly prompt as the line `deadly`.
std::string data_file(const Home& home, const std::string& name, int lines, int deadly) {
  std::ifstream from(fs::path(TANDEM_SOURCE_DIR) / "configs/data" / name);
  const fs::path path = home.path() / name;
  std::ofstream to(path);
  std::string line;
  for (int i = 0; i < lines && std::getline(from, line); ++i)
    to << (i == deadly ? json{{"prompt", kDeadlyPrompt}, {"answer", "003"}}.dump() : line) << "\n";
  return "[" + path.string() + "]";
}

// A run's weights of its own, which are not tied to its output, as a model to begin with.
std::string poisoned_model(const Home& home) {
  const fs::path from = fs::path(TANDEM_SOURCE_DIR) / "configs/models/arithmetic";
  const fs::path plain = home.path() / "plain", model = home.path() / "model";
  fs::create_directories(plain);
  fs::copy(from / "tokenizer.json", plain / "tokenizer.json");
  json config = parse_json(read_file(from / "config.json").value());
  config["tie_word_embeddings"] = false;
  std::ofstream(plain / "config.json") << config;
  home.train(kSmallId, small_job(4, {"data.val_files=[]", "model.path=" + plain.string()}));
  fs::copy(home.run_dir(kSmallId) / "checkpoints" / "step-4", model, fs::copy_options::recursive);
  fs::remove_all(home.run_dir(kSmallId));
  poison(model / "model.safetensors");
  return model.string();
}

Words job_of(const Home& home, const Words& settings) {
  return small_job(kQuarantineSteps,
                   Words{"model.path=" + poisoned_model(home), "model.init=pretrained",
                         "warm_start=null", "rollout.replicas=2"} +
                       settings);
}

bool any_sample_of(const Home& home, const std::string& start) {
  for (const json& line : lines_of(home.run_dir(kSmallId) / "samples.jsonl"))
    if (line.value("error", "").starts_with(start) && line["prompt"] == kDeadlyPrompt) return true;
  return false;
}

// The result of the job, which runs to its good end on a cluster of `home`.
json result_of(const Home& home, const Words& job) {
  home.up();
  EXPECT_EQ(home.run(Words{"submit"} + job).code, 0);
  const Finished waited = home.run({"wait", kSmallId, "--for", "Succeeded", "--timeout", "120s"});
  EXPECT_EQ(waited.code, 0) << waited.text() << home.run({"events"}).text();
  return waited.code == 0 ? home.result_of(kSmallId) : json();
}

TEST(Quarantine, APromptByWhichTheEngineDiesIsTakenOutAndTheJobEndsWell_PQ2) {
  const Home home;
  const Words job = job_of(
      home, {"data.val_files=[]", "data.train_files=" + data_file(home, "train.jsonl", 64, 5)});
  const json result = result_of(home, job);
  ASSERT_TRUE(result.is_object());
  EXPECT_EQ(result["steps"], kQuarantineSteps);
  EXPECT_GE(result["ledger"]["discarded"]["poison_prompt"], 1);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  const std::string events = home.run({"events"}).text();
  EXPECT_NE(events.find("is quarantined as poison_prompt"), std::string::npos) << events;
  EXPECT_NE(events.find(kDeadlyPrompt), std::string::npos) << events;
  EXPECT_NE(events.find("log-probability"), std::string::npos) << "the engine's words\n" << events;
  const std::string failed = home.run({"samples", kSmallId, "--failed"}).text();
  EXPECT_NE(failed.find("poison_prompt: it was in "), std::string::npos) << failed;
  EXPECT_TRUE(any_sample_of(home, "poison_prompt: "));
  // Two crashes in company at most, and two alone for each group of that prompt.
  const std::int64_t crashes = journal_value(
      home.run_dir(kSmallId), "select count(*) from journal where kind = 'engine_crashed'");
  EXPECT_GE(crashes, 2);
  EXPECT_LE(crashes, 4 * result["ledger"]["discarded"]["poison_prompt"].get<std::int64_t>());
  home.down();
  home.expect_nothing_left();
}

TEST(Quarantine, APromptOfTheEvaluationsByWhichTheEngineDiesFailsAndTheOthersAreScored_PQ4) {
  const Home home;
  const Words job = job_of(home, {"data.train_files=" + data_file(home, "train.jsonl", 64, -1),
                                  "data.val_files=" + data_file(home, "val.jsonl", 24, 7)});
  const json result = result_of(home, job);
  ASSERT_TRUE(result.is_object());
  EXPECT_EQ(result["steps"], kQuarantineSteps);
  EXPECT_FALSE(result["ledger"]["discarded"].contains("poison_prompt")) << result["ledger"];
  const json& last = result["eval"]["counts"]["final"];
  EXPECT_EQ(last["scored"], 23) << result["eval"];
  EXPECT_EQ(last["failed"], 1);
  const std::string events = home.run({"events"}).text();
  EXPECT_NE(events.find("prompt 7 of the evaluations is quarantined as poison_prompt"),
            std::string::npos)
      << events;
  EXPECT_TRUE(any_sample_of(home, "poison_prompt: "));
  home.down();
  home.expect_nothing_left();
}

}  // namespace
}  // namespace tandem::e2e
