#include "runtime/sandbox/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace tandem::sandbox {
namespace {

namespace fs = std::filesystem;

class TreeTest : public testing::Test {
 protected:
  TreeTest() {
    std::string name = (fs::temp_directory_path() / "tandem-tree-XXXXXX").string();
    root = fs::canonical(mkdtemp(name.data()));
  }
  ~TreeTest() override { fs::remove_all(root); }

  fs::path folder(const std::string& name) const {
    fs::create_directories(root / name);
    return root / name;
  }
  fs::path file(const std::string& name) const {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << "x";
    return root / name;
  }
  fs::path root;
};

bool has(const std::vector<std::string>& list, const fs::path& path) {
  return std::ranges::find(list, path.string()) != list.end();
}

bool has_rule(const std::vector<PathRule>& rules, const fs::path& path) {
  return std::ranges::any_of(rules, [&](const auto& rule) { return rule.path == path; });
}

TEST_F(TreeTest, ShowsTheSystemTheProfilesPathsAndNothingElse_XB4) {
  const fs::path job = folder("job"), script = file("other/script.py");
  const Tree tree = tree_of({.readable = {job / "", script, root / "missing", "/"}});
  EXPECT_TRUE(has(tree.views, "/usr"));
  EXPECT_TRUE(has(tree.views, job));
  EXPECT_TRUE(has(tree.views, script)) << "the file alone";
  EXPECT_FALSE(has(tree.views, root / "other"));
  EXPECT_FALSE(has(tree.views, root / "missing"));
  for (const char* never : {"/", "/root", "/home", "/var", "/etc", "/etc/passwd", "/sys"})
    EXPECT_FALSE(has(tree.views, never)) << never;
  // Each folder comes after the one in which it lies.
  for (auto at = tree.folders.begin(); at != tree.folders.end(); ++at) {
    const fs::path above = fs::path(*at).parent_path();
    EXPECT_TRUE(above == "/" || std::find(tree.folders.begin(), at, above.string()) != at) << *at;
  }
}

TEST_F(TreeTest, LinksLeadToTheRealPlace) {
  const fs::path real = folder("data/job");
  fs::create_symlink(root / "data", root / "alias");
  const Tree tree = tree_of({.readable = {root / "alias/job"}});
  EXPECT_TRUE(has(tree.views, real));
  ASSERT_FALSE(tree.links.empty());
  EXPECT_EQ(tree.links.back().at, (root / "alias/job").string());
  EXPECT_EQ(tree.links.back().content, real.string());
}

TEST_F(TreeTest, APathWithinAReadableOneIsNotViewedTwice) {
  const fs::path job = folder("job"), inner = folder("job/inner");
  const Tree tree = tree_of({.readable = {inner, job, "/usr/bin"}});
  EXPECT_TRUE(has(tree.views, job));
  EXPECT_FALSE(has(tree.views, inner));
  EXPECT_FALSE(has(tree.views, "/usr/bin"));
}

TEST_F(TreeTest, CoversWhatIsHidden_XB4) {
  const fs::path job = folder("job"), runs = folder("job/runs"), state = folder("state");
  const Tree tree = tree_of({.readable = {job}, .hidden = {runs, state, root / "missing"}});
  EXPECT_EQ(tree.covers, std::vector<std::string>{runs.string()});
}

TEST_F(TreeTest, RulesLeaveOutWhatIsHidden_XB4) {
  const fs::path job = folder("job"), script = file("job/script.py"), runs = folder("job/a/runs");
  const fs::path beside = file("job/a/beside");
  fs::create_symlink(runs, job / "link");
  const auto open = rules_of({.readable = {job}}, "/scratch");
  EXPECT_TRUE(has_rule(open, job));
  const auto rules = rules_of({.readable = {job}, .hidden = {runs}}, "/scratch");
  EXPECT_TRUE(has_rule(rules, script));
  EXPECT_TRUE(has_rule(rules, beside));
  EXPECT_TRUE(has_rule(rules, "/scratch"));
  for (const fs::path& never : {job, job / "a", runs, job / "link"})
    EXPECT_FALSE(has_rule(rules, never)) << never;
  EXPECT_FALSE(has_rule(rules_of({.readable = {runs}, .hidden = {job}}, "/scratch"), runs));
}

TEST_F(TreeTest, AProgramNeedsItsInstallation) {
  const fs::path home = folder("home");
  const fs::path real = file("home/versions/3/bin/python3");
  folder("home/versions/3/lib");
  const fs::path venv = folder("home/job/venv");
  folder("home/job/venv/lib");
  folder("home/job/venv/bin");
  fs::create_symlink(real, venv / "bin/python");
  EXPECT_EQ(readable_for(venv / "bin/python", home),
            (std::vector<std::string>{venv, root / "home/versions/3"}));
  EXPECT_EQ(readable_for(file("home/tools/score"), home),
            std::vector<std::string>{root / "home/tools"});
  EXPECT_TRUE(readable_for("/usr/bin/env", home).empty());
}

TEST_F(TreeTest, AProgramNeverOpensTheHomeFolder) {
  const fs::path home = folder("home");
  folder("home/lib");
  EXPECT_EQ(readable_for(file("home/score"), home), std::vector<std::string>{home / "score"});
  EXPECT_EQ(readable_for(file("home/bin/score"), home), std::vector<std::string>{home / "bin"});
  EXPECT_EQ(readable_for(file("above"), home), std::vector<std::string>{root / "above"});
}

}  // namespace
}  // namespace tandem::sandbox
