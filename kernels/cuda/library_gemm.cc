// Products by cuBLASLt. The library takes matrices by columns: a row-major matrix [R, C] with rows
// S apart is a matrix C x R with leading dimension S to it. So c = a * b by rows is asked for as
// c' = b' * a'.
//
// The library's heuristics take tens of microseconds, so the choice is kept per shape. With
// Rows::kInvariant the number of rows and the strides are not part of the shape: all algorithms for
// a weight are chosen when it is first multiplied, by row_bands.h, and none may split its sums.
// NVIDIA promises the same bits for the same call only, so the algorithms are tried before, on some
// of the weight's columns.
//
// The process has one Library, which is never destroyed. While it tries algorithms for a weight,
// all other products wait. Each stream has a workspace of its own, because the products of one
// stream run one after another and those of two streams may overlap. Choices and workspaces are
// made when they are first needed. So a product must have run on a stream before it is recorded
// into that stream's graph: then nothing here allocates or waits.
#include <cublasLt.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/row_bands.h"
#include "runtime/base/guarded.h"
#include "runtime/base/rng.h"
#include "runtime/device/cuda_functions.h"

namespace tandem::kernels::cuda {

namespace {

using device::DType;

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // NVIDIA's advice for Hopper
// Choices that are kept. Beyond this number those for kFastest are dropped, and made again when
// they are needed.
constexpr std::size_t kAnswersMax = 4096;
// Row counts with which the library is asked whether it can run an algorithm.
constexpr std::int64_t kRowsAsked[] = {1, 2, 7, 16, 33, 64, 128, 1000, 4096, 65536};
// Bounds of the part of a weight that is tried: steps, columns, and elements of both together.
constexpr std::int64_t kStepsTried = 8192, kColumnsTried = 1024;
constexpr std::int64_t kElementsTried = std::int64_t{1} << 20;
constexpr std::int64_t kColumnsTogether = 128;  // columns tried: a multiple of this, or all
constexpr int kCandidates = 8;                  // algorithms that the library is asked to offer
constexpr std::uint32_t kAlignment = 16;        // bytes, of every row
constexpr std::int64_t kStrideElements = 8;     // kAlignment bytes in bf16, twice that in f32

void check(cublasStatus_t status, const char* expression) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "cuBLASLt error: %s: %s\n", cublasLtGetStatusName(status), expression);
  std::abort();
}
#define CUBLAS_CHECK(expression) check((expression), #expression)

// Whether the library did as it was asked; false if it says that it cannot. Any other failure ends
// the process: taken for a refusal, it would leave this process with other algorithms, and so other
// bits, than its peers.
bool accepted(cublasStatus_t status, const char* expression) {
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return false;
  check(status, expression);
  return true;
}
#define CUBLAS_ACCEPTED(expression) accepted((expression), #expression)

// A product without its addresses, in the terms of Gemm.
struct Shape {
  DType in = DType::kF32, out = DType::kF32;
  bool a_transposed = false, b_transposed = false;
  Rows promise = Rows::kInvariant;
  std::int64_t rows = 0, columns = 0, steps = 0;
  std::int64_t a_stride = 0, b_stride = 0, c_stride = 0;

  auto operator<=>(const Shape&) const = default;
};

// The same shape with this many rows, each operand as dense as aligned rows allow.
Shape dense(Shape shape, std::int64_t rows) {
  const auto stride = [](std::int64_t elements) {
    return (elements + kStrideElements - 1) / kStrideElements * kStrideElements;
  };
  shape.rows = rows;
  shape.a_stride = stride(shape.a_transposed ? rows : shape.steps);
  shape.b_stride = stride(shape.b_transposed ? shape.steps : shape.columns);
  shape.c_stride = stride(shape.columns);
  return shape;
}

// The library's description of a product. The layouts are values, and pointers to them are made
// where they are used, so a Problem may be moved.
struct Problem {
  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t a{}, b{}, c{};
};

cudaDataType_t library_type(DType dtype) {
  return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F;
}

