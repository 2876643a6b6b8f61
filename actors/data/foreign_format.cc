// Formats are recognised by their first bytes, as file(1) does, because names end in anything. A
// file that matches no format but has a zero byte in its head is called binary: text in UTF-8,
// which JSON needs, has none.
#include "actors/data/foreign_format.h"

#include <cstdint>
#include <string>

namespace tandem::data {
namespace {

// A format by its first bytes. `command` converts it to JSON lines, or to another format that is
// read, where such a command exists; FILE in it stands for the path.
struct Format {
  std::string_view magic, name, command;
};

using namespace std::string_view_literals;

constexpr std::string_view kArrowCommand =
    "python3 -c \"import datasets; "
    "datasets.Dataset.from_file('FILE').to_parquet('FILE.parquet')\"";

constexpr Format kFormats[] = {
    {"ARROW1"sv, "an Arrow file", kArrowCommand},
    {"\xff\xff\xff\xff"sv, "an Arrow stream, as datasets.save_to_disk writes it", kArrowCommand},
    {"BZh"sv, "a bzip2 file", "bunzip2 --keep FILE"},
    {"\xfd"
     "7zXZ\0"sv,
     "an xz file", "unxz --keep FILE"},
    {"PK\x03\x04"sv, "a zip archive", "unzip FILE"},
    {"\x7f"
     "ELF"sv,
     "a program (ELF)", ""},
    {"SQLite format 3\0"sv, "an SQLite database", ""},
    {"\x80\x02"sv, "a pickle, as torch.save writes it", ""},
    {"\xff\xfe"sv, "text in UTF-16", "iconv -f UTF-16 -t UTF-8 FILE"},
    {"\xfe\xff"sv, "text in UTF-16", "iconv -f UTF-16 -t UTF-8 FILE"},
    {"version https://git-lfs"sv, "a pointer of Git LFS, not the file itself", "git lfs pull"},
};

// A safetensors file begins with eight bytes of length, little-endian, and then so much JSON.
bool is_safetensors(std::string_view head) {
  if (head.size() < 10 || head[8] != '{' || head[9] != '"') return false;
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(head[static_cast<std::size_t>(i)]);
  return length >= 2 && length < (std::uint64_t{1} << 30);
}

std::string with_file(std::string_view command, const std::filesystem::path& file) {
  std::string text(command);
  for (std::size_t at = 0; (at = text.find("FILE", at)) != std::string::npos;) {
    text.replace(at, 4, file.string());
    // Past the inserted path, which may itself contain "FILE".
    at += file.string().size();
  }
  return text;
}

}  // namespace

std::optional<Error> foreign_format(std::string_view head, const std::filesystem::path& file) {
  // Formats without a command hold no records, so that the help is to write the data anew.
  const auto refuse = [&](std::string_view what, std::string_view command) {
    return Error{ErrorCode::kInvalid,
                 "this is " + std::string(what) +
                     "; a data file is JSON lines, a JSON array, CSV or parquet",
                 file.string(),
                 command.empty() ? "write its records as JSON lines, one object per line"
                                 : "convert it: " + with_file(command, file)};
  };
  for (const Format& format : kFormats)
    if (head.starts_with(format.magic)) return refuse(format.name, format.command);
  if (is_safetensors(head)) return refuse("a safetensors file, which holds tensors", "");
  if (head.find('\0') != std::string::npos) return refuse("a binary file", "");
  return std::nullopt;
}

}  // namespace tandem::data
