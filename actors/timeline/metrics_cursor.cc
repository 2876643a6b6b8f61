#include "actors/timeline/metrics_cursor.h"

namespace tandem::timeline {

namespace {
constexpr std::uint64_t kPieceBytes = std::uint64_t{2} << 20;
}  // namespace

MetricsCursor::MetricsCursor(const std::filesystem::path& run_dir) {
  if (auto file = LineFile::open(run_dir / "metrics.jsonl")) file_ = *std::move(file);
}

void MetricsCursor::take(std::string_view text) {
  if (!runs::read_metrics_line(text, line_) || line_.evaluation) return;
  StepFigures figures;
  for (const auto& [key, value] : line_.values) {
    if (key == "timing_s/update_weights") figures.publish_s = value;
    if (key == "tandem/install_pause_s") figures.install_pause_s = value;
  }
  lines_.emplace_back(line_.step, figures);
}

bool MetricsCursor::read_on() {
  if (!file_) return false;
  const auto read = file_->read_lines(read_to_, kPieceBytes,
                                      [this](std::uint64_t, std::string_view text) { take(text); });
  if (!read || read->offset <= read_to_.offset) {
    file_.reset();
    return false;
  }
  read_to_ = *read;
  return true;
}

StepFigures MetricsCursor::at(std::int64_t step) {
  for (;;) {
    while (!lines_.empty() && lines_.front().first < step) lines_.pop_front();
    if (!lines_.empty())
      return lines_.front().first == step ? lines_.front().second : StepFigures{};
    if (!read_on()) return {};
  }
}

}  // namespace tandem::timeline