void lay_out(cublasLtMatrixLayoutOpaque_t& layout, DType dtype, std::int64_t rows,
             std::int64_t columns, std::int64_t stride) {
  CUBLAS_CHECK(cublasLtMatrixLayoutInit(&layout, library_type(dtype),
                                        static_cast<std::uint64_t>(columns),
                                        static_cast<std::uint64_t>(rows), stride));
}

// The library's first operand is b and its second one a, see above.
Problem problem(const Shape& s) {
  Problem p;
  CUBLAS_CHECK(cublasLtMatmulDescInit(&p.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cublasOperation_t of_b = s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t of_a = s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(&p.operation, CUBLASLT_MATMUL_DESC_TRANSA, &of_b,
                                              sizeof of_b));
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(&p.operation, CUBLASLT_MATMUL_DESC_TRANSB, &of_a,
                                              sizeof of_a));
  lay_out(p.a, s.in, s.a_transposed ? s.steps : s.rows, s.a_transposed ? s.rows : s.steps,
          s.a_stride);
  lay_out(p.b, s.in, s.b_transposed ? s.columns : s.steps, s.b_transposed ? s.steps : s.columns,
          s.b_stride);
  lay_out(p.c, s.out, s.rows, s.columns, s.c_stride);
  return p;
}

template <class Value>
void prefer(cublasLtMatmulPreferenceOpaque_t& preference,
            cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
  CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value));
}

cublasLtMatmulPreferenceOpaque_t preference() {
  cublasLtMatmulPreferenceOpaque_t preference{};
  CUBLAS_CHECK(cublasLtMatmulPreferenceInit(&preference));
  // No sum is split: MM-2 needs one order, and split sums are reported to lose the last terms of
  // some lengths.
  prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE});
  prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspaceBytes});
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    prefer(preference, attribute, kAlignment);
  }
  return preference;
}

bool aligned(const TensorView& view) {
  const auto size = static_cast<std::int64_t>(device::size_bytes(view.dtype));
  return reinterpret_cast<std::uintptr_t>(view.data) % kAlignment == 0 &&
         view.row_stride * size % kAlignment == 0;
}

// An algorithm as the library describes it: opaque words, compared as bytes.
struct Algorithm {
  cublasLtMatmulAlgo_t word;

  bool operator==(const Algorithm& other) const {
    return std::memcmp(&word, &other.word, sizeof word) == 0;
  }
};

// Device memory for a trial, freed with the object.
class Scratch {
 public:
  explicit Scratch(std::int64_t bytes) {
    CUDA_CHECK(cudaMalloc(&memory_, static_cast<std::size_t>(bytes)));
  }
  ~Scratch() { CUDA_CHECK(cudaFree(memory_)); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* get() const { return memory_; }

 private:
  void* memory_ = nullptr;
};

// A number with random sign, mantissa and one of 16 exponents. bf16 has 7 bits of mantissa, so the
// product of two such numbers is exact in f32.
float trial_value(Rng& rng, DType dtype) {
  const std::uint64_t bits = rng.next(), most = dtype == DType::kBF16 ? 1 << 7 : 1 << 23;
  const float mantissa = 1.0f + static_cast<float>(bits % most) / static_cast<float>(most);
  const float size = std::ldexp(mantissa, static_cast<int>(bits / most % 16) - 8);
  return bits >> 63 != 0 ? -size : size;
}

// The operands of the trials of row_bands.h for a weight's shape, on the device, and memory for the
// product: tens of MB for part of a weight's columns and steps. Steps are paired at random: in a
// the two steps of a pair are equal, in b they are opposite, so the exact sum is 0.
class Trial {
 public:
  Trial(const Stream& stream, Shape shape)
      : stream_(static_cast<cudaStream_t>(stream.native)), shape_(cut(shape)) {
    CHECK(!shape.a_transposed);
    Rng rng(1);
    const std::vector<std::int64_t> order = shuffled_steps(rng);
    std::vector<float> a(static_cast<std::size_t>(kPeriod * shape_.a_stride));
    for (std::int64_t row = 0; row < kPeriod; ++row) {
      float* at = a.data() + row * shape_.a_stride;
      for (std::size_t i = 0; i + 1 < order.size(); i += 2) {
        at[order[i]] = at[order[i + 1]] = trial_value(rng, shape_.in);
      }
    }
    write(a_, a);
    const std::int64_t period_bytes = bytes(shape_.in, kPeriod * shape_.a_stride);
    for (std::int64_t row = kPeriod; row < kTriedMax; row += kPeriod) {
      CUDA_CHECK(cudaMemcpyAsync(static_cast<std::byte*>(a_.get()) + row / kPeriod * period_bytes,
                                 a_.get(), static_cast<std::size_t>(period_bytes),
                                 cudaMemcpyDefault, stream_));
    }
    const bool turned = shape_.b_transposed;
    std::vector<float> b(static_cast<std::size_t>(b_rows() * shape_.b_stride));
    for (std::int64_t column = 0; column < shape_.columns; ++column) {
      float* at = b.data() + column * (turned ? shape_.b_stride : 1);
      for (std::size_t i = 0; i + 1 < order.size(); i += 2) {
        const float value = trial_value(rng, shape_.in);
        at[order[i] * (turned ? 1 : shape_.b_stride)] = value;
        at[order[i + 1] * (turned ? 1 : shape_.b_stride)] = -value;
      }
    }
    write(b_, b);
  }

