// Data files of each format of text, packed and not, become the same records; broken ones are
// named.
// Tests actors/data/record_source.h, actors/data/open_records.h, actors/data/packed_bytes.h,
// actors/data/text_cursor.h, actors/data/foreign_format.h.
#include "actors/data/record_source.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>

#include "actors/data/open_records.h"
#include "actors/data/packed_bytes.h"
#include "actors/data/text_cursor.h"
#include "runtime/base/json.h"
#include "runtime/base/rng.h"
#include "tests/actors/data/data_folder.h"
#include "tests/seeds.h"

namespace tandem::data {
namespace {

using nlohmann::json;
using std::string_literals::operator""s;

constexpr std::size_t kRecordBytes = 1 << 16;

Given read(const std::filesystem::path& path, std::size_t bytes_max = kRecordBytes) {
  return all_of(open_records(path, bytes_max));
}

std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::string random_text(Rng& rng) {
  static const std::vector<std::string> kPieces{"a", "b", "\"",   "\\", ",",  "\n", "\r\n",
                                                "é", "{", "}",    "[",  "]",  ":",  "\t",
                                                " ", "😀", "\"\"", "1",  "NaN"};
  std::string text;
  for (std::uint64_t n = rng.below(12); n > 0; --n) text += kPieces[rng.below(kPieces.size())];
  return text;
}

std::string spaced(Rng& rng, const std::string& token) {
  static const std::vector<std::string> kSpaces{"", "", " ", "\n  ", "\r\n\t"};
  return kSpaces[rng.below(kSpaces.size())] + token + kSpaces[rng.below(kSpaces.size())];
}

std::string csv_field(const std::string& text, char separator) {
  const bool plain = !text.empty() && text.find_first_of("\"\r\n"s + separator) == text.npos;
  if (plain) return text;
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + "\"";
}

// Eight characters at a time find what one at a time does, wherever it stands.
TEST(RecordSource, RunsEndAtTheFirstCharacterThatStops) {
  for_seeds(20'000, [](std::uint64_t seed) {
    Rng rng(seed);
    std::string text(rng.below(40), '\0');
    const std::uint64_t kinds = 1 + rng.below(256);  // few kinds: stops right beside each other
    for (char& c : text) c = static_cast<char>(rng.below(4) ? 'a' : 0x19 + rng.below(kinds));
    const auto naive = [&](auto stops) {
      return static_cast<std::size_t>(std::ranges::find_if(text, stops) - text.begin());
    };
    const char other = static_cast<char>(rng.below(256));
    EXPECT_EQ(run_before(text, '"', other), naive([&](char c) { return c == '"' || c == other; }));
    const auto is_low = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
    EXPECT_EQ(run_until(text, is_low, [](const EightCharacters& e) { return e.below(0x20); }),
              naive(is_low));
  });
}

// The same random records as lines, as an array with random white space, and as tables, each of
// them packed in one member or in two.
// RS-1
TEST(RecordSource, EveryFormatGivesTheSameRecordsRS1) {
  const DataFolder folder;
  for_seeds(12, [&](std::uint64_t seed) {
    Rng rng(seed);
    std::vector<json> records(1 + rng.below(20));
    std::string lines, array = "[", csv = "prompt,answer\r\n", tsv = "prompt\tanswer\n";
    for (json& record : records) {
      record = {{"prompt", random_text(rng)}, {"answer", random_text(rng)}};
      const std::string line = record.dump();
      lines += line + (rng.below(2) ? "\n" : " \r\n\n");
      array += (array.size() > 1 ? "," : "") + spaced(rng, "{") + "\"prompt\"" + spaced(rng, ":") +
               record["prompt"].dump() + spaced(rng, ",") +
               "\"answer\":" + spaced(rng, record["answer"].dump()) + "}" + spaced(rng, "");
      csv += csv_field(record["prompt"], ',') + "," + csv_field(record["answer"], ',') + "\r\n";
      tsv += csv_field(record["prompt"], '\t') + "\t" + csv_field(record["answer"], '\t') + "\n";
    }
    array += "]\n";
    for (const auto& [name, text] :
         {std::pair("d.jsonl"s, lines), {"d.json"s, array}, {"d.csv"s, csv}, {"d.TSV"s, tsv}}) {
      SCOPED_TRACE(name);
      const std::size_t half = rng.below(text.size());
      for (const std::string& packed :
           {text, gzip(text), zstd(text), gzip(text.substr(0, half)) + gzip(text.substr(half)),
            zstd(text.substr(0, half)) + zstd("") + zstd(text.substr(half))}) {
        const std::string suffix = packed == text ? "" : packed[0] == '\x1f' ? ".gz" : ".zst";
        const Given given = read(folder.write(name + suffix, packed));
        ASSERT_FALSE(given.error) << render(*given.error);
        ASSERT_EQ(given.rows.size(), records.size());
        for (std::size_t i = 0; i < records.size(); ++i) {
          EXPECT_EQ(parse_json(given.rows[i]), records[i]) << given.rows[i];
          EXPECT_EQ(given.rows[i].find('\n'), std::string::npos);
        }
      }
    }
  });
}

// Gives an array of a hundred thousand elements, and counts what was asked for.
class LongArray final : public ByteSource {
 public:
  static constexpr std::string_view kElement = R"({"prompt": "0123456789"},)";
  static constexpr std::uint64_t kElements = 100'000;

