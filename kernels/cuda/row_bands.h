// Which of a library's algorithms multiplies how many rows when no row's bits may depend on that
// (MM-2, Rows::kInvariant). Pure: the algorithms are the caller's, and processes to which the same
// ones are offered, and which get the same products, choose alike.
//
// Algorithms differ in their tiles, and the best one for 8 rows is a poor one for 8192. What makes
// a sum's bits is the order of its terms, which tiles do not touch. So row counts lie in bands. One
// algorithm, the reference, says what the bits are; a band has the first algorithm offered for it
// that gives the same ones, or else the reference. Nothing says beforehand in which order a closed
// library adds, therefore every algorithm is tried on the GPU at hand, on operands made to show it:
//
// - steps cancel in pairs, which lie anywhere, and terms spread over many powers of two: the exact
//   sum is zero, and what comes out is rounding, in which hardly two orders agree, whatever the
//   output's dtype. Where mostly zeros come out nevertheless, as of a few steps that a tensor core
//   adds at once, nothing is seen of the order, and the algorithm is not taken;
// - rows repeat every kPeriod rows: the same row meets many places in tiles, alone and in company.
//
// BR-1  Every algorithm chosen gave the reference's bits at every row count of kTried in its bands.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace tandem::kernels::cuda {

struct RowBand {
  std::int64_t rows_max;        // it begins above the band before
  std::int64_t rows_of_choice;  // its algorithms are asked for with so many
};
inline constexpr std::array<RowBand, 5> kRowBands{
    {{16, 16},
     {64, 64},
     {256, 256},
     {1024, 1024},
     {std::numeric_limits<std::int64_t>::max(), 4096}}};
// A reference is looked for among these bands' offers, in this order, until so many have been found
// that would do.
inline constexpr std::array<std::size_t, 5> kReferenceBands{2, 3, 4, 1, 0};
inline constexpr std::size_t kReferencesMax = 4;

inline constexpr std::int64_t kPeriod = 13;
inline constexpr std::array<std::int64_t, 9> kTried{1, 7, 16, 17, 64, 65, 256, 300, 1040};
inline constexpr std::int64_t kTriedMax = kTried.back();

constexpr std::size_t row_band(std::int64_t rows) {
  std::size_t band = 0;
  while (rows > kRowBands[band].rows_max) ++band;
  return band;
}

template <class Algorithm>
using AlgorithmOfBand = std::array<Algorithm, kRowBands.size()>;

template <class Algorithm>  // which compares
struct RowTrials {
  // Algorithms of each band that can do its row counts, the best first.
  AlgorithmOfBand<std::vector<Algorithm>> offers;
  // Whether it can do every band's.
  std::function<bool(const Algorithm&)> general;
  // The first `rows` rows of the test's product, or nothing if the algorithm fails; and the size of
  // one of its elements.
  std::function<std::vector<std::byte>(const Algorithm&, std::int64_t rows)> product;
  std::size_t element_bytes = 1;
};

namespace row_bands {

// Whether row i of the product is row i % kPeriod of `expected`, at every count tried in the bands.
template <class Algorithm>
bool agrees(const RowTrials<Algorithm>& trials, const Algorithm& algorithm, std::size_t from,
            std::size_t to, std::span<const std::byte> expected) {
  const std::size_t row_bytes = expected.size() / static_cast<std::size_t>(kPeriod);
  for (const std::int64_t rows : kTried) {
    if (row_band(rows) < from || row_band(rows) > to) continue;
    const std::vector<std::byte> product = trials.product(algorithm, rows);
    if (product.size() != row_bytes * static_cast<std::size_t>(rows)) return false;
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
      const auto as = expected.subspan(row % kPeriod * row_bytes, row_bytes);
      if (!std::ranges::equal(std::span(product).subspan(row * row_bytes, row_bytes), as)) {
        return false;
      }
    }
  }
  return true;
}

// Whether most elements are zero, or minus zero, whose last byte alone is not.
inline bool tells_nothing(std::span<const std::byte> product, std::size_t element_bytes) {
  std::size_t zeros = 0;
  for (std::size_t at = 0; at < product.size(); at += element_bytes) {
    const auto element = product.subspan(at, element_bytes);
    const bool zero = std::ranges::all_of(element.first(element_bytes - 1),
                                          [](std::byte b) { return b == std::byte{0}; }) &&
                      (element.back() & std::byte{0x7f}) == std::byte{0};
    zeros += zero ? 1 : 0;
  }
  return 2 * zeros > product.size() / element_bytes;
}

// The bands of the reference with the given bits, and how many of them have an offer of their own.
template <class Algorithm>
struct Bands {
  AlgorithmOfBand<Algorithm> chosen;
  std::size_t own = 0;
};

template <class Algorithm>
Bands<Algorithm> bands_of(const RowTrials<Algorithm>& trials, const Algorithm& reference,
                          std::span<const std::byte> expected) {
  Bands<Algorithm> bands;
  bands.chosen.fill(reference);
  for (std::size_t band = 0; band < kRowBands.size(); ++band) {
    for (const Algorithm& offer : trials.offers[band]) {
      if (offer != reference && !agrees(trials, offer, band, band, expected)) continue;
      bands.chosen[band] = offer;
      ++bands.own;
      break;
    }
  }
  return bands;
}

}  // namespace row_bands

// None if no algorithm is known to agree with itself. The reference is the one under which most
// bands have an offer of their own; of equals, the one offered first.
template <class Algorithm>
std::optional<AlgorithmOfBand<Algorithm>> algorithms_by_rows(const RowTrials<Algorithm>& trials) {
  std::optional<row_bands::Bands<Algorithm>> best;
  std::vector<std::vector<std::byte>> seen;  // the bits of references that were looked at
  std::vector<Algorithm> references;
  for (const std::size_t band : kReferenceBands) {
    references.insert(references.end(), trials.offers[band].begin(), trials.offers[band].end());
  }
  for (const Algorithm& reference : references) {
    if (!trials.general(reference)) continue;
    std::vector<std::byte> expected = trials.product(reference, kPeriod);
    if (expected.empty() || std::ranges::find(seen, expected) != seen.end()) continue;
    if (row_bands::tells_nothing(expected, trials.element_bytes)) continue;
    if (!row_bands::agrees(trials, reference, 0, kRowBands.size() - 1, expected)) continue;
    const auto bands = row_bands::bands_of(trials, reference, expected);
    if (!best || bands.own > best->own) best = bands;
    seen.push_back(std::move(expected));
    if (best->own == kRowBands.size() || seen.size() == kReferencesMax) break;
  }
  if (!best) return std::nullopt;
  return best->chosen;
}

}  // namespace tandem::kernels::cuda
