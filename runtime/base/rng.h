// Random numbers that repeat. Two forms:
//   Philox   counter-based: a pure function of (key, counter), so a token's draw depends on its
//            trajectory's seed and its position and on nothing else (Salmon et al., SC'11,
//            Philox4x32-10).
//   Rng      a small sequential generator for decisions (jitter, shuffles), seeded explicitly.
// derive_seed() makes independent seeds from a parent and labels, so nothing shares a stream.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace tandem {

std::array<std::uint32_t, 4> philox4x32(std::uint64_t key, std::uint64_t counter);

// Uniform in [0, 1) with 24 bits: the same float on every machine.
constexpr float unit_float(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

std::uint64_t derive_seed(std::uint64_t parent, std::string_view label);
std::uint64_t derive_seed(std::uint64_t parent, std::initializer_list<std::uint64_t> labels);

class Rng {  // SplitMix64 (Steele et al., OOPSLA'14); not for cryptography
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::uint64_t below(std::uint64_t bound);  // uniform in [0, bound), bound > 0, unbiased
  double unit();                             // uniform in [0, 1)
  double normal();                           // standard normal (Box-Muller, one draw per call)

 private:
  std::uint64_t state_;
};

// Fisher-Yates; std::shuffle's result is not specified by the standard.
template <class T>
void shuffle(std::span<T> items, Rng& rng) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
}

}  // namespace tandem
