#include "actors/job/reading_notice.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tandem::job {

std::optional<std::string> ReadingNotice::due(const ReadingProgress& progress, Time now) {
  if (now < next_) return std::nullopt;
  next_ = now + kEvery;
  if (!progress.waits.empty())
    return "reading " + progress.file.filename().string() + ": " + progress.waits;
  const std::uint64_t total = std::max(progress.bytes_total, progress.bytes);
  const std::uint64_t percent = total == 0 ? 0 : progress.bytes * 100 / total;
  return "reading " + progress.file.filename().string() + ": " + std::to_string(progress.records) +
         " records, " + std::to_string(percent) + " % of " + std::to_string(total / 1'000'000) +
         " MB";
}

TellReading tell_by(std::function<void(const std::string&)> say) {
  return [notice = std::make_shared<ReadingNotice>(steady_now()),
          say = std::move(say)](const ReadingProgress& progress) {
    if (const auto line = notice->due(progress, steady_now())) say(*line);
  };
}

}  // namespace tandem::job
