#include "actors/job/file_pattern.h"

#include <fnmatch.h>

#include <algorithm>
#include <span>
#include <string>
#include <system_error>

namespace tandem::job {

namespace fs = std::filesystem;

namespace {

// Walks from a folder along the parts of a pattern, and collects the files at its end.
class Walk {
 public:
  explicit Walk(const fs::path& pattern) : pattern_(pattern) {
    for (const fs::path& part : pattern) parts_.push_back(part);
  }

  Result<std::vector<fs::path>> files(const fs::path& folder) {
    visit(folder, parts_, 0);
    if (failure_) return *failure_;
    std::ranges::sort(found_);
    // `**` may reach one file by several ways.
    found_.erase(std::ranges::unique(found_).begin(), found_.end());
    return std::move(found_);
  }

 private:
  void visit(const fs::path& folder, std::span<const std::string> parts, std::size_t depth) {
    if (parts.empty() || failure_) return;
    if (depth > kFoldersDeepMax)
      return fail("folders more than " + std::to_string(kFoldersDeepMax) + " deep");
    const std::string& part = parts.front();
    const auto rest = parts.subspan(1);
    std::error_code ignored;
    if (!is_pattern(part)) {
      const fs::path next = folder / part;
      if (rest.empty() ? fs::exists(next, ignored) : fs::is_directory(next, ignored))
        rest.empty() ? take(next) : visit(next, rest, depth + 1);
      return;
    }
    const bool any_folders = part == "**";
    if (any_folders) visit(folder, rest, depth);
    for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end && !failure_;
         at.increment(ignored)) {
      if (++looked_at_ > kEntriesLookedAtMax)
        return fail("more than " + std::to_string(kEntriesLookedAtMax) + " files and folders");
      const std::string name = at->path().filename();
      std::error_code gone;
      if (any_folders) {
        // A link to a folder above would never end.
        if (!name.starts_with('.') && at->is_directory(gone) && !at->is_symlink(gone))
          visit(at->path(), parts, depth + 1);
      } else if (::fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) == 0) {
        rest.empty() ? take(at->path()) : visit(at->path(), rest, depth + 1);
      }
    }
  }

  void take(const fs::path& path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return;
    if (found_.size() == kDataFilesMax)
      return fail("more than " + std::to_string(kDataFilesMax) + " files that match");
    found_.push_back(path);
  }

  void fail(const std::string& why) {
    failure_ = Error{ErrorCode::kInvalid, "there are " + why, pattern_.string(),
                     "name a folder further down, or a narrower pattern"};
  }

  const fs::path pattern_;
  std::vector<std::string> parts_;
  std::vector<fs::path> found_;
  std::size_t looked_at_ = 0;
  std::optional<Error> failure_;
};

}  // namespace

bool is_pattern(std::string_view text) { return text.find_first_of("*?[") != text.npos; }

Result<std::vector<fs::path>> files_matching(const fs::path& folder, const fs::path& pattern) {
  // The constant beginning of an absolute pattern is no folder to list.
  return Walk(pattern.relative_path()).files(pattern.is_absolute() ? pattern.root_path() : folder);
}

}  // namespace tandem::job
