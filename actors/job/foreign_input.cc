#include "actors/job/foreign_input.h"

#include <sstream>

#include "actors/model/model_directory.h"

namespace tandem::job {

namespace fs = std::filesystem;

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

std::optional<Error> noted_hub_id_error(const fs::path& path, std::string_view line) {
  std::error_code ignored;
  const std::size_t comment = line.find(" #");
  if (comment == line.npos || fs::exists(path, ignored)) return std::nullopt;
  std::istringstream words{std::string(line.substr(comment + 2))};
  for (std::string word; words >> word;) {
    while (!word.empty() && std::string_view(",;").find(word.back()) != std::string_view::npos)
      word.pop_back();
    if (!model::is_hub_id(word) || fs::path(word).filename() != path.filename()) continue;
    return Error{ErrorCode::kFailed,
                 "there is no folder " + path.string() + ", and Tandem downloads nothing: `" +
                     word + "` is its model on the Hugging Face Hub, as the line's comment says",
                 "", "get it with `hf download " + word + " --local-dir " + path.string() + "`"};
  }
  return std::nullopt;
}

}  // namespace tandem::job
