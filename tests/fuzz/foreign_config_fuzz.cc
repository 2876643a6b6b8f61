// The configuration of another framework, as `tandem import` reads it: YAML, TOML, a shell script
// or a Python script, by the first byte, which also chooses whether it is only read: a translation
// tries the job many times, and is a hundred times as slow. Checked: an error names a place; what
// is translated is a job that parse_job() takes (IM-1), and its findings can be shown.
#include "actors/job/load_job.h"
#include "actors/translate/dialects.h"
#include "actors/translate/read_python.h"
#include "actors/translate/read_shell.h"
#include "actors/translate/read_toml.h"
#include "actors/translate/read_yaml.h"
#include "actors/translate/translate.h"
#include "actors/translate/write_job.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {
namespace {

using translate::ForeignConfig;

constexpr std::uint8_t kPythonKind = 244;  // and above

Result<ForeignConfig> read(std::uint8_t kind, std::string_view text) {
  if (kind >= kPythonKind)
    return valid_utf8(text) == text ? translate::read_python(text, "train.py")
                                    : Error{ErrorCode::kInvalid, "no UTF-8", "train.py", ""};
  switch (kind % 3) {
    case 0:
      return translate::read_yaml(text, "config.yaml");
    case 1:
      return translate::read_toml(text, "config.toml");
    default:
      break;
  }
  auto script = translate::read_shell(text, "run.sh");
  if (!script) return script.error();
  return std::move(script->config);
}

void check_error(const Error& error) { CHECK(!error.message.empty() && !error.where.empty()); }

}  // namespace

void foreign_config(std::string_view input) {
  Pieces pieces(input);
  const std::uint8_t kind = pieces.byte();
  const auto config = read(kind, pieces.rest());
  if (!config) return check_error(config.error());
  if (kind % 6 >= 3) return;
  const auto dialect = translate::recognise(*config);
  if (!dialect) return check_error(dialect.error());
  const auto translation = translate::translate(*config, **dialect);
  if (!translation) return check_error(translation.error());
  const std::string job = translate::write_job(*translation);
  const auto loaded = job::parse_job({.yaml = job,
                                      .origin = "job.yaml",
                                      .base = "/nowhere",
                                      .set_base = "/nowhere",
                                      .files = job::Files::kUnchecked});
  CHECK(loaded.has_value());
  CHECK(translate::findings_text(translation->findings, "", 80).empty() ==
        translation->findings.empty());
}

}  // namespace tandem::fuzz
