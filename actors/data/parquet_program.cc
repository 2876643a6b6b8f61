#include "actors/data/parquet_program.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

#include "runtime/node/find_program.h"

namespace tandem::data {
namespace {

// Written for any pyarrow since version 8. Timestamps are read as whole numbers of their unit,
// since Python's own type has no nanoseconds, and years 1 to 9999 alone.
constexpr const char* kPythonProgram = R"python(
import sys
sys.path[:] = [folder for folder in sys.path if folder]  # nothing of the current folder
try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    sys.exit(9)
import datetime, json
T = pa.types
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

def is_list(t):
    return T.is_list(t) or T.is_large_list(t) or T.is_fixed_size_list(t)

def storage(t):  # the type as which a column is read
    if T.is_timestamp(t):
        return pa.int64()
    if T.is_decimal(t):
        return pa.string()
    if T.is_dictionary(t):
        return storage(t.value_type)
    if is_list(t):
        return pa.list_(storage(t.value_type))
    if T.is_struct(t):
        return pa.struct([field.with_type(storage(field.type)) for field in t])
    if T.is_map(t):
        return pa.map_(t.key_type, storage(t.item_type))
    return t

def clock(text):  # without zeros at the end of a fraction
    return text.rstrip("0").rstrip(".") if "." in text else text

def timestamp(t):
    unit, zone = UNITS[t.unit], "+00" if t.tz else ""
    digits = len(str(unit)) - 1
    def text(value):
        seconds, rest = divmod(value, unit)
        day, second = divmod(seconds, 86400)
        date = datetime.date.fromordinal(719163 + day)
        time = "%02d:%02d:%02d" % (second // 3600, second // 60 % 60, second % 60)
        return str(date) + " " + clock(time + (".%0*d" % (digits, rest) if digits else "")) + zone
    return text

def converter(t):  # from a value of Python to a value of JSON; None: it is one already
    if T.is_timestamp(t):
        return timestamp(t)
    if T.is_date(t):
        return str
    if T.is_time(t):
        return lambda value: clock(str(value))
    if T.is_dictionary(t):
        return converter(t.value_type)
    if is_list(t):
        inner = converter(t.value_type)
        return inner and (lambda value: [None if v is None else inner(v) for v in value])
    if T.is_struct(t):
        inner = {field.name: converter(field.type) for field in t}
        if not any(inner.values()):
            return None
        return lambda value: {k: inner[k](v) if inner[k] and v is not None else v
                              for k, v in value.items()}
    if T.is_map(t):
        inner = converter(t.item_type) or (lambda value: value)
        return lambda value: {str(k): None if v is None else inner(v) for k, v in value}
    return None

file = pq.ParquetFile("/dev/stdin")
schema = file.schema_arrow
stored = pa.schema([pa.field(field.name, storage(field.type)) for field in schema])
changed = [(f.name, convert) for f in schema if (convert := converter(f.type))]
encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
out = sys.stdout.buffer
for batch in file.iter_batches(batch_size=2000):
    if not stored.equals(schema):
        batch = pa.Table.from_batches([batch]).cast(stored)
    rows = batch.to_pylist()
    for name, convert in changed:
        for row in rows:
            if row[name] is not None:
                row[name] = convert(row[name])
    out.write(("\n".join(map(encode, rows)) + "\n").encode())
)python";

// `name` as an identifier of SQL.
std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

// Rows come in the order of the file, which is DuckDB's default. Without its two settings it would
// write temporary files into the current folder and fetch extensions from the network.
std::string duckdb_statements(const ParquetFooter& footer) {
  std::string decimals;
  for (const ParquetLeaf& leaf : footer.leaves)
    if (leaf.kind == ParquetLeaf::Kind::kDecimal)
      decimals += (decimals.empty() ? " REPLACE (" : ", ") + std::string("CAST(") +
                  quoted(leaf.path.front()) + " AS VARCHAR) AS " + quoted(leaf.path.front());
  if (!decimals.empty()) decimals += ")";
  return "SET temp_directory=''; SET autoinstall_known_extensions=false; "
         "COPY (SELECT *" +
         decimals +
         " FROM read_parquet('/dev/stdin', hive_partitioning=false)) "
         "TO '/dev/stdout' (FORMAT json)";
}

// Whether two columns, or two fields of one struct, differ in upper and lower case alone.
bool has_case_twins(const ParquetFooter& footer) {
  std::set<std::vector<std::string>> exact, folded;
  for (const ParquetLeaf& leaf : footer.leaves)
    for (std::size_t depth = 1; depth <= leaf.path.size(); ++depth) {
      std::vector<std::string> path(leaf.path.begin(),
                                    leaf.path.begin() + static_cast<std::ptrdiff_t>(depth));
      exact.insert(path);
      for (std::string& name : path)
        std::ranges::transform(name, name.begin(), [](unsigned char c) {
          return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
        });
      folded.insert(std::move(path));
    }
  return exact.size() != folded.size();
}

// Values of a variable that is set for this process, for the child as well.
void pass_on(const char* name, std::map<std::string, std::string>& environment) {
  if (const char* const value = std::getenv(name)) environment[name] = value;
}

}  // namespace

ParquetPrograms find_parquet_programs() {
  const char* const path = std::getenv("PATH");
  const char* const chosen = std::getenv("TANDEM_PYTHON");
  return {.duckdb = node::find_program("duckdb", path),
          .python = node::find_program(chosen && *chosen ? chosen : "python3", path)};
}

Result<node::OutputProgram> parquet_program(const ParquetPrograms& programs,
                                            const ParquetFooter& footer, Duration silence_max) {
  node::OutputProgram program{.argv = {}, .environment = {}, .silence_max = silence_max};
  if (programs.duckdb && !has_case_twins(footer)) {
    program.argv = {programs.duckdb->string(), "-init", "/dev/null", "-batch", ":memory:", "-c",
                    duckdb_statements(footer)};
    program.environment["TZ"] = "UTC";
  } else if (programs.python) {
    program.argv = {programs.python->string(), "-c", kPythonProgram};
    // A Python outside the system's folders may need these to find its own parts.
    for (const char* name : {"PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH"})
      pass_on(name, program.environment);
  } else {
    return no_parquet_program("");
  }
  return program;
}

Error no_parquet_program(const std::filesystem::path& path) {
  return {
      ErrorCode::kFailed,
      "a parquet file is read by DuckDB or by Python with pyarrow, and this machine has neither",
      path.string(),
      "`pip install pyarrow` for the python3 in PATH, or for the one that TANDEM_PYTHON names; "
      "or put DuckDB's program `duckdb` into PATH (`pip install duckdb-cli`)"};
}

}  // namespace tandem::data
