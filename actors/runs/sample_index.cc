// Four columns with one entry per sample: the offset and length of its line, its step and its
// flags. A query scans them from the newest entry down, and reads only the lines that match.
#include "actors/runs/sample_index.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "runtime/base/json.h"

namespace tandem::runs {

namespace fs = std::filesystem;

namespace {

constexpr std::uint8_t kEvaluationFlag = 1, kErrorFlag = 2;
constexpr std::int64_t kNoStep = std::numeric_limits<std::int64_t>::min();
constexpr std::uint32_t kSamplesFormat = 1;
constexpr std::uint64_t kRefreshBytes = std::uint64_t{256} << 20;

}  // namespace

// The content of samples.index, as MetricsCopy is that of metrics.index.
struct SamplesCopy {
  std::uint32_t format = kSamplesFormat;
  LineMark mark;
  std::vector<std::uint64_t> offsets, bytes;
  std::vector<std::int64_t> steps;
  std::vector<std::uint8_t> flags;
};
TANDEM_WIRE(SamplesCopy, format, mark, offsets, bytes, steps, flags)

void SampleIndex::clear() {
  offsets_.clear();
  bytes_.clear();
  steps_.clear();
  flags_.clear();
}

std::optional<LineMark> SampleIndex::load(const fs::path& path) {
  auto copy = read_copy<SamplesCopy>(path);
  if (!copy || copy->format != kSamplesFormat) return std::nullopt;
  const std::size_t size = copy->offsets.size();
  if (copy->bytes.size() != size || copy->steps.size() != size || copy->flags.size() != size)
    return std::nullopt;
  offsets_ = std::move(copy->offsets);
  bytes_ = std::move(copy->bytes);
  steps_ = std::move(copy->steps);
  flags_ = std::move(copy->flags);
  return copy->mark;
}

Result<void> SampleIndex::refresh(const fs::path& run_dir) {
  const auto at_end = progress_.read_on(
      run_dir, kRefreshBytes,
      {.load = [this](const fs::path& copy) { return load(copy); },
       .clear = [this] { clear(); },
       .take = [this](std::uint64_t offset, std::string_view line) { take(offset, line); }});
  if (!at_end) return at_end.error();
  return {};
}

void SampleIndex::take(std::uint64_t offset, std::string_view line) {
  // Bounds the memory: further samples are not found.
  if (offsets_.size() == kSamplesIndexedMax) return;
  const auto sample = parse_json(line);
  if (!sample.is_object()) return;
  const auto step = sample.find("step");
  const bool numbered = step != sample.end() && step->is_number_integer();
  offsets_.push_back(offset);
  bytes_.push_back(line.size());
  steps_.push_back(numbered ? step->get<std::int64_t>() : kNoStep);
  // A sample of an evaluation has the key `eval`, one that could not be scored the key `error`.
  flags_.push_back(static_cast<std::uint8_t>((sample.contains("eval") ? kEvaluationFlag : 0) |
                                             (sample.contains("error") ? kErrorFlag : 0)));
}

bool SampleIndex::matches(std::size_t index, const SampleQuery& query) const {
  if (query.step && steps_[index] != *query.step) return false;
  if (query.evaluation && *query.evaluation != ((flags_[index] & kEvaluationFlag) != 0))
    return false;
  return !query.failed || (flags_[index] & kErrorFlag) != 0;
}

std::vector<std::int64_t> SampleIndex::steps(const SampleQuery& query) const {
  std::set<std::int64_t> found;
  for (std::size_t i = 0; i < offsets_.size(); ++i)
    if (steps_[i] != kNoStep && matches(i, query)) found.insert(steps_[i]);
  while (found.size() > kSampleStepsMax) found.erase(found.begin());
  return {found.begin(), found.end()};
}

Result<nlohmann::json> SampleIndex::page(const fs::path& run_dir, const SampleQuery& query) {
  nlohmann::json page = nlohmann::json::array();
  if (offsets_.empty()) return page;
  auto file = LineFile::open(run_dir / "samples.jsonl");
  if (!file) return file.error();
  std::size_t end = offsets_.size();
  if (query.before)
    // Numbers count from 1, so the sample with number `before` has the index before - 1.
    end = static_cast<std::size_t>(
        std::clamp<std::int64_t>(*query.before - 1, 0, static_cast<std::int64_t>(end)));
  std::uint64_t bytes = 0;
  for (std::size_t i = end; i-- > 0 && page.size() < query.limit;) {
    if (!matches(i, query)) continue;
    bytes += bytes_[i];
    // One sample is returned whatever its size, so that a reader always gets on.
    if (bytes > kSamplePageBytesMax && !page.empty()) break;
    const auto line = file->read(offsets_[i], bytes_[i]);
    if (!line) return line.error();
    auto sample = parse_json(*line);
    if (!sample.is_object()) continue;  // the file has become another since the last refresh
    sample["seq"] = i + 1;
    page.push_back(std::move(sample));
  }
  page_bytes_read_ += file->bytes_read();
  return page;
}

void SampleIndex::keep(const fs::path& run_dir, bool over) {
  progress_.keep(run_dir, over, [this](const LineMark& read_to) {
    return wire::encode(SamplesCopy{
        .mark = read_to, .offsets = offsets_, .bytes = bytes_, .steps = steps_, .flags = flags_});
  });
}

}  // namespace tandem::runs