  Result<std::size_t> read(std::span<char> out) override {
    for (std::size_t i = 0; i < out.size(); ++i, ++given_) {
      if (given_ > kElements * kElement.size()) return i;
      out[i] = given_ == 0                             ? '['
               : given_ == kElements * kElement.size() ? ']'
                                                       : kElement[(given_ - 1) % kElement.size()];
    }
    return out.size();
  }
  std::uint64_t bytes_read() const override { return given_; }

 private:
  std::uint64_t given_ = 0;
};

// RS-2
TEST(RecordSource, AnArrayIsNeverHeldWholeRS2) {
  const auto source = json_array({std::make_unique<LongArray>(), "d.json", kRecordBytes});
  for (std::uint64_t i = 0; i < LongArray::kElements; ++i) {
    const auto row = source->next();
    ASSERT_TRUE(row) << render(row.error());
    ASSERT_EQ(**row, R"({"prompt":"0123456789"})");
    ASSERT_LE(source->bytes_read(), (i + 1) * LongArray::kElement.size() + (1 << 19));
  }
  EXPECT_EQ(source->place(), "d.json[99999]");
  const auto end = source->next();
  EXPECT_TRUE(end && !*end);
}

// Whatever is cut off a packed file, its records never merely end.
TEST(RecordSource, ACutPackedFileIsAnError) {
  const DataFolder folder;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "{\"prompt\": \"" + std::to_string(i * i) + "\"}\n";
  for (const std::string& packed : {gzip(text), zstd(text)})
    for (std::size_t bytes = 8; bytes < packed.size(); bytes += 3) {
      const Given given = read(folder.write("d.jsonl.gz", packed.substr(0, bytes)));
      ASSERT_TRUE(given.error) << bytes;
      EXPECT_NE(given.error->message.find("file is damaged"), std::string::npos)
          << given.error->message;
      EXPECT_EQ(given.error->where, folder.root() / "d.jsonl.gz");
    }
  for (const std::string& packed : {gzip(text) + "more", zstd(text) + "more"})
    EXPECT_TRUE(read(folder.write("d.jsonl.gz", packed)).error);
}

TEST(RecordSource, APlaceIsALineOfTheFile) {
  const DataFolder folder;
  const auto path = folder.write("d.jsonl", "\xef\xbb\xbf{\"a\":1}\n\n  {\"a\":2}  \r\n");
  const Given lines = read(path);
  EXPECT_EQ(lines.rows, (std::vector<std::string>{R"({"a":1})", R"({"a":2})"}));
  EXPECT_EQ(lines.places, (std::vector{path.string() + ":1", path.string() + ":3"}));
  const auto table = folder.write("d.csv", "\xef\xbb\xbf,a\n0,\"x\ny\"\n\n1,\n2,\"\"\n");
  const Given rows = read(table);
  EXPECT_EQ(rows.rows, (std::vector<std::string>{R"({"Unnamed: 0":"0","a":"x\u000ay"})",
                                                 R"({"Unnamed: 0":"1","a":null})",
                                                 R"({"Unnamed: 0":"2","a":""})"}));
  EXPECT_EQ(rows.places,
            (std::vector{table.string() + ":2", table.string() + ":5", table.string() + ":6"}));
}

TEST(RecordSource, ABrokenFileIsNamedWithItsPlace) {
  const DataFolder folder;
  const auto check = [&](const std::string& name, const std::string& text,
                         const std::string& message, const std::string& place) {
    const Given given = read(folder.write(name, text));
    ASSERT_TRUE(given.error) << text;
    EXPECT_EQ(given.error->code, ErrorCode::kInvalid);
    EXPECT_NE(given.error->message.find(message), std::string::npos) << given.error->message;
    EXPECT_EQ(given.error->where, (folder.root() / name).string() + place) << message;
  };
  const std::string long_text(2 * kRecordBytes, 'x');
  check("d.json", "[{\"a\": 1},\n{\"a\"", "no end", ":2");
  check("d.json", "[", "no end", ":1");
  check("d.json", "[{}, {}\n", "no end", ":2");
  check("d.json", "[{},\n,{}]", "an element is missing", ":2");
  check("d.json", "[{},]", "an element is missing", ":1");
  check("d.json", "[{} {}]", "a comma is missing", ":1");
  check("d.json", "[{}]\n{}", "behind the array's end", ":2");
  check("d.json", "[\"" + long_text + "\"]", "more than 65536 bytes", ":1");
  check("d.jsonl", "{}\n{\"a\": \"" + long_text + "\"}", "more than 65536 bytes", ":2");
  check("d.csv", "a,b\n1,2\n1,2,3\n", "has 3 fields, and the first line has 2 columns", ":3");
  check("d.csv", "a,b\n1\n", "has 1 fields", ":2");
  check("d.csv", "a,b\n1,\"2\n", "no other one closes", ":2");
  check("d.csv", "a,b\n1,\"2\"x\n", "text behind the double quote", ":2");
  check("d.csv", "a,a\n1,2\n", "two columns have the name `a`", ":1");
  check("d.csv", "a\n\xe9\n", "not UTF-8", ":2");
  check("d.csv", "a\rb", "a carriage return", ":1");
  check("d.csv", "a\n\"" + long_text + std::string(1 << 19, 'x'), "more than 65536 bytes", ":2");
  check("d.csv", "a\n" + long_text + "\n", "more than 65536 bytes", ":2");
}

TEST(RecordSource, AFileOfAnotherFormatIsNamed) {
  const DataFolder folder;
  const auto expect = [&](const std::string& head, const std::string& name,
                          const std::string& help = "") {
    for (const std::string& text : {head, gzip(head)}) {
      const Given given = read(folder.write("d.jsonl", text));
      ASSERT_TRUE(given.error) << name;
      EXPECT_EQ(given.error->code, ErrorCode::kInvalid);
      EXPECT_EQ(given.error->where, folder.root() / "d.jsonl");
      EXPECT_NE(given.error->message.find(name), std::string::npos) << given.error->message;
      EXPECT_NE(given.error->help.find(help), std::string::npos) << given.error->help;
    }
  };
  expect("\x10\0\0\0\0\0\0\0{\"weight\": {}}"s, "a safetensors file");
  expect("PK\x03\x04 packed", "a zip archive", "unzip " + (folder.root() / "d.jsonl").string());
  expect(
      "\x7f"
      "ELF\x02\x01",
      "a program (ELF)", "write its records");
  expect("{\"prompt\": \"a\"}\n\0\0"s, "a binary file");
  expect("ARROW1\0\0"s, "an Arrow file", "to_parquet");
  expect("\xff\xfe{\0"s, "text in UTF-16", "iconv");
  expect("version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS", "git lfs pull");
  EXPECT_NE(read(folder.write("d.gz", gzip("PAR1"))).error->message.find("within a packed one"),
            std::string::npos);
  // The name decides between formats of text alone.
  EXPECT_EQ(read(folder.write("d.csv", "{\"prompt\": \"a\"}\n")).rows.size(), 1u);
  EXPECT_EQ(read(folder.write("d.parquet", "[{\"prompt\": \"a\"}]")).rows.size(), 1u);
  for (const char* text : {"", "\n", "[]", "\n [ ] \n"}) {
    const Given given = read(folder.write("d.jsonl", text));
    EXPECT_FALSE(given.error);
    EXPECT_TRUE(given.rows.empty());
  }
}

}  // namespace
}  // namespace tandem::data
