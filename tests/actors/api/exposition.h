// Reads Prometheus' text format, version 0.0.4, as strictly as a scraper may: whatever breaks the
// format fails the test.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

using Labels = std::map<std::string, std::string>;

struct ExpositionSample {
  std::string name;  // with the suffix of a histogram's
  Labels labels;
  double value = 0;
};

struct MetricFamily {
  std::string name, type;
  std::vector<ExpositionSample> samples;
};

// `{a="b",c="d"}` from its first quote on; nothing where it is malformed.
inline std::optional<Labels> read_labels(const std::string& text) {
  static const std::regex whole(
      R"re(\{([a-zA-Z_]\w*="([^"\\\n]|\\[\\"n])*"(,(?=[a-zA-Z_])|(?=\})))+\})re");
  if (!std::regex_match(text, whole)) return std::nullopt;
  static const std::regex one(R"re((\w+)="((?:[^"\\]|\\.)*)")re");
  Labels labels;
  for (std::sregex_iterator at(text.begin(), text.end(), one), end; at != end; ++at) {
    std::string value;
    const std::string written = (*at)[2].str();
    for (std::size_t i = 0; i < written.size(); ++i) {
      if (written[i] != '\\')
        value += written[i];
      else
        value += written[++i] == 'n' ? '\n' : written[i];
    }
    if (!labels.emplace((*at)[1].str(), value).second) return std::nullopt;
  }
  return labels;
}

inline std::optional<double> read_number(const std::string& text) {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  if (text == "-Inf") return -std::numeric_limits<double>::infinity();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

inline void expect_histogram(const MetricFamily& family) {
  struct Series {
    std::vector<std::pair<double, double>> buckets;  // bound, cumulative count
    std::optional<double> sum, count;
  };
  std::map<Labels, Series> all;
  for (const ExpositionSample& sample : family.samples) {
    Labels labels = sample.labels;
    const auto bound = labels.extract("le");
    Series& series = all[labels];
    if (sample.name == family.name + "_bucket") {
      ASSERT_TRUE(bound) << family.name << ": a bucket without a bound";
      const auto value = read_number(bound.mapped());
      ASSERT_TRUE(value) << bound.mapped();
      series.buckets.emplace_back(*value, sample.value);
    } else {
      ASSERT_FALSE(bound) << sample.name;
      (sample.name == family.name + "_sum" ? series.sum : series.count) = sample.value;
    }
  }
  for (const auto& [labels, series] : all) {
    ASSERT_FALSE(series.buckets.empty()) << family.name;
    for (std::size_t i = 1; i < series.buckets.size(); ++i) {
      EXPECT_LT(series.buckets[i - 1].first, series.buckets[i].first) << family.name;
      EXPECT_LE(series.buckets[i - 1].second, series.buckets[i].second) << family.name;
    }
    EXPECT_TRUE(std::isinf(series.buckets.back().first)) << family.name;
    EXPECT_TRUE(series.sum) << family.name;
    EXPECT_EQ(series.count, series.buckets.back().second) << family.name;
  }
}

// Each family once, announced by HELP and TYPE, followed by all of its samples; no series twice.
inline std::vector<MetricFamily> read_exposition(const std::string& text) {
  static const std::regex help(R"(# HELP ([a-zA-Z_:][\w:]*) .+)");
  static const std::regex type(R"(# TYPE ([a-zA-Z_:][\w:]*) (counter|gauge|histogram))");
  static const std::regex sample(R"(([a-zA-Z_:][\w:]*)(\{.*\}) (\S+))");
  EXPECT_TRUE(text.ends_with('\n'));
  std::vector<MetricFamily> families;
  std::set<std::string> names;
  std::set<std::pair<std::string, Labels>> series;
  std::istringstream lines(text);
  std::string line, announced;
  for (std::smatch match; std::getline(lines, line);) {
    if (std::regex_match(line, match, help)) {
      announced = match[1];
      EXPECT_TRUE(names.insert(announced).second) << announced << " comes twice";
    } else if (std::regex_match(line, match, type)) {
      EXPECT_EQ(match[1], announced) << "HELP comes first";
      families.push_back({.name = match[1], .type = match[2], .samples = {}});
      EXPECT_EQ(families.back().type == "counter", announced.ends_with("_total")) << line;
    } else if (std::regex_match(line, match, sample) && !families.empty()) {
      MetricFamily& family = families.back();
      const std::string name = match[1];
      const bool suffixed = name == family.name + "_bucket" || name == family.name + "_sum" ||
                            name == family.name + "_count";
      EXPECT_TRUE(family.type == "histogram" ? suffixed : name == family.name) << line;
      const auto labels = read_labels(match[2]);
      const auto value = read_number(match[3]);
      EXPECT_TRUE(labels && value) << line;
      if (!labels || !value) continue;
      EXPECT_TRUE(series.emplace(name, *labels).second) << line << " comes twice";
      EXPECT_TRUE(family.type != "counter" || *value >= 0) << line;
      family.samples.push_back({name, *labels, *value});
    } else {
      ADD_FAILURE() << "no line of the format: " << line;
    }
  }
  for (const MetricFamily& family : families)
    if (family.type == "histogram") expect_histogram(family);
  return families;
}

}  // namespace tandem
