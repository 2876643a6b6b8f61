// The native engine on tiny models. Most tests compare two engines with the same work, bit for bit.
#include "actors/rollout/native_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "actors/model/kv_cache.h"
#include "actors/model/parameters.h"
#include "runtime/base/rng.h"
#include "runtime/device/parallel.h"
#include "tests/actors/messages/latency_counts.h"
#include "tests/actors/rollout/engine_builder.h"

namespace tandem::rollout {
namespace {

using namespace std::chrono_literals;

std::vector<messages::GroupWork> all_groups() {
  std::vector<messages::GroupWork> groups;
  for (std::size_t i = 0; i < kPrompts.size(); ++i) groups.push_back(group_work(i, kPrompts[i]));
  return groups;
}

Payloads generate(const TinyModel& model, const EngineConfig& config,
                  const std::vector<messages::GroupWork>& groups, device::Stream stream = {}) {
  const auto engine = model.engine(config, stream);
  for (const messages::GroupWork& group : groups) engine->submit(group);
  Payloads payloads = run_to_end(*engine);
  EXPECT_EQ(payloads.size(), groups.size());
  EXPECT_EQ(engine->pages_free(), engine->pages_total()) << "NE-3";
  return payloads;
}

// ST-1 and ST-2 for an engine all of whose requests have become `payloads`.
void expect_complete(const EngineStats& stats, const Payloads& payloads) {
  std::uint64_t sequences = 0, tokens = 0;
  for (const auto& [id, payload] : payloads)
    for (const messages::Trajectory& t : payload.trajectories) {
      ++sequences;
      tokens += t.tokens.size();
    }
  EXPECT_EQ(stats.generation_tokens, tokens);
  expect_counts_fit(stats.latencies, tokens);
  EXPECT_EQ(count_of(stats.latencies.queue), sequences) << "ST-2";
  EXPECT_EQ(count_of(stats.latencies.request), sequences) << "ST-2";
}

void expect_same(const Payloads& a, const Payloads& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (const auto& [id, payload] : a)
    rollout::expect_same(payload, b.at(id), what + ", group " + std::to_string(id.value));
}

std::size_t pages_bytes(const TinyModel& model, int pages) {
  return static_cast<std::size_t>(pages) * model::KvCache::page_bytes(model.config(), 16);
}

// Runs the engine as a CPU does, and as a GPU does: with a step under way while the next is
// planned.
class NativeEngineTest : public ::testing::TestWithParam<bool> {
 protected:
  static EngineConfig base() {
    EngineConfig config = tiny_engine_config();
    config.args.async_scheduling = GetParam();
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(Scheduling, NativeEngineTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Async" : "Sync"; });

TEST_P(NativeEngineTest, TokensDoNotDependOnTheCompany) {  // NE-1, NE-4, EN-4
  const TinyModel model;
  const EngineConfig config = base();
  Payloads alone;
  for (const messages::GroupWork& group : all_groups())
    alone.merge(generate(model, tiny_engine_config(), {group}));
  std::size_t tokens = 0;
  for (const auto& [id, payload] : alone)
    for (const messages::Trajectory& t : payload.trajectories) tokens += t.tokens.size();
  EXPECT_GT(tokens, 100u) << "the comparison needs something to compare";

  expect_same(alone, generate(model, config, all_groups()), "batched");
  for (const int sequences : {1, 2, 3, 5, 7}) {
    EngineConfig few = config;
    few.args.max_num_seqs = sequences;
    expect_same(alone, generate(model, few, all_groups()),
                "max_num_seqs " + std::to_string(sequences));
  }
  for (const int chunk : {1, 3, 7, 16, 33}) {
    EngineConfig chunked = config;
    chunked.args.max_num_batched_tokens = chunk;
    expect_same(alone, generate(model, chunked, all_groups()), "chunk " + std::to_string(chunk));
  }
  EngineConfig uncached = config;
  uncached.args.enable_prefix_caching = false;
  expect_same(alone, generate(model, uncached, all_groups()), "no prefix cache");
  EngineConfig wide_pages = config;
  wide_pages.args.block_size = 32;
  expect_same(alone, generate(model, wide_pages, all_groups()), "pages of 32");
  device::ThreadPool threads(3);
  expect_same(alone, generate(model, config, all_groups(), {.pool = &threads}), "three threads");
}

// A prompt that is one token draws its first in its first step; a sampler of fewer rows than a
// step's forks draws in several calls.
TEST_P(NativeEngineTest, MoreForksThanTheSamplerHasRows) {  // NE-1, EN-4
  const TinyModel model;
  EngineConfig config = base();
  const std::vector<messages::GroupWork> groups{group_work(1, "9", 11),
                                                group_work(2, kPrompts[1], 7)};
  const Payloads roomy = generate(model, tiny_engine_config(), groups);
  for (const int sequences : {1, 2, 3}) {
    config.args.max_num_seqs = sequences;
    expect_same(roomy, generate(model, config, groups), std::to_string(sequences));
  }
}

TEST(NativeEngineAsync, AStepIsQueuedBeforeTheOneBeforeIsTaken) {
  const TinyModel model;
  EngineConfig config = tiny_engine_config();
  config.sampling.min_tokens = config.max_response_length = 6;
  const auto sync = model.engine(config);
  config.args.async_scheduling = true;
  const auto async = model.engine(config);
  for (NativeEngine* engine : {sync.get(), async.get()}) engine->submit(group_work(1, "1+2=", 3));
  std::uint64_t before = 0;
  for (int step = 0; step < 6; ++step) {
    sync->step();
    async->step();
    EXPECT_EQ(async->stats().generation_tokens, before) << "known one step later, step " << step;
    before = sync->stats().generation_tokens;
    EXPECT_EQ(before, 3u * static_cast<unsigned>(step + 1));
  }
  EXPECT_FALSE(sync->can_step());
  ASSERT_TRUE(async->can_step()) << "the last draw is still to be taken";
  async->step();
  EXPECT_FALSE(async->can_step());
  EXPECT_EQ(async->poll().size(), 1u);
  EXPECT_EQ(async->stats().generation_tokens, before);
  EXPECT_EQ(async->pages_free(), async->pages_total()) << "NE-3";
}

TEST_P(NativeEngineTest, InBf16TokensDoNotDependOnTheCompany) {  // NE-1, NE-4
  const TinyModel model(1, device::DType::kBF16);
  Payloads alone;
  for (const messages::GroupWork& group : all_groups())
    alone.merge(generate(model, tiny_engine_config(), {group}));
  EngineConfig config = base();
  config.args.max_num_seqs = 5;
  config.args.max_num_batched_tokens = 7;
  device::ThreadPool threads(3);
  expect_same(alone, generate(model, config, all_groups(), {.pool = &threads}), "chunks of 7");
}

TEST_P(NativeEngineTest, PreemptedSequencesContinueBitForBit) {  // NE-1
  const TinyModel model;
  EngineConfig config = base();
  config.sampling.min_tokens = 30;
  const Payloads roomy = generate(model, config, all_groups());
  for (const int pages : {7, 9, 14}) {
    config.kv_memory_bytes = pages_bytes(model, pages);
    const auto engine = model.engine(config);
    ASSERT_EQ(engine->pages_total(), pages);
    for (const messages::GroupWork& group : all_groups()) engine->submit(group);
    const Payloads tight = run_to_end(*engine);
    EXPECT_GT(engine->stats().preemptions, 0u) << pages << " pages";
    expect_complete(engine->stats(), tight);
    EXPECT_EQ(engine->pages_free(), pages) << "NE-3";
    expect_same(roomy, tight, std::to_string(pages) + " pages");
  }
}

TEST_P(NativeEngineTest, LogprobsEqualTheLearnersBitForBit) {  // NE-2
  for (const auto& [dtype, temperature] : {std::pair{device::DType::kF32, 1.0f},
                                           {device::DType::kF32, 0.7f},
                                           {device::DType::kBF16, 1.0f},
                                           {device::DType::kBF16, 0.7f}}) {
    const TinyModel model(1, dtype);
    EngineConfig config = base();
    config.sampling.temperature = temperature;
    config.sampling.top_k = temperature < 1 ? 5 : 0;  // truncation changes no log-probability
    for (const auto& [id, payload] : generate(model, config, all_groups()))
      for (const messages::Trajectory& t : payload.trajectories)
        EXPECT_EQ(t.logprobs, learner_logprobs({}, model, kV0, payload, t, temperature))
            << device::name(dtype) << ", temperature " << temperature << ", group " << id.value;
  }
}

TEST(NativeEngineTimes, SequencesAreTimedFromTheirSubmissionOn) {  // ST-1, ST-2
  const TinyModel model;
  EngineConfig config = tiny_engine_config();
  config.sampling.min_tokens = config.max_response_length = 3;
  Time now{};
  const auto engine = model.engine(config, {}, [&now] { return now; });
  engine->submit(group_work(1, "1+2=", 2));
  Payloads payloads;
  for (int step = 0; step < 3; ++step) {
    now = now + 600ms;
    engine->step();
  }
  gather(*engine, payloads);
  const EngineStats stats = engine->stats();
  expect_complete(stats, payloads);
  EXPECT_EQ(engine->tokens().generation_tokens, stats.generation_tokens);
  EXPECT_EQ(engine->tokens().prompt_tokens, stats.prompt_tokens);
  EXPECT_EQ(stats.prompt_tokens, 4u);
  EXPECT_NEAR(stats.latencies.queue.sum, 2 * 0.6, 1e-9);
  EXPECT_NEAR(stats.latencies.first_token.sum, 2 * 0.6, 1e-9);
  EXPECT_NEAR(stats.latencies.prefill.sum, 0, 1e-9) << "within one step of this clock";
  EXPECT_NEAR(stats.latencies.token.sum, 4 * 0.6, 1e-9);
  EXPECT_NEAR(stats.latencies.decode.sum, 2 * 1.2, 1e-9);
  EXPECT_NEAR(stats.latencies.request.sum, 2 * 1.8, 1e-9);
}

TEST_P(NativeEngineTest, APromptIsComputedOnceForItsGroup) {
  const TinyModel model;
  const auto engine = model.engine(base());
  engine->submit(group_work(1, kPrompts[4], 16));
  const Payloads payloads = run_to_end(*engine);
  EXPECT_EQ(payloads.at(GroupId{1}).trajectories.size(), 16u);
  EXPECT_EQ(engine->stats().prompt_tokens, kPrompts[4].size());

  // The whole pages of the prompt serve a later group of the same version.
  engine->submit(group_work(2, kPrompts[4], 2));
  run_to_end(*engine);
  EXPECT_EQ(engine->stats().prefix_cache_hits, 32u);
  EXPECT_EQ(engine->stats().prompt_tokens, 2 * kPrompts[4].size() - 32);
}

// Steps until every group has `tokens` sampled tokens or so, then updates to version 1.
Payloads generate_across_update(const TinyModel& model, NativeEngine& engine, int steps) {
  Payloads payloads;
  for (int step = 0; step < steps && engine.can_step(); ++step) {
    engine.step();
    gather(engine, payloads);
  }
  model.update(engine, kV1);
  payloads.merge(run_to_end(engine));
  return payloads;
}

TEST_P(NativeEngineTest, SpansTellWhichVersionSampledWhat) {  // EN-3
  const TinyModel model(2);
  for (const KvOnUpdate kv : {KvOnUpdate::kKeep, KvOnUpdate::kRecompute}) {
    EngineConfig config = base();
    config.kv_on_update = kv;
    config.sampling.min_tokens = 20;
    const auto engine = model.engine(config);
    for (const messages::GroupWork& group : all_groups()) engine->submit(group);
    const Payloads payloads = generate_across_update(model, *engine, 10);
    ASSERT_EQ(payloads.size(), kPrompts.size());
    for (const auto& [id, payload] : payloads)
      for (const messages::Trajectory& t : payload.trajectories) {
        ASSERT_EQ(t.versions.size(), 2u);
        EXPECT_EQ(t.versions[0].version, kV0);
        EXPECT_EQ(t.versions[0].begin, 0);
        EXPECT_EQ(t.versions[0].end, t.versions[1].begin);
        EXPECT_EQ(t.versions[1].version, kV1);
        EXPECT_EQ(t.versions[1].end, std::ssize(t.tokens));
        EXPECT_EQ(t.oldest, kV0);
        const auto border = t.versions[1].begin;
        const auto old_policy = learner_logprobs({}, model, kV0, payload, t, 1.0f);
        const auto new_policy = learner_logprobs({}, model, kV1, payload, t, 1.0f);
        EXPECT_TRUE(
            std::equal(t.logprobs.begin(), t.logprobs.begin() + border, old_policy.begin()));
        const bool as_new =
            std::equal(t.logprobs.begin() + border, t.logprobs.end(), new_policy.begin() + border);
        EXPECT_EQ(as_new, kv == KvOnUpdate::kRecompute) << "the version of the keys and values";
      }
    EXPECT_EQ(engine->pages_free(), engine->pages_total()) << "NE-3";
  }
}

TEST_P(NativeEngineTest, OldestCountsTheKeysAndValuesThatWereRead) {  // EN-3
  const TinyModel model(2);
  EngineConfig config = base();
  config.args.max_num_batched_tokens = 16;  // the prompt takes several steps
  const auto engine = model.engine(config);
  engine->submit(group_work(1, kPrompts[4]));
  const Payloads payloads = generate_across_update(model, *engine, 1);
  for (const messages::Trajectory& t : payloads.at(GroupId{1}).trajectories) {
    ASSERT_EQ(t.versions.size(), 1u);
    EXPECT_EQ(t.versions[0].version, kV1) << "sampled by the new version alone";
    EXPECT_EQ(t.oldest, kV0) << "on a prompt that the old one began";
  }
  // The pages of that mixed prompt are not offered to others.
  engine->submit(group_work(2, kPrompts[4]));
  const Payloads fresh = run_to_end(*engine);
  EXPECT_EQ(engine->stats().prefix_cache_hits, 0u);
  for (const messages::Trajectory& t : fresh.at(GroupId{2}).trajectories) {
    EXPECT_EQ(t.oldest, kV1);
    EXPECT_EQ(t.logprobs, learner_logprobs({}, model, kV1, fresh.at(GroupId{2}), t, 1.0f));
  }
}

TEST_P(NativeEngineTest, WithoutPartialRolloutAnUpdateWaitsForWhatRuns) {  // EN-1, WQ-3
  const TinyModel model(2);
  EngineConfig config = base();
  config.partial_rollout = false;
  const auto engine = model.engine(config);
  engine->submit(group_work(1, kPrompts[0]));
  engine->step();
  engine->begin_update(kV1);
  model.fill_sink(*engine, kV1);
  engine->submit(group_work(2, kPrompts[1]));
  Payloads payloads;
  while (engine->can_step()) {
    EXPECT_FALSE(engine->may_finish_update());
    engine->step();
    gather(*engine, payloads);
  }
  EXPECT_TRUE(payloads.contains(GroupId{1}));
  EXPECT_FALSE(payloads.contains(GroupId{2}));
  ASSERT_TRUE(engine->may_finish_update());
  engine->finish_update(engine->weight_sink().value());
  payloads.merge(run_to_end(*engine));
  for (const messages::Trajectory& t : payloads.at(GroupId{1}).trajectories)
    EXPECT_EQ(t.versions.front().version, kV0);
  for (const messages::Trajectory& t : payloads.at(GroupId{2}).trajectories)
    EXPECT_EQ(t.oldest, kV1);
}

TEST_P(NativeEngineTest, StopStringsEndTheTextAndNotTheTokensBeforeThem) {
  const TinyModel model;
  EngineConfig config = base();
  config.sampling.temperature = 4;  // varied texts
  config.sampling.min_tokens = 3;
  const Payloads free = generate(model, config, all_groups());
  for (const std::uint64_t id : {0u, 2u})  // parts of their texts that cross a border of tokens
    config.sampling.stop.push_back(free.at(GroupId{id}).trajectories[1].text.substr(3, 2));
  int stopped = 0;
  for (const auto& [id, payload] : generate(model, config, all_groups()))
    for (const messages::Trajectory& t : payload.trajectories) {
      const std::string all = model.tokenizer().decode(t.tokens, model::SpecialTokens::kSkip);
      ASSERT_TRUE(all.starts_with(t.text));
      const std::string cut = all.substr(t.text.size());
      const bool by_string =
          std::ranges::find(config.sampling.stop, cut) != config.sampling.stop.end();
      EXPECT_TRUE(by_string || cut.empty()) << "cut: " << cut;
      stopped += by_string;
      EXPECT_FALSE(by_string && t.truncated);
      EXPECT_EQ(t.logprobs.size(), t.tokens.size());
    }
  EXPECT_GT(stopped, 0);
}

TEST_P(NativeEngineTest, LengthsKeepTheirBounds) {
  const TinyModel model;
  EngineConfig config = base();
  config.sampling.min_tokens = 5;
  config.max_response_length = 9;
  config.sampling.stop_token_ids = {5};
  int truncated = 0, stopped = 0;
  for (const auto& [id, payload] : generate(model, config, all_groups()))
    for (const messages::Trajectory& t : payload.trajectories) {
      const auto stops = [](std::int32_t token) { return token == 1 || token == 5; };
      const auto first = std::ranges::find_if(t.tokens, stops);
      if (t.truncated) {
        EXPECT_EQ(t.tokens.size(), 9u);
        EXPECT_EQ(first, t.tokens.end());
        ++truncated;
      } else {
        EXPECT_EQ(first, t.tokens.end() - 1);
        EXPECT_GE(t.tokens.size(), 6u);
        ++stopped;
      }
    }
  EXPECT_GT(truncated, 0);
  EXPECT_GT(stopped, 0);
}

// Drives an engine as a rollout actor does, without the actor.
Payloads drive(const TinyModel& model, NativeEngine& engine, const VersionOffer& offer) {
  Payloads payloads;
  for (;;) {
    if (const auto wanted = engine.wants(offer)) engine.begin_update(*wanted);
    const auto wanted = engine.wants(offer);
    if (wanted && engine.may_finish_update()) {
      model.fill_sink(engine, *wanted);
      engine.finish_update(engine.weight_sink().value());
    }
    if (!engine.can_step()) break;
    engine.step();
    gather(engine, payloads);
  }
  gather(engine, payloads);
  return payloads;
}

TEST_P(NativeEngineTest, PinnedGroupsAreGeneratedWholeByTheirVersion) {  // WQ-1
  const TinyModel model(3);
  const auto engine = model.engine(base());
  for (std::uint64_t i = 0; i < 12; ++i) {
    messages::GroupWork work = group_work(i, kPrompts[i % kPrompts.size()]);
    work.version = PolicyVersion{static_cast<std::int64_t>(i / 4)};
    work.due = StepId{work.version->value + 2};
    engine->submit(work);
  }
  Payloads payloads = drive(model, *engine, {PolicyVersion{2}, kV0});
  messages::GroupWork redone = group_work(100, kPrompts[0]);  // an older slot comes back
  redone.version = kV0;
  redone.due = StepId{2};
  engine->submit(redone);
  payloads.merge(drive(model, *engine, {PolicyVersion{2}, kV0}));
  ASSERT_EQ(payloads.size(), 13u);
  for (const auto& [id, payload] : payloads) {
    const PolicyVersion wanted{id.value == 100 ? 0 : static_cast<std::int64_t>(id.value) / 4};
    for (const messages::Trajectory& t : payload.trajectories) {
      ASSERT_EQ(t.versions.size(), 1u);
      EXPECT_EQ(t.versions[0].version, wanted);
      EXPECT_EQ(t.oldest, wanted);
    }
  }
  engine->submit(redone);
  engine->version_gone(kV0);
  const auto events = engine->poll();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(std::get<GroupUnservable>(events[0]).reason, messages::UnservableReason::kVersionGone);
}

// As verl has it: the side that is named is cut off, and the middle's first half is the smaller.
TEST_P(NativeEngineTest, ALongPromptIsCutAtTheSideThatIsNamed) {
  const TinyModel model;
  const std::string prompt = "12345678901234567890123456789012345678901234567890";
  const std::vector<std::int32_t> whole = *model.tokenizer().encode_prompt(prompt);
  EngineConfig config = base();
  config.max_prompt_length = 47;
  ASSERT_GT(std::ssize(whole), config.max_prompt_length);
  const auto tokens_with = [&](Truncation truncation) {
    config.truncation = truncation;
    const auto engine = model.engine(config);
    engine->submit(group_work(1, prompt));
    const Payloads payloads = run_to_end(*engine);
    EXPECT_EQ(payloads.at(GroupId{1}).prompt, prompt) << "the reward gets the whole text";
    return payloads.at(GroupId{1}).prompt_tokens;
  };
  EXPECT_EQ(tokens_with(Truncation::kLeft), std::vector(whole.end() - 47, whole.end()));
  EXPECT_EQ(tokens_with(Truncation::kRight), std::vector(whole.begin(), whole.begin() + 47));
  std::vector<std::int32_t> middle(whole.begin(), whole.begin() + 23);
  middle.insert(middle.end(), whole.end() - 24, whole.end());
  EXPECT_EQ(tokens_with(Truncation::kMiddle), middle);
  std::vector<std::int32_t> kept = whole;
  truncate(kept, std::ssize(whole), Truncation::kLeft);
  truncate(kept, 1, Truncation::kDiscard);
  truncate(kept, 1, Truncation::kError);
  EXPECT_EQ(kept, whole);
}

TEST_P(NativeEngineTest, WhatCannotBeServedIsSaid) {
  const TinyModel model;
  const auto engine = model.engine(base());
  engine->submit(group_work(1, std::string(49, '1')));
  engine->submit(group_work(2, "Hello"));
  engine->submit(group_work(3, ""));
  const auto events = engine->poll();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(std::get<GroupUnservable>(events[0]).reason,
            messages::UnservableReason::kPromptTooLong);
  EXPECT_EQ(std::get<GroupUnservable>(events[1]).reason, messages::UnservableReason::kCannotEncode);
  EXPECT_EQ(std::get<GroupUnservable>(events[2]).reason, messages::UnservableReason::kCannotEncode);
  EXPECT_FALSE(engine->can_step());

  EngineConfig config = base();
  config.max_response_length = 1000;
  EXPECT_EQ(model.try_engine(config).error().code, ErrorCode::kInvalid);
  config = base();
  config.sampling.stop_token_ids = {99};
  EXPECT_EQ(model.try_engine(config).error().code, ErrorCode::kInvalid);
  config = base();
  config.kv_memory_bytes = pages_bytes(model, 3);
  EXPECT_EQ(model.try_engine(config).error().code, ErrorCode::kInfeasible);
}

// Groups come, some are cancelled, versions change, at random moments; whatever is left must be as
// if it had been generated alone by its version.
TEST_P(NativeEngineTest, RandomSchedulesChangeNothing) {  // NE-1, NE-3, WQ-1
  const TinyModel model(3);
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    EngineConfig config = base();
    config.args.max_num_seqs = 1 + static_cast<std::int32_t>(rng.below(12));
    config.args.max_num_batched_tokens = 1 + static_cast<std::int32_t>(rng.below(40));
    config.args.enable_prefix_caching = rng.below(2) == 0;
    config.kv_memory_bytes = pages_bytes(model, 7 + static_cast<int>(rng.below(12)));
    const auto engine = model.engine(config);
    std::map<GroupId, messages::GroupWork> expected;
    Payloads payloads;
    VersionOffer offer{kV0, kV0};
    for (std::uint64_t i = 0; i < 20; ++i) {
      messages::GroupWork work = group_work(i, kPrompts[rng.below(kPrompts.size())],
                                            1 + static_cast<std::int32_t>(rng.below(6)));
      work.version = PolicyVersion{
          static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(offer.newest.value + 1)))};
      work.due = StepId{work.version->value + static_cast<std::int64_t>(rng.below(2))};
      expected[work.group] = work;
      engine->submit(work);
      if (rng.below(5) == 0 && offer.newest.value < 2) ++offer.newest.value;
      for (std::uint64_t steps = rng.below(12); steps > 0; --steps) {
        if (const auto wanted = engine->wants(offer)) {
          engine->begin_update(*wanted);
          if (engine->may_finish_update()) {
            model.fill_sink(*engine, *wanted);
            engine->finish_update(engine->weight_sink().value());
          }
        }
        if (engine->can_step()) engine->step();
        gather(*engine, payloads);
        expect_counts_fit(engine->stats().latencies, engine->stats().generation_tokens);
      }
      const GroupId victim{rng.below(20)};
      if (rng.below(4) == 0 && expected.contains(victim) && !payloads.contains(victim)) {
        engine->cancel(std::span(&victim, 1));
        expected.erase(victim);
      }
    }
    payloads.merge(drive(model, *engine, offer));
    EXPECT_EQ(engine->pages_free(), engine->pages_total()) << "NE-3";
    ASSERT_EQ(payloads.size(), expected.size());
    for (const auto& [id, work] : expected) {
      const auto lone = model.engine(tiny_engine_config());
      lone->submit(work);
      rollout::expect_same(drive(model, *lone, offer).at(id), payloads.at(id),
                           "group " + std::to_string(id.value));
    }
  }
}

TEST_P(NativeEngineTest, CancellingAllFreesAllAndLeavesItUsable) {  // NE-3, SQ-1
  const TinyModel model;
  const auto engine = model.engine(base());
  for (int round = 0; round < 3; ++round) {
    for (const messages::GroupWork& group : all_groups()) engine->submit(group);
    for (int step = 0; step < 5; ++step) engine->step();
    engine->cancel_all();
    EXPECT_FALSE(engine->can_step());
    engine->poll();
    EXPECT_EQ(engine->pages_free(), engine->pages_total());
    EXPECT_EQ(engine->stats().sequences_waiting + engine->stats().sequences_running, 0);
  }
  for (const messages::GroupWork& group : all_groups()) engine->submit(group);
  EXPECT_EQ(run_to_end(*engine).size(), kPrompts.size());
}

}  // namespace
}  // namespace tandem::rollout
