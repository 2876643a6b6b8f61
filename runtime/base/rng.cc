#include "runtime/base/rng.h"

#include <cmath>
#include <numbers>

#include "runtime/base/check.h"

namespace tandem {
namespace {

// The finalizer of SplitMix64: a bijection in which each bit of the input changes about half of the
// output's bits.
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// 2^64 divided by the golden ratio, made odd: the step of SplitMix64's counter.
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::uint64_t key, std::uint64_t counter) {
  std::array<std::uint32_t, 4> c{static_cast<std::uint32_t>(counter),
                                 static_cast<std::uint32_t>(counter >> 32), 0, 0};
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  // The multipliers, and the constants by which the key grows in each round, are the paper's. A
  // test compares the result with the vector of its authors' library.
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

std::uint64_t derive_seed(std::uint64_t parent, std::string_view label) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a with 64 bits
  for (const char c : label) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix(parent + kGolden) ^ mix(hash + kGolden);
}

std::uint64_t derive_seed(std::uint64_t parent, std::initializer_list<std::uint64_t> labels) {
  std::uint64_t seed = parent;
  for (const std::uint64_t label : labels) seed = mix(seed + kGolden) ^ mix(label + 2 * kGolden);
  return mix(seed);
}

std::uint64_t Rng::next() { return mix(state_ += kGolden); }

std::uint64_t Rng::below(std::uint64_t bound) {
  CHECK(bound > 0);
  // 2^64 mod bound. Without so many draws the rest is a whole multiple of `bound`, so that each
  // remainder is equally likely.
  const std::uint64_t reject = -bound % bound;
  for (;;)
    if (const std::uint64_t draw = next(); draw >= reject) return draw % bound;
}

// A double holds 53 bits exactly, so no rounding can give 1.
double Rng::unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Rng::normal() {
  // 1 - unit() lies in (0, 1], so that the logarithm is finite.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - unit()));
  return radius * std::cos(2.0 * std::numbers::pi * unit());
}

}  // namespace tandem