  // The first `rows` rows of the product, or nothing if the library refuses. The product is written
  // once and then added to itself twice, as layers add to the residual stream: only the second
  // addition shows whether a bf16 sum was rounded before it was added. The memory begins with NaN,
  // which must not enter the product.
  std::vector<std::byte> product(cublasLtHandle_t handle, const Algorithm& algorithm,
                                 std::int64_t rows, void* workspace) {
    Problem p = problem(dense(shape_, rows));
    CUDA_CHECK(cudaMemsetAsync(c_.get(), 0xff, c_bytes(rows), stream_));
    for (const float before : {0.0f, 1.0f, 1.0f}) {
      const float one = 1.0f;
      if (!CUBLAS_ACCEPTED(cublasLtMatmul(handle, &p.operation, &one, b_.get(), &p.b, a_.get(),
                                          &p.a, &before, c_.get(), &p.c, c_.get(), &p.c,
                                          &algorithm.word, workspace, kWorkspaceBytes, stream_))) {
        return {};
      }
    }
    std::vector<std::byte> product(c_bytes(rows));
    CUDA_CHECK(
        cudaMemcpyAsync(product.data(), c_.get(), product.size(), cudaMemcpyDefault, stream_));
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    // Drops the padding between the rows.
    const auto row = static_cast<std::ptrdiff_t>(bytes(shape_.out, shape_.columns));
    auto to = product.begin() + row;
    for (std::int64_t r = 1; r < rows; ++r) {
      to = std::copy_n(product.begin() + bytes(shape_.out, r * shape_.c_stride), row, to);
    }
    product.erase(to, product.end());
    return product;
  }

 private:
  static std::int64_t bytes(DType dtype, std::int64_t elements) {
    return elements * static_cast<std::int64_t>(device::size_bytes(dtype));
  }
  std::size_t c_bytes(std::int64_t rows) const {
    return static_cast<std::size_t>(bytes(shape_.out, rows * shape_.c_stride));
  }

  std::int64_t b_rows() const { return shape_.b_transposed ? shape_.columns : shape_.steps; }

  std::vector<std::int64_t> shuffled_steps(Rng& rng) const {
    std::vector<std::int64_t> order(static_cast<std::size_t>(shape_.steps));
    std::iota(order.begin(), order.end(), 0);
    shuffle(std::span(order), rng);
    return order;
  }

  // Cuts the shape to a size that is quick to try. The cut assumes that the steps of a sum are
  // taken in equal portions, with a remainder at one end, which is kept (steps % kLeftOver), and
  // that neighbouring columns are summed alike.
  static Shape cut(Shape shape) {
    constexpr std::int64_t kLeftOver = 256;
    if (shape.steps > kStepsTried) {
      shape.steps = kStepsTried - kLeftOver + shape.steps % kLeftOver;
    }
    const std::int64_t columns = kElementsTried / shape.steps / kColumnsTogether * kColumnsTogether;
    shape.columns = std::min({shape.columns, columns, kColumnsTried});
    return dense(shape, kTriedMax);
  }

