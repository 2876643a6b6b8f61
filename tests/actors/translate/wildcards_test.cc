// A rule with a final `*` decides of keys that nobody named. Where it says that nothing is lost, a
// key that matters would be hidden. Hence each key that such a rule takes, of the examples in
// tests/golden/import and of the frameworks' own configurations, is on a list that a person has
// read: tests/golden/import_keys/DIALECT.txt, with lines of four kinds.
//
//   section ROW REASON  no key of this row can change what is learned, whatever it is
//   row ROW             the keys below it are taken by this row, and by the row's own sentence
//   allowed KEY         nothing is lost by the key
//   key KEY             another key of the framework's own configuration
//
// Tests actors/translate/dialect.h, actors/translate/dialects.h.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "actors/translate/dialects.h"
#include "actors/translate/read_config.h"

namespace tandem::translate {
namespace {

namespace fs = std::filesystem;

struct Lists {
  std::map<std::string, std::string> sections;  // row -> reason
  std::map<std::string, std::string> allowed;   // key -> row
  std::set<std::string> keys;                   // all others
};

fs::path list_of(const Dialect& dialect) {
  return fs::path(TANDEM_SOURCE_DIR "/tests/golden/import_keys") /
         (std::string(dialect.name) + ".txt");
}

Lists read_lists(const Dialect& dialect) {
  Lists lists;
  std::ifstream in(list_of(dialect));
  EXPECT_TRUE(in) << list_of(dialect);
  std::string row;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string kind, name, reason;
    words >> kind >> name;
    std::getline(words, reason);
    if (kind == "section")
      lists.sections[name] = reason;
    else if (kind == "row")
      row = name;
    else if (kind == "allowed")
      lists.allowed[name] = row;
    else if (kind == "key")
      lists.keys.insert(name);
    else
      ADD_FAILURE() << list_of(dialect) << ": " << line;
  }
  return lists;
}

// The row that takes the key and says that nothing is lost; nullptr where a row of its own decides,
// or the key is told.
const Rule* hidden_by(const Dialect& dialect, std::string_view key) {
  const Rule* const rule = find_rule(dialect, key);
  const bool silent = rule && rule->ours.empty() && rule->severity == Severity::kSame;
  return silent && rule->key.ends_with('*') ? rule : nullptr;
}

void expect_known(const Dialect& dialect, const Lists& lists, const std::string& key) {
  const Rule* const rule = hidden_by(dialect, key);
  if (!rule || lists.sections.contains(std::string(rule->key))) return;
  EXPECT_TRUE(lists.allowed.contains(key))
      << dialect.name << " " << rule->key << " " << key << "\nhides a key that nobody has looked "
      << "at: give it a row of its own if it changes what is learned, else write it into "
      << list_of(dialect);
}

TEST(Wildcards, HideNoKeyOfTheExamples) {
  for (const Dialect& dialect : dialects()) {
    const Lists lists = read_lists(dialect);
    std::size_t files = 0;
    const fs::path folder = fs::path(TANDEM_SOURCE_DIR "/tests/golden/import") / dialect.name;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().string().ends_with(".job.yaml")) continue;
      const auto config = read_config(entry.path());
      ASSERT_TRUE(config) << render(config.error());
      for (const ForeignValue& one : config->values()) expect_known(dialect, lists, one.key);
      ++files;
    }
    EXPECT_GT(files, 0u) << folder;
  }
}

TEST(Wildcards, HideNoKeyOfTheFrameworksThemselves) {
  std::size_t keys = 0;
  for (const Dialect& dialect : dialects()) {
    const Lists lists = read_lists(dialect);
    for (const std::string& key : lists.keys) expect_known(dialect, lists, key);
    for (const ForeignDefault& one : dialect.defaults)
      expect_known(dialect, lists, std::string(one.key));
    keys += lists.keys.size();
  }
  EXPECT_GT(keys, 500u);
}

TEST(Wildcards, TheListsAreOfRowsThatAreThere) {
  for (const Dialect& dialect : dialects()) {
    const Lists lists = read_lists(dialect);
    for (const auto& [row, reason] : lists.sections) {
      EXPECT_GT(reason.size(), 10u) << dialect.name << " " << row << " has no reason";
      const Rule* const rule = hidden_by(dialect, row);
      EXPECT_TRUE(rule && rule->key == row) << dialect.name << " has no row " << row;
    }
    for (const auto& [key, row] : lists.allowed) {
      const Rule* const rule = hidden_by(dialect, key);
      ASSERT_TRUE(rule) << dialect.name << " " << key << " is hidden by no row any more";
      EXPECT_EQ(rule->key, row) << dialect.name << " " << key;
      EXPECT_FALSE(rule->text.empty()) << "the row's sentence is the reason";
    }
  }
}

}  // namespace
}  // namespace tandem::translate
