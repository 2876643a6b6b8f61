#include "actors/translate/read_config.h"

#include <algorithm>

#include "actors/translate/read_python.h"
#include "actors/translate/read_shell.h"
#include "actors/translate/read_toml.h"
#include "actors/translate/read_yaml.h"
#include "runtime/base/file.h"
#include "runtime/base/text.h"

namespace tandem::translate {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kFoldersAboveMax = 6;  // of a script, where a named file is looked for
constexpr Duration kSilenceMax = std::chrono::seconds(60);  // of a pipe's writer

Result<void> check_text(std::string_view text, const std::string& origin) {
  int line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = first_code_point(text.substr(i));
    if (!point.valid || text[i] == '\0')
      return Error{ErrorCode::kInvalid, "the file is not UTF-8 text",
                   origin + ":" + std::to_string(line), "give a configuration or a script"};
    line += text[i] == '\n';
    i += point.bytes;
  }
  return {};
}

bool is_file(const fs::path& path) {
  std::error_code failure;
  return fs::is_regular_file(path, failure);
}

// The files that `defaults` names by a path: of `[ppo_trainer, _self_]` there are none.
std::vector<std::string> named_defaults(const ForeignConfig& config) {
  std::vector<std::string> names;
  const ForeignValue* const given = config.find("defaults");
  if (!given) return names;
  const json list = given->value.is_array() ? given->value : json::array({given->value});
  for (const json& one : list)
    if (one.is_string()) {
      const std::string name = one.get<std::string>();
      if (name.ends_with(".yaml") || name.ends_with(".yml")) names.push_back(name);
    }
  return names;
}

class Files {
 public:
  Result<ForeignConfig> read(const fs::path& path) {
    const std::string origin = path.string();
    std::error_code failure;
    const fs::path whole = fs::weakly_canonical(path, failure);
    if (std::ranges::find(under_way_, whole) != under_way_.end())
      return Error{ErrorCode::kInvalid, "files build on each other in a circle", origin,
                   "remove it from `defaults` of one of them"};
    if (++count_ > kFilesMax)
      return Error{ErrorCode::kInvalid, "more than " + std::to_string(kFilesMax) + " files", origin,
                   "write the values into one file"};
    auto text = read_file_or_pipe(path, kFileBytesMax, kSilenceMax);
    if (!text) return text.error();
    if (auto checked = check_text(*text, origin); !checked) return checked.error();
    under_way_.push_back(whole);
    auto config = of_text(*text, path);
    under_way_.pop_back();
    if (config && config->full())
      return Error{ErrorCode::kInvalid, "more than " + std::to_string(kValuesMax) + " values",
                   origin, "give a configuration of a training run"};
    return config;
  }

 private:
  Result<ForeignConfig> of_text(const std::string& text, const fs::path& path) {
    const std::string kind = path.extension();
    const std::string_view first = std::string_view(text).substr(0, text.find('\n'));
    if (kind == ".py" || (first.starts_with("#!") && first.find("python") != first.npos))
      return read_python(text, path.string());
    if (kind == ".sh" || kind == ".bash" || text.starts_with("#!")) return script(text, path);
    if (kind == ".toml") return read_toml(text, path.string());
    auto config = read_yaml(text, path.string());
    if (!config) return config;
    return with_defaults(*std::move(config), path);
  }

  Result<ForeignConfig> with_defaults(ForeignConfig config, const fs::path& path) {
    const std::vector<std::string> names = named_defaults(config);
    if (names.empty()) return config;
    const std::string where = config.find("defaults")->where;
    ForeignConfig whole(config.origin());
    for (const std::string& name : names) {
      const fs::path base = path.parent_path() / name;
      if (!is_file(base)) {
        whole.note(
            {"the file `" + name + "` of `defaults` is not there, and its values are missing",
             where});
        continue;
      }
      auto values = read(base.lexically_normal());
      if (!values) return values;
      whole.add(*values);
    }
    config.remove("defaults");
    whole.remove("defaults");
    whole.add(config);
    return whole;
  }

  Result<ForeignConfig> script(const std::string& text, const fs::path& path) {
    auto shell = read_shell(text, path.string());
    if (!shell) return shell.error();
    ForeignConfig whole(path.string());
    for (const NamedFile& file : shell->files) {
      const auto found = find_named(file.path, path);
      if (!found) {
        whole.note(
            {"the file `" + file.path + "` is not there, and its values are missing", file.where});
        continue;
      }
      auto values = read(*found);
      if (!values) return values;
      whole.add(*values);
    }
    whole.add(shell->config);
    whole.program = shell->config.program;
    return whole;
  }

  static std::optional<fs::path> find_named(const fs::path& name, const fs::path& script) {
    if (is_file(name)) return name;
    std::error_code failure;
    fs::path folder = fs::absolute(script, failure).parent_path();
    for (int above = 0; above < kFoldersAboveMax; ++above) {
      if (is_file(folder / name)) return (folder / name).lexically_normal();
      if (!folder.has_relative_path()) break;
      folder = folder.parent_path();
    }
    return {};
  }

  std::vector<fs::path> under_way_;
  std::size_t count_ = 0;
};

}  // namespace

Result<ForeignConfig> read_config(const fs::path& path) { return Files().read(path); }

}  // namespace tandem::translate
