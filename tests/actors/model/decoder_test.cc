// The decoder's invariants: DE-1 (rows are independent), DE-2 (engine and training agree to the
// bit), DE-3 (no allocation per call); and rules for gradients beside the goldens.
#include "actors/model/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <tuple>

#include "actors/model/parameters.h"
#include "kernels/ops/log_prob.h"
#include "runtime/base/rng.h"
#include "runtime/device/parallel.h"
#include "tests/actors/model/tiny_model.h"

namespace {
std::atomic<std::int64_t> allocations{0};
}  // namespace

// Counts the program's allocations, for DE-3. Not inlined: the compiler would take the two halves
// of a pair for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tandem::model {
namespace {

using device::Arena;
using device::Stream;
using Tokens = std::vector<std::int32_t>;

constexpr std::int64_t kRowsMax = 2048;
constexpr std::int64_t kPositionsMax = 128;
constexpr float kTemperature = 0.8f;

// One prompt and the completions that continue it.
struct Group {
  Tokens prompt;
  std::vector<Tokens> completions;
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : rng_(seed) {}
  std::int32_t between(std::int32_t low, std::int32_t high) {
    return low + static_cast<std::int32_t>(rng_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  Tokens tokens(std::int32_t count, std::int64_t vocab) {
    Tokens out(static_cast<std::size_t>(count));
    for (std::int32_t& t : out) t = between(0, static_cast<std::int32_t>(vocab) - 1);
    return out;
  }
  std::vector<Group> groups(std::int64_t vocab) {
    std::vector<Group> out(static_cast<std::size_t>(between(1, 4)));
    for (Group& group : out) {
      group.prompt = tokens(between(1, 40), vocab);
      group.completions.resize(static_cast<std::size_t>(between(1, 4)));
      for (Tokens& own : group.completions) own = tokens(between(1, 40), vocab);
    }
    return out;
  }
  std::vector<float> normals(std::size_t count) {
    std::vector<float> out(count);
    for (float& value : out) value = static_cast<float>(rng_.normal());
    return out;
  }
  Rng& rng() { return rng_; }

 private:
  Rng rng_;
};

enum class Prefix { kShared, kRepeated };

// A packed batch of groups; items in the order of groups, completions, positions.
struct Packed {
  Tokens tokens;
  std::vector<kernels::Segment> segments;
  std::vector<LogprobItem> items;

  PackedBatch batch() const { return {tokens, segments, items, kTemperature}; }
  std::int32_t append(const Tokens& more) {
    const auto begin = static_cast<std::int32_t>(tokens.size());
    tokens.insert(tokens.end(), more.begin(), more.end());
    return begin;
  }
};

Packed pack(const std::vector<Group>& groups, Prefix prefix) {
  Packed out;
  for (const Group& group : groups) {
    const auto prompt = static_cast<std::int32_t>(group.prompt.size());
    std::int32_t prompt_begin = 0;
    if (prefix == Prefix::kShared) {
      prompt_begin = out.append(group.prompt);
      out.segments.push_back({.begin = prompt_begin, .len = prompt});
    }
    for (const Tokens& own : group.completions) {
      const auto length = static_cast<std::int32_t>(own.size());
      if (prefix == Prefix::kRepeated) {
        prompt_begin = out.append(group.prompt);
        out.segments.push_back({.begin = prompt_begin, .len = prompt + length});
        out.append(own);
      } else {
        out.segments.push_back({.prefix_begin = prompt_begin,
                                .prefix_len = prompt,
                                .begin = out.append(own),
                                .len = length});
      }
      const std::int32_t begin = static_cast<std::int32_t>(out.tokens.size()) - length;
      for (std::int32_t i = 0; i < length; ++i)
        out.items.push_back({i == 0 ? prompt_begin + prompt - 1 : begin + i - 1, own[i]});
    }
  }
  return out;
}

Weights installed(const ModelConfig& config, const Arena& arena,
                  WeightsUse use = WeightsUse::kTraining) {
  Result<Weights> weights = Weights::allocate(config, use, device::DeviceKind::kCpu);
  weights->install(Stream{}, testing::published(config, arena).bytes());
  return *std::move(weights);
}

TrainLimits train_limits(bool checkpointing = false) {
  return {.rows_max = kRowsMax,
          .items_max = kRowsMax,
          .positions_max = kPositionsMax,
          .checkpointing = checkpointing};
}

TrainDecoder train_decoder(const ModelConfig& config, bool checkpointing = false) {
  return *TrainDecoder::make(config, train_limits(checkpointing), device::DeviceKind::kCpu);
}

struct Scores {
  std::vector<float> logprob, entropy;
};

Scores score(const ModelConfig& config, const Weights& weights, const Packed& packed,
             const Stream& stream = {}) {
  TrainDecoder decoder = train_decoder(config);
  Scores out{std::vector<float>(packed.items.size()), std::vector<float>(packed.items.size())};
  decoder.forward(stream, weights, packed.batch(), out.logprob, out.entropy);
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The engine's way to the same numbers: pages in random order, prompts in random chunks and shared
// by a group's completions (the partly filled page copied), all mixed with others' decodes.
class Engine {
 public:
  Engine(const ModelConfig& config, std::int32_t page_positions, Draw& draw)
      : config_(config),
        draw_(draw),
        cache_(*KvCache::allocate(config, kPages, page_positions, device::DeviceKind::kCpu)),
        decoder_(*PagedDecoder::make(config,
                                     {.rows_max = kRowsMax,
                                      .slices_max = 64,
                                      .logit_rows_max = 64,
                                      .positions_max = kPositionsMax},
                                     device::DeviceKind::kCpu)),
        free_(kPages) {
    std::iota(free_.begin(), free_.end(), 0);
    shuffle(std::span(free_), draw.rng());
  }

  std::vector<float> score(const Weights& weights, const std::vector<Group>& groups) {
    std::vector<Sequence> sequences;
    for (const Group& group : groups) sequences.push_back(begin(group.prompt, group.prompt.size()));
    while (step(weights, sequences)) {
    }
    std::vector<Sequence> children;
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const Tokens& own : groups[g].completions) children.push_back(fork(sequences[g], own));
    while (step(weights, children)) {
    }
    std::vector<float> logprob;
    for (const Sequence& child : children)
      logprob.insert(logprob.end(), child.logprob.begin(), child.logprob.end());
    return logprob;
  }

 private:
  static constexpr std::int32_t kPages = 512;

  struct Sequence {
    Tokens tokens;         // all that will be computed
    std::size_t prompt;    // tokens of the prompt; logit rows are wanted from the last one on
    std::size_t done = 0;  // computed
    Tokens pages;
    std::vector<float> first_logits;  // the logits of the prompt's last row
    std::vector<float> logprob;       // one for each of tokens[prompt …]
  };

  Sequence begin(const Tokens& tokens, std::size_t prompt) {
    Sequence sequence{tokens, prompt, 0, {}, {}, {}};
    grow(sequence);
    return sequence;
  }

  void grow(Sequence& sequence) {
    const auto page = static_cast<std::size_t>(cache_.page_positions());
    while (sequence.pages.size() * page < sequence.tokens.size()) {
      sequence.pages.push_back(free_.back());
      free_.pop_back();
    }
  }

  Sequence fork(const Sequence& parent, const Tokens& own) {
    Sequence child = parent;
    child.tokens.insert(child.tokens.end(), own.begin(), own.end());
    if (child.prompt % static_cast<std::size_t>(cache_.page_positions()) != 0) {
      const std::int32_t shared = child.pages.back();
      child.pages.back() = free_.back();
      free_.pop_back();
      cache_.copy_pages(Stream{}, std::vector<kernels::PageCopy>{{shared, child.pages.back()}});
    }
    grow(child);
    child.logprob.push_back(logprob_of(child.first_logits, own[0]));
    return child;
  }

  float logprob_of(const std::vector<float>& logits, std::int32_t target) const {
    float out = 0;
    kernels::log_prob(
        Stream{}, kernels::LogProb{.logits = device::tensor(logits.data(), {1, config_.vocab_size}),
                                   .targets = device::tensor(&target, {1}),
                                   .temperature = kTemperature,
                                   .log_prob = device::tensor(&out, {1})});
    return out;
  }

  // Advances a random half of the unfinished sequences; false when all are done. A completion's
  // last token is never computed: nothing follows it.
  bool step(const Weights& weights, std::vector<Sequence>& sequences) {
    std::vector<Sequence*> chosen;
    std::vector<PagedSlice> slices;
    bool unfinished = false;
    for (Sequence& sequence : sequences) {
      const std::size_t end =
          sequence.tokens.size() - (sequence.tokens.size() > sequence.prompt ? 1 : 0);
      if (sequence.done == end) continue;
      unfinished = true;
      if (draw_.between(0, 1) == 0) continue;
      const bool prefilling = sequence.done < sequence.prompt;
      const auto left = static_cast<std::int32_t>(prefilling ? sequence.prompt - sequence.done
                                                             : end - sequence.done);
      const std::int32_t count = draw_.between(1, prefilling ? left : 1);
      const bool wanted = sequence.done + static_cast<std::size_t>(count) >= sequence.prompt;
      slices.push_back(
          {.tokens =
               std::span(sequence.tokens).subspan(sequence.done, static_cast<std::size_t>(count)),
           .position = static_cast<std::int32_t>(sequence.done),
           .pages = sequence.pages,
           .logits_last = wanted ? 1 : 0});
      chosen.push_back(&sequence);
    }
    const device::TensorView logits = decoder_.forward(Stream{}, weights, cache_, slices);
    std::int64_t row = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      Sequence& sequence = *chosen[i];
      sequence.done += slices[i].tokens.size();
      if (slices[i].logits_last == 0) continue;
      const float* values = device::rows(logits, row++, 1).f32();
      const std::vector<float> own(values, values + config_.vocab_size);
      if (sequence.done < sequence.tokens.size())
        sequence.logprob.push_back(logprob_of(own, sequence.tokens[sequence.done]));
      else
        sequence.first_logits = own;
    }
    return unfinished;
  }

  const ModelConfig& config_;
  Draw& draw_;
  KvCache cache_;
  PagedDecoder decoder_;
  Tokens free_;
};

// Every family in every dtype.
class Families : public ::testing::TestWithParam<std::tuple<Family, device::DType>> {
 protected:
  static ModelConfig model() { return std::apply(testing::tiny_config, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Decoder, Families,
                         ::testing::Combine(::testing::ValuesIn(testing::kFamilies),
                                            ::testing::ValuesIn(testing::kDTypes)),
                         [](const auto& test) {
                           return std::string(architecture(std::get<0>(test.param))) + "_" +
                                  device::name(std::get<1>(test.param));
                         });

TEST(Decoder, EngineAndTrainingAgreeToTheBit) {  // DE-1, DE-2
  using device::DType;
  for (const auto& [family, dtype, tied] : {std::tuple{Family::kQwen3, DType::kF32, true},
                                            {Family::kQwen3, DType::kF32, false},
                                            {Family::kQwen2, DType::kF32, true},
                                            {Family::kLlama, DType::kF32, false},
                                            {Family::kQwen3, DType::kBF16, false},
                                            {Family::kQwen2, DType::kBF16, true},
                                            {Family::kLlama, DType::kBF16, true}}) {
    SCOPED_TRACE(std::string(architecture(family)) + " in " + device::name(dtype));
    ModelConfig config = testing::tiny_config(family, dtype);
    config.tie_word_embeddings = tied;
    const Arena arena = testing::random_weights(config, 5);
    const Weights training = installed(config, arena);
    const Weights inference = installed(config, arena, WeightsUse::kInference);
    for (std::uint64_t seed = 0; seed < 25; ++seed) {
      Draw draw(seed);
      const std::vector<Group> groups = draw.groups(config.vocab_size);
      const Scores shared = score(config, training, pack(groups, Prefix::kShared));
      const Scores repeated = score(config, training, pack(groups, Prefix::kRepeated));
      EXPECT_TRUE(same_bits(shared.logprob, repeated.logprob)) << "seed " << seed;
      EXPECT_TRUE(same_bits(shared.entropy, repeated.entropy)) << "seed " << seed;
      for (const std::int32_t page_positions : {16, 32}) {
        Engine engine(config, page_positions, draw);
        EXPECT_TRUE(same_bits(engine.score(inference, groups), shared.logprob))
            << "seed " << seed << " pages of " << page_positions;
      }
    }
  }
}

TEST_P(Families, ASequenceDoesNotSeeItsBatch) {  // DE-1
  const ModelConfig config = model();
  const Weights weights = installed(config, testing::random_weights(config, 6));
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Draw draw(seed);
    std::vector<Group> groups = draw.groups(config.vocab_size);
    const Scores together = score(config, weights, pack(groups, Prefix::kShared));
    std::vector<float> alone;
    for (const Group& group : groups) {
      const Scores one = score(config, weights, pack({group}, Prefix::kShared));
      alone.insert(alone.end(), one.logprob.begin(), one.logprob.end());
    }
    EXPECT_TRUE(same_bits(together.logprob, alone)) << "seed " << seed;
  }
}

TEST_P(Families, OneChangedWeightChangesTheLogProbabilities) {
  const ModelConfig config = model();
  Draw draw(1);
  const Packed packed = pack(draw.groups(config.vocab_size), Prefix::kShared);
  const Arena arena = testing::random_weights(config, 7);
  Weights weights = installed(config, arena);
  const Scores before = score(config, weights, packed);
  const auto install = [&] {
    weights.install(Stream{}, testing::published(config, arena).bytes());
  };
  for (const device::ParameterSpec& spec : arena.manifest().parameters) {
    float& value = arena.view(spec.name).f32()[packed.tokens[0] == 0 ? 0 : 1];
    const float old = value;
    value = old + 0.25f;
    EXPECT_TRUE(same_bits(score(config, weights, packed).logprob, before.logprob))
        << "installed weights are a copy: " << spec.name;
    install();
    EXPECT_FALSE(same_bits(score(config, weights, packed).logprob, before.logprob)) << spec.name;
    value = old;
    install();
    EXPECT_TRUE(same_bits(score(config, weights, packed).logprob, before.logprob)) << spec.name;
  }
}

Arena gradients_of(const ModelConfig& config) {
  return *Arena::allocate(make_manifest(config), "test gradients");
}

double largest(const Arena& arena) {
  double out = 0;
  for (const float value : arena.f32()) out = std::max(out, std::abs(double{value}));
  return out;
}

double largest_difference(const Arena& a, const Arena& b, double factor) {
  double out = 0;
  for (std::size_t i = 0; i < a.f32().size(); ++i)
    out = std::max(out, std::abs(double{a.f32()[i]} - factor * double{b.f32()[i]}));
  return out;
}

struct Upstream {
  std::vector<float> dlogprob, dentropy;
};

void add_gradients(TrainDecoder& decoder, const Weights& weights, const Packed& packed,
                   const Upstream& upstream, const Arena& into, const Stream& stream = {},
                   const GradientsFinished& finished = {}) {
  std::vector<float> logprob(packed.items.size()), entropy(packed.items.size());
  decoder.forward(stream, weights, packed.batch(), logprob, entropy);
  decoder.backward(stream, weights, packed.batch(), upstream.dlogprob, upstream.dentropy, into,
                   finished);
}

void add_gradients(const ModelConfig& config, const Weights& weights, const Packed& packed,
                   const Upstream& upstream, const Arena& into, const Stream& stream = {}) {
  TrainDecoder decoder = train_decoder(config);
  add_gradients(decoder, weights, packed, upstream, into, stream);
}

// Sums in another order: a few roundings of the dtype apart.
double reordered_tolerance(const ModelConfig& config) {
  return config.dtype == device::DType::kF32 ? 1e-5 : 2e-2;
}

TEST_P(Families, GradientsThatItSaysAreFinishedDoNotChange_DE4) {
  for (const bool tied : {false, true}) {
    SCOPED_TRACE(tied);
    ModelConfig config = model();
    config.tie_word_embeddings = tied;
    const Weights weights = installed(config, testing::random_weights(config, 8));
    Draw draw(9);
    const Packed packed = pack(draw.groups(config.vocab_size), Prefix::kShared);
    const Upstream upstream{draw.normals(packed.items.size()), draw.normals(packed.items.size())};
    const Arena sums = gradients_of(config);
    TrainDecoder decoder = train_decoder(config);
    for (const int micro_batch : {0, 1}) {
      struct Told {
        std::int64_t begin;
        std::vector<float> values;  // the values of [begin, end) at that time
      };
      std::vector<Told> told;
      const std::span<const float> all = sums.f32();
      add_gradients(decoder, weights, packed, upstream, sums, {}, [&](std::int64_t begin) {
        const auto finished = all.subspan(static_cast<std::size_t>(begin));
        told.push_back({begin, {finished.begin(), finished.end()}});
      });
      ASSERT_EQ(std::ssize(told), config.layers + 2) << micro_batch;
      EXPECT_EQ(told.back().begin, 0);
      for (std::size_t i = 0; i < told.size(); ++i) {
        if (i > 0) {
          EXPECT_LT(told[i].begin, told[i - 1].begin);
        }
        EXPECT_TRUE(std::ranges::equal(all.subspan(static_cast<std::size_t>(told[i].begin)),
                                       told[i].values))
            << "announcement " << i;
      }
    }
  }
}

TEST_P(Families, GradientsOfASharedPrefixAreThoseOfRepeatedOnes) {
  const ModelConfig config = model();
  const Weights weights = installed(config, testing::random_weights(config, 8));
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Draw draw(seed);
    const std::vector<Group> groups = draw.groups(config.vocab_size);
    const Packed shared = pack(groups, Prefix::kShared), repeated = pack(groups, Prefix::kRepeated);
    const Upstream upstream{draw.normals(shared.items.size()), draw.normals(shared.items.size())};
    const Arena a = gradients_of(config), b = gradients_of(config);
    add_gradients(config, weights, shared, upstream, a);
    add_gradients(config, weights, repeated, upstream, b);
    EXPECT_LE(largest_difference(a, b, 1.0), reordered_tolerance(config) * largest(a))
        << "seed " << seed;
  }
}

TEST_P(Families, BackwardAccumulatesAndRepeatsOnAnyNumberOfThreads) {
  const ModelConfig config = model();
  const Weights weights = installed(config, testing::random_weights(config, 9));
  Draw draw(3);
  const Packed packed = pack(draw.groups(config.vocab_size), Prefix::kShared);
  const Upstream upstream{draw.normals(packed.items.size()), {}};
  const Arena once = gradients_of(config), twice = gradients_of(config),
              threaded = gradients_of(config);
  add_gradients(config, weights, packed, upstream, once);
  for (int i = 0; i < 2; ++i) add_gradients(config, weights, packed, upstream, twice);
  EXPECT_LE(largest_difference(twice, once, 2.0), reordered_tolerance(config) * largest(once));
  device::ThreadPool pool(3);
  add_gradients(config, weights, packed, upstream, threaded, Stream{.pool = &pool});
  EXPECT_EQ(std::memcmp(threaded.bytes().data(), once.bytes().data(), once.bytes().size()), 0);
  EXPECT_TRUE(same_bits(score(config, weights, packed, Stream{.pool = &pool}).logprob,
                        score(config, weights, packed).logprob));
}

// A value that is computed again has the same bits.
TEST_P(Families, CheckpointingChangesNoBit) {
  ModelConfig config = model();
  config.layers = 6;
  const Weights weights = installed(config, testing::random_weights(config, 12));
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    const Packed packed = pack(draw.groups(config.vocab_size), Prefix::kShared);
    const Upstream upstream{draw.normals(packed.items.size()), draw.normals(packed.items.size())};
    const Arena kept = gradients_of(config), computed = gradients_of(config);
    TrainDecoder keeping = train_decoder(config), computing = train_decoder(config, true);
    for (int pass = 0; pass < 2; ++pass) {
      add_gradients(keeping, weights, packed, upstream, kept);
      add_gradients(computing, weights, packed, upstream, computed);
    }
    EXPECT_GT(largest(kept), 0);
    EXPECT_EQ(std::memcmp(computed.bytes().data(), kept.bytes().data(), kept.bytes().size()), 0);
  }
  const auto bytes = [&](bool checkpointing) {
    return TrainDecoder::workspace_bytes(config, train_limits(checkpointing),
                                         device::DeviceKind::kCpu);
  };
  EXPECT_LT(2 * bytes(true), bytes(false)) << "of six layers";
}

TEST(Decoder, AnEngineInBf16NeedsLessMemoryThanInF32) {
  const auto bytes = [](device::DType dtype) {
    return PagedDecoder::workspace_bytes(
        testing::tiny_config(Family::kQwen3, dtype),
        {.rows_max = 64, .slices_max = 4, .logit_rows_max = 4, .positions_max = kPositionsMax},
        device::DeviceKind::kCpu);
  };
  EXPECT_LT(bytes(device::DType::kBF16), bytes(device::DType::kF32));
}

// A vocabulary so large that logits are made in several chunks, and again in backward.
TEST(Decoder, LogitsInChunksAreTheSame) {
  ModelConfig config = testing::tiny_config();
  config.vocab_size = 1 << 16;
  config.layers = 1;
  const Weights weights = installed(config, testing::random_weights(config, 10));
  Draw draw(4);
  const Packed packed = pack(
      {{draw.tokens(5, config.vocab_size), {draw.tokens(39, config.vocab_size)}}}, Prefix::kShared);
  const Upstream upstream{draw.normals(packed.items.size()), draw.normals(packed.items.size())};
  const Scores whole = score(config, weights, packed);
  const Arena all = gradients_of(config), parts = gradients_of(config);
  add_gradients(config, weights, packed, upstream, all);
  for (std::size_t at = 0; at < packed.items.size(); at += 13) {  // fewer than a chunk each
    const std::size_t end = std::min(at + 13, packed.items.size());
    Packed part = packed;
    part.items.assign(packed.items.begin() + static_cast<std::ptrdiff_t>(at),
                      packed.items.begin() + static_cast<std::ptrdiff_t>(end));
    const Scores scores = score(config, weights, part);
    for (std::size_t i = at; i < end; ++i) EXPECT_EQ(scores.logprob[i - at], whole.logprob[i]) << i;
    const auto cut = [&](const std::vector<float>& v) {
      return std::vector<float>(v.begin() + static_cast<std::ptrdiff_t>(at),
                                v.begin() + static_cast<std::ptrdiff_t>(end));
    };
    add_gradients(config, weights, part, {cut(upstream.dlogprob), cut(upstream.dentropy)}, parts);
  }
  EXPECT_LE(largest_difference(all, parts, 1.0), reordered_tolerance(config) * largest(all));
}

TEST_P(Families, StepsAllocateNothing) {  // DE-3
  const ModelConfig config = model();
  const Arena master = testing::random_weights(config, 11);
  const Arena arena = testing::published(config, master);
  Weights weights = installed(config, master);
  const Arena gradients = gradients_of(config);
  TrainDecoder trainer = train_decoder(config);
  PagedDecoder engine = *PagedDecoder::make(
      config,
      {.rows_max = 64, .slices_max = 4, .logit_rows_max = 4, .positions_max = kPositionsMax},
      device::DeviceKind::kCpu);
  KvCache cache = *KvCache::allocate(config, 8, 16, device::DeviceKind::kCpu);
  Draw draw(5);
  const Packed packed = pack(draw.groups(config.vocab_size), Prefix::kShared);
  const Upstream upstream{draw.normals(packed.items.size()), draw.normals(packed.items.size())};
  std::vector<float> logprob(packed.items.size()), entropy(packed.items.size());
  const Tokens prompt = draw.tokens(20, config.vocab_size), pages{3, 1};
  const PagedSlice slice{.tokens = prompt, .position = 0, .pages = pages, .logits_last = 1};
  std::int64_t before = 0;
  for (int step = 0; step < 3; ++step) {
    if (step == 1) before = allocations.load();  // the first may look up names
    weights.install(Stream{}, arena.bytes());
    trainer.forward(Stream{}, weights, packed.batch(), logprob, entropy);
    trainer.backward(Stream{}, weights, packed.batch(), upstream.dlogprob, upstream.dentropy,
                     gradients);
    engine.forward(Stream{}, weights, cache, {&slice, 1});
  }
  EXPECT_EQ(allocations.load(), before);
}

}  // namespace
}  // namespace tandem::model
