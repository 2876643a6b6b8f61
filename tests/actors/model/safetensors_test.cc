// Files of safetensors: a list of malformed files, every truncation, random damage, shards, and
// writes that fail.
#include "actors/model/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <optional>
#include <tuple>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/rng.h"
#include "runtime/device/dtype.h"
#include "runtime/device/parallel.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::model {
namespace {

using nlohmann::json;

// A file with this header (`length` says how long it claims to be) and this many bytes of data.
std::string file_bytes(const std::string& header, std::size_t data_bytes,
                       std::optional<std::uint64_t> length = {}) {
  const std::uint64_t claimed = length.value_or(header.size());
  std::string bytes(reinterpret_cast<const char*>(&claimed), sizeof claimed);
  return bytes + header + std::string(data_bytes, '\1');
}

json entry(const char* dtype, json shape, std::uint64_t begin, std::uint64_t end) {
  return {{"dtype", dtype}, {"shape", std::move(shape)}, {"data_offsets", {begin, end}}};
}

Result<void> read_tensors(const std::filesystem::path& directory,
                          std::span<const NamedTensor> wanted, const TiedTensor* tied) {
  const Result<TensorFiles> files = TensorFiles::open(directory, wanted, tied);
  if (!files) return files.error();
  return files->read(wanted);
}

TEST(Safetensors, RefusesEveryMalformedFile) {
  const auto folder = testing::scratch_folder("malformed");
  const std::string good = json{{"a", entry("F32", {2}, 0, 8)}}.dump();
  const std::vector<std::tuple<std::string, std::string, std::string>> corpus = {
      {"empty", "", "length field"},
      {"short length field", "\1\2\3", "length field"},
      {"truncated header", file_bytes(good, 0, good.size() + 1), "longer than the file"},
      {"huge header", file_bytes(good, 8, 100'000'001), "over the limit"},
      {"overflowing header length", file_bytes(good, 8, ~std::uint64_t{0}), "over the limit"},
      {"header is no JSON", file_bytes("{\"a\": ", 8), "JSON"},
      {"header is a list", file_bytes("[]", 0), "not a JSON object"},
      {"truncated data", file_bytes(good, 7), "past the end"},
      {"trailing bytes", file_bytes(good, 9), "follow the last tensor"},
      {"hole at the start", file_bytes(json{{"a", entry("F32", {2}, 4, 12)}}.dump(), 12), "hole"},
      {"hole between",
       file_bytes(json{{"a", entry("F32", {1}, 0, 4)}, {"b", entry("F32", {1}, 8, 12)}}.dump(), 12),
       "hole before tensor 'b'"},
      {"overlap",
       file_bytes(json{{"a", entry("F32", {2}, 0, 8)}, {"b", entry("F32", {1}, 4, 8)}}.dump(), 8),
       "'b' overlaps"},
      {"same bytes twice",
       file_bytes(json{{"a", entry("F32", {1}, 0, 4)}, {"b", entry("F32", {1}, 0, 4)}}.dump(), 4),
       "'b' overlaps"},
      {"offsets reversed", file_bytes(json{{"a", entry("F32", {2}, 8, 0)}}.dump(), 8), "'a'"},
      {"offsets beyond 2^63",
       file_bytes(json{{"a", entry("F32", {2}, 0, ~std::uint64_t{0})}}.dump(), 8), "'a'"},
      {"shape too small", file_bytes(json{{"a", entry("F32", {1}, 0, 8)}}.dump(), 8), "shape"},
      {"shape overflows", file_bytes(json{{"a", entry("F32", {1ull << 62, 4, 4}, 0, 8)}}.dump(), 8),
       "shape"},
      {"negative size", file_bytes(json{{"a", entry("F32", {-2}, 0, 8)}}.dump(), 8), "shape"},
      {"unsupported dtype", file_bytes(json{{"a", entry("I64", {1}, 0, 8)}}.dump(), 8),
       "dtype I64"},
      {"no dtype", file_bytes(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8), "'a'"},
      {"three offsets",
       file_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", 8), "'a'"},
      {"name twice",
       file_bytes(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                  R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                  8),
       "'a' occurs twice"},
  };
  for (const auto& [name, bytes, message] : corpus) {
    const auto file = folder / "model.safetensors";
    testing::write_text(file, bytes);
    const Result<SafetensorsFile> opened = SafetensorsFile::open(file);
    ASSERT_FALSE(opened.has_value()) << name;
    EXPECT_NE(opened.error().message.find(message), std::string::npos)
        << name << ": " << opened.error().message;
    EXPECT_NE(opened.error().where.find("model.safetensors"), std::string::npos) << name;
  }
}

TEST(Safetensors, RefusesEveryTruncation) {
  const auto folder = testing::scratch_folder("truncation");
  std::vector<float> values{1, 2, 3, 4, 5, 6};
  const NamedTensor tensors[] = {{"x", {2, 2}, std::span(values).first(4)},
                                 {"y", {2}, std::span(values).last(2)}};
  ASSERT_TRUE(write_safetensors(folder / "whole", tensors).has_value());
  const std::string whole = *read_file(folder / "whole");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    testing::write_text(folder / "part", whole.substr(0, size));
    EXPECT_FALSE(SafetensorsFile::open(folder / "part").has_value()) << size;
  }
  ASSERT_TRUE(SafetensorsFile::open(folder / "whole").has_value());
}

TEST(Safetensors, SurvivesRandomDamage) {
  const auto folder = testing::scratch_folder("damage");
  std::vector<float> values(8);
  const NamedTensor tensors[] = {{"x", {8}, values}};
  ASSERT_TRUE(write_safetensors(folder / "whole", tensors).has_value());
  const std::string whole = *read_file(folder / "whole");
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed);
    std::string damaged = whole;
    for (int i = 0; i < 3; ++i)
      damaged[rng.below(damaged.size())] = static_cast<char>(rng.below(256));
    testing::write_text(folder / "model.safetensors", damaged);
    const Result<void> read = read_tensors(folder, tensors, nullptr);  // any outcome but a crash
    if (!read) {
      EXPECT_FALSE(read.error().message.empty()) << "seed " << seed;
    }
  }
}

