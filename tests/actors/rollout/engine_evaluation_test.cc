// Evaluations on the native engine: beside groups, pinned to their version, repeatable.
//
// Tests actors/rollout/native_engine.h.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/rollout/engine_builder.h"

namespace tandem::rollout {
namespace {

// Runs the engine as a CPU does, and as a GPU does: with a step under way while the next is
// planned.
class EngineEvaluation : public ::testing::TestWithParam<bool> {
 protected:
  static EngineConfig base() {
    EngineConfig config = tiny_engine_config();
    config.args.async_scheduling = GetParam();
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(Scheduling, EngineEvaluation, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Async" : "Sync"; });

TEST_P(EngineEvaluation, GroupsAreGeneratedBesideAnEvaluation) {  // WQ-5
  const TinyModel model;
  EngineConfig config = base();
  config.args.max_num_seqs = 8;
  config.max_response_length = 4;  // however soon an evaluation's completions end
  messages::Evaluate evaluation{.evaluation = messages::EvaluationId{9}, .version = kV0};
  for (std::int32_t index = 0; index < 256; ++index)
    evaluation.prompts.push_back({index, kPrompts[0], 1});
  std::map<double, bool> group_came_first;
  for (const double share : {0.5, 1.0}) {
    config.evaluation_share = share;
    const auto engine = model.engine(config);
    engine->submit(evaluation);
    engine->submit(group_work(1, kPrompts[0]));
    std::vector<EngineEvent> events;
    while (engine->can_step()) {
      engine->step();
      for (EngineEvent& event : engine->poll()) events.push_back(std::move(event));
    }
    ASSERT_EQ(events.size(), 2u);
    group_came_first[share] = std::holds_alternative<messages::GroupPayload>(events.front());
  }
  EXPECT_TRUE(group_came_first[0.5]);
  EXPECT_FALSE(group_came_first[1.0]) << "the whole share is the evaluation's";
}

TEST_P(EngineEvaluation, EvaluationIsGreedyAndHoldsItsVersion) {  // WQ-1
  const TinyModel model(2);
  EngineConfig config = base();
  config.args.max_num_seqs = 8;
  const auto engine = model.engine(config);
  engine->submit(group_work(1, kPrompts[0]));
  engine->step();
  messages::Evaluate evaluation{.evaluation = messages::EvaluationId{9}, .version = kV0};
  for (std::int32_t i = 0; i < 5; ++i)
    evaluation.prompts.push_back({i, kPrompts[static_cast<std::size_t>(i)]});
  evaluation.prompts.push_back({5, "letters"});
  engine->submit(evaluation);
  engine->begin_update(kV1);
  model.fill_sink(*engine, kV1);
  std::optional<EvaluationDone> done;
  while (engine->can_step() && !done) {
    EXPECT_FALSE(engine->may_finish_update());
    engine->step();
    for (EngineEvent& event : engine->poll())
      if (auto* whole = std::get_if<EvaluationDone>(&event)) done = std::move(*whole);
  }
  ASSERT_TRUE(done);
  EXPECT_EQ(done->completions.size(), 5u);
  EXPECT_EQ(done->unservable, std::vector<std::int32_t>{5});
  EXPECT_TRUE(engine->may_finish_update());

  // The same completions alone: greedy, so no seed matters.
  const auto other = model.engine(base());
  for (const messages::EvaluationText& text : done->completions) {
    other->submit({.evaluation = messages::EvaluationId{1},
                   .version = kV0,
                   .prompts = {{0, kPrompts[static_cast<std::size_t>(text.index)]}}});
    while (other->can_step()) other->step();
    const auto events = other->poll();
    EXPECT_EQ(std::get<EvaluationDone>(events.at(0)).completions.at(0).text, text.text);
  }
}

// Whatever runs beside them and however many fit at a time: samples follow from the prompt's seed,
// and the greedy completion is that of an evaluation which is greedy.
TEST_P(EngineEvaluation, EvaluationSamplesRepeatAndTheGreedyOneIsGreedy) {  // EN-4
  const TinyModel model(2);
  const auto texts_of = [&](std::int32_t max_num_seqs,
                            const messages::EvaluationSampling& sampling) {
    EngineConfig config = base();
    config.args.max_num_seqs = max_num_seqs;
    const auto engine = model.engine(config);
    if (max_num_seqs > 8) engine->submit(group_work(1, kPrompts[1]));
    messages::Evaluate evaluation{
        .evaluation = messages::EvaluationId{9}, .version = kV0, .sampling = sampling};
    for (std::int32_t i = 0; i < 5; ++i)
      evaluation.prompts.push_back(
          {i, kPrompts[static_cast<std::size_t>(i)], 1000 + static_cast<std::uint64_t>(i)});
    engine->submit(evaluation);
    std::map<std::pair<std::int32_t, std::int32_t>, std::string> texts;
    while (engine->can_step()) {
      engine->step();
      for (EngineEvent& event : engine->poll())
        if (auto* done = std::get_if<EvaluationDone>(&event))
          for (messages::EvaluationText& text : done->completions)
            texts[{text.index, text.sample}] = std::move(text.text);
    }
    return texts;
  };
  const messages::EvaluationSampling sampled{.n = 6, .temperature = 1, .greedy = true};
  const auto some = texts_of(8, sampled);
  ASSERT_EQ(some.size(), 5u * 7);
  EXPECT_EQ(texts_of(32, sampled), some);
  const auto greedy = texts_of(8, {});
  std::set<std::string> different;
  for (std::int32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(some.at({i, 6}), greedy.at({i, 0})) << i;
    for (std::int32_t sample = 0; sample < 6; ++sample) different.insert(some.at({i, sample}));
  }
  EXPECT_GT(different.size(), 5u);
  const auto likeliest = texts_of(8, {.n = 2, .temperature = 1, .top_k = 1});
  for (std::int32_t i = 0; i < 5; ++i) EXPECT_EQ(likeliest.at({i, 1}), greedy.at({i, 0})) << i;
}

}  // namespace
}  // namespace tandem::rollout
