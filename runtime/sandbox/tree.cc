// The system's part is the folders of programs and libraries, and of /etc only what the loader and
// the links to programs need. /etc/passwd is ours, so that a library that asks for the user's name
// gets one, and the machine's users stay unknown.
#include "runtime/sandbox/tree.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace tandem::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 8> kSystem{"/usr",   "/bin",   "/sbin",   "/lib",
                                             "/lib32", "/lib64", "/libx32", "/nix/store"};
constexpr std::array<const char*, 5> kOfEtc{"/etc/ld.so.cache", "/etc/ld.so.conf",
                                            "/etc/ld.so.conf.d", "/etc/alternatives",
                                            "/etc/localtime"};
constexpr std::array<const char*, 5> kDevices{"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                              "/dev/urandom"};
constexpr int kLinksMax = 16;  // from one program to another; a circle ends there

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

bool is_link(const fs::path& path) {
  std::error_code ignored;
  return fs::is_symlink(fs::symlink_status(path, ignored));
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// Whether `path` is `folder` or lies in it.
bool within(const fs::path& path, const fs::path& folder) {
  const auto [end, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

bool of_system(const fs::path& path) {
  return std::ranges::any_of(kSystem, [&](const char* folder) { return within(path, folder); });
}

// Without "." and "..", and without a slash at the end.
fs::path plain(const std::string& path) {
  fs::path normal = fs::path(path).lexically_normal();
  return normal.has_filename() || normal == normal.root_path() ? normal : normal.parent_path();
}

void add_once(std::vector<std::string>& list, const fs::path& path) {
  if (std::ranges::find(list, path.string()) == list.end()) list.push_back(path.string());
}

// The folder, after those in which it lies.
void add_folder(Tree& tree, const fs::path& folder) {
  if (folder == folder.root_path()) return;
  add_folder(tree, folder.parent_path());
  add_once(tree.folders, folder);
}

void add_view(Tree& tree, const fs::path& path) {
  if (is_folder(path)) {
    add_folder(tree, path);
  } else {
    add_folder(tree, path.parent_path());
    tree.files.push_back({path.string(), ""});  // a place for the view
  }
  add_once(tree.views, path);
}

bool in_view(const Tree& tree, const fs::path& path) {
  return std::ranges::any_of(tree.views, [&](const auto& view) { return within(path, view); });
}

// Where the path itself, or a folder above it, is a link, the real place is in view, and the path
// is a link to it.
void add_readable(Tree& tree, const fs::path& path) {
  if (path == path.root_path() || !is_there(path) || of_system(path) || in_view(tree, path)) return;
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  if (failed) return;
  if (real == path) return add_view(tree, path);
  if (!in_view(tree, real) && real != real.root_path()) add_view(tree, real);
  add_folder(tree, path.parent_path());
  tree.links.push_back({path, real});
}

void add_of_system(Tree& tree, const fs::path& path) {
  std::error_code failed;
  if (is_link(path))
    tree.links.push_back({path, fs::read_symlink(path, failed).string()});
  else if (is_there(path))
    add_view(tree, path);
}

// The path without what is hidden below it.
void add_rules(std::vector<PathRule>& rules, const fs::path& path,
               const std::vector<std::string>& hidden) {
  const auto is_hidden = [&](const auto& one) { return within(path, plain(one)); };
  if (std::ranges::any_of(hidden, is_hidden)) return;
  const auto is_below = [&](const auto& one) { return within(plain(one), path); };
  if (std::ranges::none_of(hidden, is_below)) {
    rules.push_back({path.string(), PathRights::kRead});
    return;
  }
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, failed))
    if (!entry.is_symlink(failed)) add_rules(rules, entry.path(), hidden);
}

}  // namespace

Tree tree_of(const Profile& profile) {
  Tree tree;
  for (const char* folder : {"/etc", "/dev", "/proc"}) add_folder(tree, folder);
  for (const char* path : kSystem) add_of_system(tree, path);
  for (const char* path : kOfEtc) add_of_system(tree, path);
  tree.files.push_back({"/etc/passwd", "sandbox:x:65534:65534::/tmp:/bin/sh\n"});
  tree.files.push_back({"/etc/group", "sandbox:x:65534:\n"});
  for (const char* device : kDevices) {
    tree.files.push_back({device, ""});
    tree.devices.emplace_back(device);
  }
  tree.links.push_back({"/dev/fd", "/proc/self/fd"});
  tree.links.push_back({"/dev/stdin", "/proc/self/fd/0"});
  tree.links.push_back({"/dev/stdout", "/proc/self/fd/1"});
  tree.links.push_back({"/dev/stderr", "/proc/self/fd/2"});
  tree.links.push_back({"/dev/shm", kScratchFolder});
  // A folder comes before what lies in it, which is then in view already.
  std::vector<std::string> readable;
  for (const std::string& path : profile.readable) readable.push_back(plain(path).string());
  std::ranges::sort(readable);
  for (const std::string& path : readable) add_readable(tree, path);
  for (const std::string& path : profile.hidden) {
    std::error_code failed;
    const fs::path real = fs::canonical(path, failed);
    if (!failed && in_view(tree, real)) add_once(tree.covers, real);
  }
  if (!profile.sockets.empty()) add_readable(tree, plain(profile.sockets));
  return tree;
}

std::vector<PathRule> rules_of(const Profile& profile, const std::string& scratch) {
  std::vector<std::string> hidden;
  std::error_code failed;
  for (const std::string& path : profile.hidden) {
    const fs::path real = fs::canonical(path, failed);
    if (!failed) hidden.push_back(real.string());
  }
  std::vector<PathRule> rules;
  for (const char* path : kSystem)
    if (const fs::path real = fs::canonical(path, failed); !failed) add_rules(rules, real, hidden);
  for (const char* path : kOfEtc) rules.push_back({path, PathRights::kRead});
  for (const std::string& path : profile.readable)
    if (const fs::path real = fs::canonical(path, failed); !failed) add_rules(rules, real, hidden);
  for (const char* device : kDevices) rules.push_back({device, PathRights::kDevice});
  rules.push_back({scratch, PathRights::kReadWrite});
  return rules;
}

std::vector<PathRule> rules_within_tree() {
  std::vector<PathRule> rules{{"/", PathRights::kRead}, {kScratchFolder, PathRights::kReadWrite}};
  for (const char* device : kDevices) rules.push_back({device, PathRights::kDevice});
  return rules;
}

std::vector<std::string> readable_for(const std::string& program, const std::string& home) {
  std::vector<std::string> readable;
  fs::path at = plain(program);
  for (int links = 0; links < kLinksMax; ++links) {
    const fs::path folder = at.parent_path();
    const fs::path above = folder.parent_path();
    const bool installed = (folder.filename() == "bin" || folder.filename() == "shims") &&
                           (is_folder(above / "lib") || is_folder(above / "libexec"));
    const auto too_wide = [&](const fs::path& path) { return within(plain(home), path); };
    if (!of_system(at)) {
      if (installed && !too_wide(above))
        add_once(readable, above);
      else
        add_once(readable, too_wide(folder) ? at : folder);
    }
    if (!is_link(at)) break;
    std::error_code failed;
    at = plain((fs::canonical(folder, failed) / fs::read_symlink(at, failed)).string());
  }
  return readable;
}

std::vector<std::string> readable_for_all(const std::vector<std::string>& argv,
                                          const std::string& home) {
  std::vector<std::string> readable;
  for (const std::string& word : argv) {
    std::error_code failed;
    if (!word.starts_with('/') || !fs::exists(word, failed)) continue;
    if (fs::is_directory(word, failed))
      readable.push_back(word);
    else
      for (const std::string& path : readable_for(word, home)) readable.push_back(path);
  }
  return readable;
}

}  // namespace tandem::sandbox
