// The choice among a library's algorithms by the number of rows, where no row's bits may depend on
// that number (MM-2, Rows::kInvariant). Pure: the caller brings the algorithms and multiplies.
// Processes that are offered the same algorithms, and get the same products, choose alike.
//
// Algorithms differ in their tiles, and the best one for 8 rows is a poor one for 8192. The bits of
// a sum depend on the order of its terms, which tiles do not change. So row counts are divided into
// bands. One algorithm, the reference, defines the bits; each band gets the first algorithm offered
// for it that gives the same bits, or else the reference itself. In which order a closed library
// adds is not documented, so every algorithm is tried on the GPU at hand, with operands that make
// the order visible:
//
// - Terms cancel in pairs, at random places, and spread over many powers of two. The exact sum is
//   zero, so the result is rounding error alone, in which hardly two orders agree, whatever the
//   output's dtype. Where the result is mostly zeros nevertheless, as with so few terms that a
//   tensor core adds them at once, it shows nothing of the order, and the algorithm is not taken.
// - Rows repeat every kPeriod rows, so the same row is computed at many places of tiles, with and
//   without other rows.
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
  std::int64_t rows_max;        // the band begins above the rows_max of the band before
  std::int64_t rows_of_choice;  // the band's algorithms are those offered for this many rows
};
inline constexpr std::array<RowBand, 5> kRowBands{
    {{16, 16},
     {64, 64},
     {256, 256},
     {1024, 1024},
     {std::numeric_limits<std::int64_t>::max(), 4096}}};
// A reference is looked for among the offers of these bands, in this order, until kReferencesMax
// algorithms with different bits have been found that would do.
inline constexpr std::array<std::size_t, 5> kReferenceBands{2, 3, 4, 1, 0};
inline constexpr std::size_t kReferencesMax = 4;

// A prime, so that a row meets different places of tiles.
inline constexpr std::int64_t kPeriod = 13;
// Row counts that are tried. Every band has at least one.
inline constexpr std::array<std::int64_t, 9> kTried{1, 7, 16, 17, 64, 65, 256, 300, 1040};
inline constexpr std::int64_t kTriedMax = kTried.back();

// The index of the band that a number of rows is in.
constexpr std::size_t row_band(std::int64_t rows) {
  std::size_t band = 0;
  while (rows > kRowBands[band].rows_max) ++band;
  return band;
}

template <class Algorithm>
using AlgorithmOfBand = std::array<Algorithm, kRowBands.size()>;

// The library, as the choice sees it, for one shape of a product. Algorithm has operator==.
template <class Algorithm>
struct RowTrials {
  // For each band the algorithms that can compute its row counts, the library's best first.
  AlgorithmOfBand<std::vector<Algorithm>> offers;
  // Whether an algorithm can compute the row counts of every band, as a reference must.
  std::function<bool(const Algorithm&)> general;
  // The first `rows` rows of the trial's product, dense, or nothing if the algorithm fails.
  std::function<std::vector<std::byte>(const Algorithm&, std::int64_t rows)> product;
  std::size_t element_bytes = 1;  // the size of an element of the product
};

namespace row_bands {

// Whether row i of the algorithm's product has the bits of row i % kPeriod of `expected`, at every
// row count tried in the bands from … to.
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

// Whether most elements of a product are zero or minus zero, so that it shows nothing of the order
// of sums. Elements are little-endian: a minus zero has the sign in its last byte.
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

// The choice for each band under one reference, and how many bands got an offer of their own.
template <class Algorithm>
struct Bands {
  AlgorithmOfBand<Algorithm> chosen;
  std::size_t own = 0;
};

// `expected`: the kPeriod rows of the reference's product.
template <class Algorithm>
Bands<Algorithm> bands_of(const RowTrials<Algorithm>& trials, const Algorithm& reference,
                          std::span<const std::byte> expected) {
  Bands<Algorithm> bands;
  bands.chosen.fill(reference);
  for (std::size_t band = 0; band < kRowBands.size(); ++band) {
    for (const Algorithm& offer : trials.offers[band]) {
      // The reference itself has agreed at all row counts before.
      if (offer != reference && !agrees(trials, offer, band, band, expected)) continue;
      bands.chosen[band] = offer;
      ++bands.own;
      break;
    }
  }
  return bands;
}

}  // namespace row_bands

// The algorithm of each band, or none if no algorithm agrees with itself at all row counts tried.
// The reference is the algorithm under which most bands have an offer of their own; among equals,
// the one that was offered first.
template <class Algorithm>
std::optional<AlgorithmOfBand<Algorithm>> algorithms_by_rows(const RowTrials<Algorithm>& trials) {
  std::optional<row_bands::Bands<Algorithm>> best;
  std::vector<std::vector<std::byte>> seen;  // bits of references that have been tried
  std::vector<Algorithm> references;
  for (const std::size_t band : kReferenceBands) {
    references.insert(references.end(), trials.offers[band].begin(), trials.offers[band].end());
  }
  for (const Algorithm& reference : references) {
    // A reference with bits that were tried already would get the same bands.
    if (!trials.general(reference)) continue;
    std::vector<std::byte> expected = trials.product(reference, kPeriod);
    if (expected.empty() || std::ranges::find(seen, expected) != seen.end()) continue;
    if (row_bands::tells_nothing(expected, trials.element_bytes)) continue;
    if (!row_bands::agrees(trials, reference, 0, kRowBands.size() - 1, expected)) continue;
    const auto bands = row_bands::bands_of(trials, reference, expected);
    if (!best || bands.own > best->own) best = bands;
    seen.push_back(std::move(expected));
    // No reference can do better than an offer of its own for every band.
    if (best->own == kRowBands.size() || seen.size() == kReferencesMax) break;
  }
  if (!best) return std::nullopt;
  return best->chosen;
}

}  // namespace tandem::kernels::cuda
