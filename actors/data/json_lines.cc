#include "actors/data/record_source.h"
#include "runtime/base/line_reader.h"

namespace tandem::data {
namespace {

class JsonLines final : public RecordSource {
 public:
  explicit JsonLines(TextFile file)
      : path_(file.path.native() + ":"),
        lines_(std::move(file.bytes), std::move(file.path), file.record_bytes_max) {}

  Result<std::optional<std::string_view>> next() override {
    for (;;) {
      const auto line = lines_.next();
      if (!line) {
        Error error = line.error();
        if (error.help.empty()) error.help = "the file has one JSON object per line";
        return error;
      }
      if (!*line) return line;
      std::string_view text = **line;
      if (lines_.number() == 1 && text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
      while (text.ends_with('\r') || text.ends_with(' ') || text.ends_with('\t'))
        text.remove_suffix(1);
      const std::size_t begin = text.find_first_not_of(" \t");
      if (begin == text.npos) continue;
      return std::optional(text.substr(begin));
    }
  }

  std::string_view place() const override {
    return place_.assign(path_).append(std::to_string(lines_.number()));
  }
  std::uint64_t bytes_read() const override { return lines_.bytes_read(); }

 private:
  const std::string path_;
  LineReader lines_;
  mutable std::string place_;
};

}  // namespace

std::unique_ptr<RecordSource> json_lines(TextFile file) {
  return std::make_unique<JsonLines>(std::move(file));
}

}  // namespace tandem::data
