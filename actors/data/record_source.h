// The records of one data file, one after another, whatever its format: each as the text of one
// JSON object on one line. What the object must hold is checked above (actors/job/dataset.h), and a
// source of JSON lines does not look into its lines at all.
//
//   RS-1  Records come in the order of the file, the same ones each time that it is read.
//   RS-2  A source holds one record at a time and a bounded piece of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/byte_source.h"
#include "runtime/base/result.h"

namespace tandem::data {

class RecordSource {
 public:
  virtual ~RecordSource() = default;

  // The next record; nullopt at the end of the file. The view is valid until the next call. After
  // an error the source must not be read on. A record of more bytes than the source was made for
  // is an error, kInvalid.
  virtual Result<std::optional<std::string_view>> next() = 0;
  // Where the record that next() gave last is, in a form for errors: "train.jsonl:17". A line has
  // its line, a row of a table its row; see the functions below.
  virtual std::string_view place() const = 0;
  // How many bytes of the file have been read so far, of those that the file has on the disk.
  virtual std::uint64_t bytes_read() const = 0;
};

// Gets a sentence without a subject about what the opening of a file waits for, again and again
// while it waits: "waits for another process (4711) that converts train.parquet".
using TellWait = std::function<void(const std::string& what)>;

// An open file of text, for the functions below.
struct TextFile {
  std::unique_ptr<ByteSource> bytes;
  std::filesystem::path path;  // for errors
  std::size_t record_bytes_max = 0;
};

// A line is a record as it is, without spaces around it; blank lines are skipped, CR LF ends a line
// as well. A byte order mark at the start is skipped. "train.jsonl:17" is line 17.
std::unique_ptr<RecordSource> json_lines(TextFile file);

// The elements of one JSON array, such as json.dump writes of a list. White space between the parts
// of an element is left out, so that it becomes one line. "train.json[16]" is the 17th element.
std::unique_ptr<RecordSource> json_array(TextFile file);

// A table of text (RFC 4180) whose first record names the columns: an object whose values are
// strings. A field may stand in quotes, with `separator`, line ends and doubled quotes within. An
// empty field without quotes is null. A column without a name is called "Unnamed: 0" by its place,
// as pandas calls it, whose index is written so. "train.csv:17" is the line at which the record
// begins. Errors: a record with more or fewer fields than the first one, two columns with one name,
// text behind a closing quote, a quote without an end, and bytes that are not UTF-8.
std::unique_ptr<RecordSource> delimited(TextFile file, char separator);

}  // namespace tandem::data