  // Converts and copies `values`; the copy is complete when this returns.
  void write(const Scratch& to, const std::vector<float>& values) {
    std::vector<std::byte> stored(values.size() * device::size_bytes(shape_.in));
    device::from_f32(values, shape_.in, stored);
    CUDA_CHECK(cudaMemcpyAsync(to.get(), stored.data(), stored.size(), cudaMemcpyDefault, stream_));
    CUDA_CHECK(cudaStreamSynchronize(stream_));
  }

  cudaStream_t stream_;
  Shape shape_;  // the shape of the part that is tried, with kTriedMax rows
  Scratch a_{bytes(shape_.in, (kTriedMax + kPeriod) * shape_.a_stride)};
  Scratch b_{bytes(shape_.in, b_rows() * shape_.b_stride)};
  Scratch c_{static_cast<std::int64_t>(c_bytes(kTriedMax))};
};

// The library's handle, the choices made so far and the workspaces. Guarded: one thread at a time.
class Library {
 public:
  Library() { CUBLAS_CHECK(cublasLtCreate(&handle_)); }

  bool multiply(const Stream& stream, const Gemm& gemm, const Shape& shape) {
    const Algorithm* algorithm = algorithm_of(stream, shape);
    if (algorithm == nullptr) return false;
    Problem p = problem(shape);
    const float one = 1.0f, before = gemm.accumulate ? 1.0f : 0.0f;
    CUBLAS_CHECK(cublasLtMatmul(handle_, &p.operation, &one, gemm.b.data, &p.b, gemm.a.data, &p.a,
                                &before, gemm.c.data, &p.c, gemm.c.data, &p.c, &algorithm->word,
                                workspace(stream), kWorkspaceBytes,
                                static_cast<cudaStream_t>(stream.native)));
    return true;
  }

 private:
  // With kInvariant one algorithm for each band of rows; with kFastest the first element is for the
  // shape's own number of rows. Without a value the library cannot compute the shape.
  using Choice = std::optional<AlgorithmOfBand<Algorithm>>;

  // The algorithm for a product, which is chosen now if its shape is new; null: there is none. The
  // pointer is valid until the next call.
  const Algorithm* algorithm_of(const Stream& stream, const Shape& shape) {
    const bool any_rows = shape.promise == Rows::kInvariant;
    const Shape key = any_rows ? dense(shape, 1) : shape;
    auto found = choices_.find(key);
    if (found == choices_.end()) {
      if (choices_.size() >= kAnswersMax) {
        std::erase_if(choices_, [](const auto& c) { return c.first.promise == Rows::kFastest; });
      }
      found = choices_.emplace(key, any_rows ? by_rows(stream, key) : fastest(key)).first;
      if (!found->second) {
        std::fprintf(stderr,
                     "cuBLASLt has no way to multiply %lld x %lld x %lld: the slow kernel does\n",
                     static_cast<long long>(shape.rows), static_cast<long long>(shape.columns),
                     static_cast<long long>(shape.steps));
      }
    }
    const Choice& choice = found->second;
    return choice ? &(*choice)[any_rows ? row_band(shape.rows) : 0] : nullptr;
  }

  Choice fastest(const Shape& shape) {
    const std::vector<Algorithm> offers = offers_of(shape);
    if (offers.empty()) return {};
    return AlgorithmOfBand<Algorithm>{offers.front()};
  }

