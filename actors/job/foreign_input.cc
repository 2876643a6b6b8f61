// Formats are recognised by their first bytes, as file(1) does, because names end in anything. A
// file that matches no format but has a zero byte in its first 4 KiB is called binary: text in
// UTF-8, which JSON needs, has none.
#include "actors/job/foreign_input.h"

#include <cstdint>
#include <string_view>

#include "actors/model/model_directory.h"
#include "runtime/base/file.h"

namespace tandem::job {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kHeadBytes = 4096;
constexpr const char* kOwnReader = "write its records as JSON lines, one object per line";

// A format by its first bytes. `command` converts it to JSON lines, where one exists; FILE in it
// stands for the path.
struct Format {
  std::string_view magic, name, command;
};

using namespace std::string_view_literals;

constexpr Format kFormats[] = {
    {"PAR1"sv, "a parquet file",
     "python3 -c \"import pandas; pandas.read_parquet('FILE').to_json('FILE.jsonl', "
     "orient='records', lines=True)\""},
    {"ARROW1"sv, "an Arrow file",
     "python3 -c \"import pandas; pandas.read_feather('FILE').to_json('FILE.jsonl', "
     "orient='records', lines=True)\""},
    {"\x1f\x8b"sv, "a gzip file", "gunzip --keep FILE"},
    {"\x28\xb5\x2f\xfd"sv, "a zstd file", "zstd --decompress FILE"},
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
};

// Commands of Python's own library. An absent field of a record stays absent or null.
constexpr std::string_view kArrayCommand =
    "python3 -c \"import json; [print(json.dumps(r)) for r in json.load(open('FILE'))]\" > "
    "FILE.jsonl";
constexpr std::string_view kCsvCommand =
    "python3 -c \"import csv, json; [print(json.dumps(r)) for r in csv.DictReader(open('FILE', "
    "newline=''))]\" > FILE.jsonl";
constexpr std::string_view kTsvCommand =
    "python3 -c \"import csv, json; [print(json.dumps(r)) for r in csv.DictReader(open('FILE', "
    "newline=''), delimiter='\\t')]\" > FILE.jsonl";

// The first character that JSON does not take for space; 0: there is none.
char first_character(std::string_view head) {
  const std::size_t at = head.find_first_not_of(" \t\r\n");
  return at == head.npos ? '\0' : head[at];
}

// A safetensors file begins with eight bytes of length, little-endian, and then so much JSON.
bool is_safetensors(std::string_view head) {
  if (head.size() < 10 || head[8] != '{' || head[9] != '"') return false;
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(head[static_cast<std::size_t>(i)]);
  return length >= 2 && length < (std::uint64_t{1} << 30);
}

std::string with_file(std::string_view command, const fs::path& file) {
  std::string text(command);
  for (std::size_t at = 0; (at = text.find("FILE", at)) != std::string::npos;) {
    text.replace(at, 4, file.string());
    // Past the inserted path, which may itself contain "FILE".
    at += file.string().size();
  }
  return text;
}

}  // namespace

std::optional<Error> hub_id_error(const fs::path& path, const fs::path& base,
                                  const std::string& where) {
  std::error_code ignored;
  const fs::path relative = path.lexically_normal().lexically_relative(base.lexically_normal());
  if (!model::is_hub_id(relative) || fs::exists(path.parent_path(), ignored)) return std::nullopt;
  const std::string id = relative, name = relative.filename();
  return Error{ErrorCode::kFailed,
               "there is no folder " + path.string() + ": `" + id +
                   "` looks like a model's id on the Hugging Face Hub, and `model.path` is a "
                   "directory; Tandem downloads nothing",
               where,
               "get it with `hf download " + id + " --local-dir " + name +
                   "`, then set model.path to that folder"};
}

std::optional<Error> foreign_data_error(const fs::path& file) {
  const std::string head = file_head(file, kHeadBytes);
  // Formats without a command hold no records, so that the help is to write the data anew.
  const auto refuse = [&](std::string_view what, std::string_view command) {
    return Error{
        ErrorCode::kInvalid,
        "this is " + std::string(what) + "; a data file is text with one JSON object per line",
        file.string(),
        command.empty() ? std::string(kOwnReader)
                        : "make lines of it: " + with_file(command, file)};
  };
  for (const Format& format : kFormats)
    if (head.starts_with(format.magic)) return refuse(format.name, format.command);
  if (is_safetensors(head)) return refuse("a safetensors file, which holds tensors", "");
  if (head.find('\0') != std::string::npos) return refuse("a binary file", "");
  if (first_character(head) == '[') return refuse("one JSON array", kArrayCommand);
  const std::string extension = file.extension();
  if (extension == ".csv" && first_character(head) != '{') return refuse("a CSV file", kCsvCommand);
  if (extension == ".tsv" && first_character(head) != '{')
    return refuse("a file of tab-separated values", kTsvCommand);
  return std::nullopt;
}

}  // namespace tandem::job