TEST(Safetensors, WritesWhatItReadsBack) {
  const auto folder = testing::scratch_folder("round-trip");
  std::vector<float> values{0.0f, -0.0f, 1e-45f, 3.4e38f, INFINITY, 0.1f, -2.5f};
  const NamedTensor tensors[] = {{"b", {2, 3}, std::span(values).first(6)},
                                 {"a", {1}, std::span(values).last(1)},
                                 {"empty", {0, 4}, {}}};
  ASSERT_TRUE(write_safetensors(folder / "model.safetensors", tensors).has_value());
  std::vector<float> back(values.size(), 9.0f);
  const NamedTensor wanted[] = {{"a", {1}, std::span(back).last(1)},
                                {"b", {2, 3}, std::span(back).first(6)},
                                {"empty", {0, 4}, {}}};
  const Result<void> read = read_tensors(folder, wanted, nullptr);
  ASSERT_TRUE(read.has_value()) << render(read.error());
  EXPECT_EQ(std::memcmp(back.data(), values.data(), values.size() * sizeof(float)), 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "a temporary";
}

TEST(Safetensors, NamesTheTensorThatDoesNotFit) {
  const auto folder = testing::scratch_folder("misfit");
  std::vector<float> values(4);
  const NamedTensor a{"a", {4}, values}, b{"b", {4}, values}, wide{"a", {2, 2}, values};
  const auto expect_named = [&](std::vector<NamedTensor> wanted, const TiedTensor* tied,
                                const std::string& message) {
    const Result<void> read = read_tensors(folder, wanted, tied);
    ASSERT_FALSE(read.has_value()) << message;
    EXPECT_NE(read.error().message.find(message), std::string::npos) << read.error().message;
  };
  expect_named({a}, nullptr, "cannot open");
  ASSERT_TRUE(write_safetensors(folder / "model.safetensors", std::vector{a, b}).has_value());
  expect_named({a}, nullptr, "'b' does not belong");
  expect_named({a, b, {"c", {4}, values}}, nullptr, "'c' is missing");
  expect_named({wide, b}, nullptr, "'a' has shape [4]; config.json asks for [2,2]");
  const TiedTensor tied{"b", "a"};
  EXPECT_TRUE(read_tensors(folder, std::vector{a}, &tied).has_value()) << "a tied copy is welcome";
  std::vector<float> other(4, 1.0f);
  ASSERT_TRUE(
      write_safetensors(folder / "model.safetensors", std::vector{a, NamedTensor{"b", {4}, other}})
          .has_value());
  expect_named({a}, &tied, "'b' differs from 'a'");
}

TEST(Safetensors, ReadsShardsByTheirIndex) {
  const auto folder = testing::scratch_folder("shards");
  std::vector<float> ones(2, 1.0f), twos(2, 2.0f), a(2), b(2);
  const std::vector<NamedTensor> wanted{{"a", {2}, a}, {"b", {2}, b}};
  const auto write_shard = [&](const char* file, std::vector<NamedTensor> tensors) {
    ASSERT_TRUE(write_safetensors(folder / file, tensors).has_value());
  };
  const auto read_with = [&](const json& map) {
    testing::write_text(folder / "model.safetensors.index.json", json{{"weight_map", map}}.dump());
    const Result<void> read = read_tensors(folder, wanted, nullptr);
    return read ? "" : read.error().message;
  };
  write_shard("1.safetensors", {{"a", {2}, ones}});
  write_shard("2.safetensors", {{"b", {2}, twos}});
  EXPECT_EQ(read_with({{"a", "1.safetensors"}, {"b", "2.safetensors"}}), "");
  EXPECT_EQ(a, ones);
  EXPECT_EQ(b, twos);
  EXPECT_NE(read_with({{"a", "1.safetensors"}}).find("'b' is missing"), std::string::npos);
  EXPECT_NE(read_with({{"a", "2.safetensors"}, {"b", "2.safetensors"}}).find("promises"),
            std::string::npos);
  EXPECT_NE(read_with({{"a", "../1.safetensors"}}).find("no file of this directory"),
            std::string::npos);
  EXPECT_NE(read_with({{"a", "3.safetensors"}}).find("1 of the 1 files"), std::string::npos);
  EXPECT_NE(read_with(7).find("weight_map"), std::string::npos);
  write_shard("2.safetensors", {{"a", {2}, ones}, {"b", {2}, twos}});
  EXPECT_NE(read_with({{"a", "1.safetensors"}, {"b", "2.safetensors"}}).find("'a' is also in"),
            std::string::npos);
}

// More than is read at a time: a copy that differs at its end is found.
TEST(Safetensors, ATiedCopyIsComparedToItsEnd) {
  const auto folder = testing::scratch_folder("tied-large");
  constexpr std::int64_t kValues = (1 << 16) * 2 + 77;
  std::vector<float> values(kValues), read(kValues);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 100);
  std::vector<float> copy = values;
  const NamedTensor a{"a", {kValues}, values};
  const NamedTensor wanted[] = {{"a", {kValues}, read}};
  const TiedTensor tied{"b", "a"};
  const auto with_copy = [&] {
    EXPECT_TRUE(write_safetensors(folder / "model.safetensors",
                                  std::vector{a, NamedTensor{"b", {kValues}, copy}})
                    .has_value());
    return read_tensors(folder, wanted, &tied);
  };
  EXPECT_TRUE(with_copy().has_value());
  EXPECT_EQ(read, values);
  copy.back() += 1;
  const Result<void> differs = with_copy();
  ASSERT_FALSE(differs.has_value());
  EXPECT_NE(differs.error().message.find("'b' differs from 'a'"), std::string::npos);
}

