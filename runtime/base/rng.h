// Random numbers that repeat on every machine, in two forms:
//
//   Philox   counter-based: a pure function of (key, counter). The draw for a token depends on the
//            seed of its trajectory and on the token's position, and on nothing else: neither on
//            the batch nor on the order in which tokens are drawn. Philox4x32-10 of Salmon et al.,
//            "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11.
//   Rng      a small sequential generator for decisions (jitter, shuffles), seeded explicitly.
//
// derive_seed() makes seeds for different purposes from one parent, so that no two purposes draw
// the same numbers. None of this is fit for secrets; for those see secret.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace tandem {

// Four random words for one counter. The counter has the low 64 of Philox's 128 bits; the rest is
// 0.
std::array<std::uint32_t, 4> philox4x32(std::uint64_t key, std::uint64_t counter);

// Uniform in [0, 1), of the upper 24 bits: a float holds these exactly, so no rounding can give 1.
constexpr float unit_float(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// A seed that depends on the parent and on every label; the order of the labels counts.
std::uint64_t derive_seed(std::uint64_t parent, std::string_view label);
std::uint64_t derive_seed(std::uint64_t parent, std::initializer_list<std::uint64_t> labels);

// SplitMix64 (Steele et al., OOPSLA'14). Not for cryptography. Used by one thread.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::uint64_t below(std::uint64_t bound);  // uniform in [0, bound), bound > 0, unbiased
  double unit();                             // uniform in [0, 1)
  double normal();                           // standard normal (Box-Muller, one draw per call)

 private:
  std::uint64_t state_;
};

// Fisher-Yates. Not std::shuffle, whose result differs between standard libraries.
template <class T>
void shuffle(std::span<T> items, Rng& rng) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
}

}  // namespace tandem
