// Text to token ids and back, one thread: tokenizer/encode/FAMILY and tokenizer/decode/FAMILY, over
// our own sources and pages (code and English), with the small vocabularies of tests/golden, whose
// words fall into more pieces than those of a real one. With TANDEM_TOKENIZER=FILE it also measures
// that tokenizer.json.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "actors/model/tokenizer.h"
#include "tests/bench/must.h"

namespace tandem::bench {
namespace {

using bench::must;
namespace fs = std::filesystem;

const fs::path kSources = TANDEM_SOURCE_DIR;

const std::string& corpus() {
  static const std::string text = [] {
    std::string all;
    for (const char* folder : {"actors/model", "docs/guides"})
      for (const fs::directory_entry& entry : fs::directory_iterator(kSources / folder)) {
        if (!entry.is_regular_file()) continue;
        std::ifstream file(entry.path());
        all.append(std::istreambuf_iterator<char>(file), {});
      }
    return all;
  }();
  return text;
}

void count_bytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * std::ssize(corpus()));
}

void encode(benchmark::State& state, const fs::path& file) {
  const model::Tokenizer tokenizer = must(model::Tokenizer::read(file));
  for (auto _ : state) benchmark::DoNotOptimize(must(tokenizer.encode(corpus())));
  count_bytes(state);
}

void decode(benchmark::State& state, const fs::path& file) {
  const model::Tokenizer tokenizer = must(model::Tokenizer::read(file));
  const auto ids = must(tokenizer.encode(corpus()));
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.decode(ids, model::SpecialTokens::kSkip));
  count_bytes(state);
}

void add(const std::string& family, const fs::path& file) {
  benchmark::RegisterBenchmark(("tokenizer/encode/" + family).c_str(),
                               [file](benchmark::State& state) { encode(state, file); });
  benchmark::RegisterBenchmark(("tokenizer/decode/" + family).c_str(),
                               [file](benchmark::State& state) { decode(state, file); });
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  for (const char* family : {"gpt2", "llama3", "qwen", "smollm", "deepseek3", "llama2", "unigram"})
    tandem::bench::add(family, tandem::bench::kSources / "tests/golden/tokenizers" /
                                   ("family_" + std::string(family) + ".json"));
  if (const char* file = std::getenv("TANDEM_TOKENIZER")) tandem::bench::add("given", file);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
