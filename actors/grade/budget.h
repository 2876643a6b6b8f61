// What one comparison of two answers may cost, all of its parts together. Every function that works
// takes from it, and gives up once it is spent. The amounts are counts and not times, so that a
// verdict does not depend on the machine.
#pragma once

namespace tandem::grade {

inline constexpr int kAlgebraMax = 40'000;     // products of terms; about 20 ms
inline constexpr int kEvaluationMax = 60'000;  // multiplications of 768 bits; about 20 ms
inline constexpr int kComparisonsMax = 400;    // of expressions

struct Work {
  int products_left = kAlgebraMax;
};

struct Budget {
  Work algebra;
  int evaluation_left = kEvaluationMax;
  int comparisons_left = kComparisonsMax;
};

}  // namespace tandem::grade