  // Tries the algorithms on the GPU and waits for it.
  Choice by_rows(const Stream& stream, const Shape& shape) {
    Trial trial(stream, shape);
    RowTrials<Algorithm> trials;
    for (std::size_t band = 0; band < kRowBands.size(); ++band) {
      std::vector<Algorithm>& offers = trials.offers[band];
      offers = offers_of(dense(shape, kRowBands[band].rows_of_choice));
      std::erase_if(offers, [&](const Algorithm& a) { return !able(a, shape, band, band); });
    }
    trials.general = [&](const Algorithm& algorithm) {
      return able(algorithm, shape, 0, kRowBands.size() - 1);
    };
    int done = 0;
    trials.product = [&](const Algorithm& algorithm, std::int64_t rows) {
      auto product = trial.product(handle_, algorithm, rows, workspace(stream));
      done += product.empty() ? 0 : 1;
      return product;
    };
    trials.element_bytes = device::size_bytes(shape.out);
    const Choice choice = algorithms_by_rows(trials);
    if (!choice) {
      std::fprintf(stderr,
                   "cuBLASLt: of %zu algorithms for %lld rows none keeps to an order of sums, "
                   "by %d products\n",
                   trials.offers[kReferenceBands[0]].size(),
                   static_cast<long long>(kRowBands[kReferenceBands[0]].rows_of_choice), done);
    }
    return choice;
  }

  // The library's offers for a shape, the one that it expects to be fastest first.
  std::vector<Algorithm> offers_of(const Shape& shape) {
    Problem p = problem(shape);
    cublasLtMatmulPreferenceOpaque_t wish = preference();
    cublasLtMatmulHeuristicResult_t results[kCandidates];
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle_, &p.operation, &p.b, &p.a, &p.c, &p.c, &wish, kCandidates, results, &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
    CUBLAS_CHECK(status);
    std::vector<Algorithm> offers;
    for (int i = 0; i < count; ++i) {
      if (results[i].state == CUBLAS_STATUS_SUCCESS) offers.push_back({results[i].algo});
    }
    return offers;
  }

  // Whether the library would run it with every count of kRowsAsked in these bands.
  bool able(const Algorithm& algorithm, const Shape& shape, std::size_t from, std::size_t to) {
    for (const std::int64_t rows : kRowsAsked) {
      if (row_band(rows) < from || row_band(rows) > to) continue;
      // Operands of so many elements do not occur.
      if (rows * std::max(shape.columns, shape.steps) > INT32_MAX) break;
      Problem p = problem(dense(shape, rows));
      cublasLtMatmulHeuristicResult_t result{};
      if (!CUBLAS_ACCEPTED(cublasLtMatmulAlgoCheck(handle_, &p.operation, &p.b, &p.a, &p.c, &p.c,
                                                   &algorithm.word, &result)) ||
          result.workspaceSize > kWorkspaceBytes) {
        return false;
      }
    }
    return true;
  }

  // kWorkspaceBytes for the products of one stream, never freed.
  void* workspace(const Stream& stream) {
    void*& memory = workspaces_[stream.native];
    if (memory == nullptr) CUDA_CHECK(cudaMalloc(&memory, kWorkspaceBytes));
    return memory;
  }

  cublasLtHandle_t handle_ = nullptr;
  std::map<Shape, Choice> choices_;
  std::map<void*, void*> workspaces_;  // by stream
};

}  // namespace

bool library_gemm(const Stream& stream, const Gemm& gemm) {
  const Shape shape{.in = gemm.a.dtype,
                    .out = gemm.c.dtype,
                    .a_transposed = gemm.a_transposed,
                    .b_transposed = gemm.b_transposed,
                    .promise = gemm.rows,
                    .rows = gemm.c.dim(0),
                    .columns = gemm.c.dim(1),
                    .steps = gemm.steps(),
                    .a_stride = gemm.a.row_stride,
                    .b_stride = gemm.b.row_stride,
                    .c_stride = gemm.c.row_stride};
  if (shape.rows == 0 || shape.columns == 0 || shape.steps == 0) return false;
  if (!aligned(gemm.a) || !aligned(gemm.b) || !aligned(gemm.c)) return false;
  // The object is never destroyed: at the end of the process the driver may have shut down before.
  static auto& library = *new Guarded<Library>;
  return library.with([&](Library& l) { return l.multiply(stream, gemm, shape); });
}

}  // namespace tandem::kernels::cuda