// Values in pieces of several threads, those of the last piece too, from every dtype.
TEST(Safetensors, AnyNumberOfThreadsReadsTheSame) {
  const auto folder = testing::scratch_folder("threads");
  constexpr std::size_t kValues = (std::size_t{1} << 20) * 2 + 77;
  for (const auto& [name, dtype] :
       {std::pair("F32", device::DType::kF32), std::pair("BF16", device::DType::kBF16),
        std::pair("F16", device::DType::kF16)}) {
    SCOPED_TRACE(name);
    const std::size_t width = device::size_bytes(dtype);
    std::vector<std::byte> stored(kValues * width);
    std::vector<float> expected(kValues);
    for (std::size_t i = 0; i < kValues; ++i) expected[i] = static_cast<float>(i % 2039) - 1000;
    device::from_f32(expected, dtype, stored);
    device::to_f32(stored, dtype, expected);
    std::string file = file_bytes(json{{"x", entry(name, {kValues}, 0, stored.size())}}.dump(), 0);
    file.append(reinterpret_cast<const char*>(stored.data()), stored.size());
    testing::write_text(folder / "model.safetensors", file);
    for (const int count : {1, 3}) {
      device::ThreadPool threads(count);
      std::vector<float> read(kValues);
      const NamedTensor wanted[] = {{"x", {static_cast<std::int64_t>(kValues)}, read}};
      const auto files = TensorFiles::open(folder, wanted, nullptr);
      ASSERT_TRUE(files.has_value());
      ASSERT_TRUE(files->read(wanted, &threads).has_value());
      EXPECT_EQ(read, expected);
    }
  }
}

TEST(Safetensors, AFileThatIsTruncatedWhileItIsReadIsAnError) {
  const auto folder = testing::scratch_folder("truncated-meanwhile");
  std::vector<float> values(5'000'000, 1.0f);
  const NamedTensor wanted[] = {{"x", {std::ssize(values)}, values}};
  ASSERT_TRUE(write_safetensors(folder / "model.safetensors", wanted).has_value());
  const auto files = TensorFiles::open(folder, wanted, nullptr);
  ASSERT_TRUE(files.has_value());
  std::filesystem::resize_file(folder / "model.safetensors", 10'000'000);
  device::ThreadPool threads(2);
  const Result<void> read = files->read(wanted, &threads);
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("ended while it was read"), std::string::npos);
}

// A limit on file size stands in for a full disk: both fail in the middle of a write.
TEST(Safetensors, AFailedWriteKeepsTheOldFileAndLeavesNothing) {
  const auto folder = testing::scratch_folder("full-disk");
  const auto file = folder / "model.safetensors";
  std::vector<float> values(1000);
  const NamedTensor tensors[] = {{"x", {1000}, values}};
  testing::write_text(file, "old");
  rlimit unlimited{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const auto old_action = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 1024, .rlim_max = unlimited.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Result<void> written = write_safetensors(file, tensors);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  std::signal(SIGXFSZ, old_action);
  ASSERT_FALSE(written.has_value());
  EXPECT_NE(written.error().message.find("cannot write"), std::string::npos);
  EXPECT_EQ(*read_file(file), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "a temporary";
}

}  // namespace
}  // namespace tandem::model
