#include "actors/data/parquet_program.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

#include "runtime/node/find_program.h"

namespace tandem::data {
namespace {

// Written for any pyarrow since version 8. Texts, whole numbers, truth values, and lists and
// structs of them become JSON by pyarrow's own functions, a column at once: the million records of
// scripts/data_bench take 1.9 s, where to_pylist() and an encoder for each record took 5.7 s.
// Values of the other types are converted one by one. Timestamps are read as whole numbers of their
// unit, since Python's own type has no nanoseconds, and years 1 to 9999 alone.
constexpr const char* kPythonProgram = R"python(
import sys
sys.path[:] = [folder for folder in sys.path if folder]  # nothing of the current folder
try:
    import pyarrow as pa
    import pyarrow.compute as pc
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

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
ESCAPES = [("\\", "\\\\"), ('"', '\\"')] + [(chr(i), encode(chr(i))[1:-1]) for i in range(32)]
TEXT = pa.large_string()

def join(*parts):
    return pc.binary_join_element_wise(*parts, pa.scalar("", TEXT))

def or_null(values, texts):
    return pc.if_else(pc.is_valid(values), texts, pa.scalar("null", TEXT))

def text_of_strings(values):
    values = values.cast(TEXT)
    if pc.any(pc.match_substring_regex(values, '[\\x00-\\x1f"\\\\]')).as_py():
        for sign, escape in ESCAPES:
            if sign in '\\"\n' or pc.any(pc.match_substring(values, sign)).as_py():
                values = pc.replace_substring(values, sign, escape)
    return join(pa.scalar('"', TEXT), values, pa.scalar('"', TEXT))

def text_of_lists(values, t):
    inner = texts_of(values.flatten(), t.value_type)
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64()))
    starts = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    lists = pa.LargeListArray.from_arrays(starts, inner)
    return join(pa.scalar("[", TEXT), pc.binary_join(lists, pa.scalar(",", TEXT)),
                pa.scalar("]", TEXT))

def text_of_object(names, texts):
    parts = []
    for name, text in zip(names, texts):
        parts += [pa.scalar(("," if parts else "{") + encode(name) + ":", TEXT), text]
    return join(*parts, pa.scalar("}" if parts else "{}", TEXT))

def texts_of(values, t):  # the values as texts in JSON, by columns, which is many times as fast
    if T.is_string(t) or T.is_large_string(t):
        return or_null(values, text_of_strings(values))
    if T.is_integer(t) or T.is_boolean(t):
        return or_null(values, values.cast(TEXT))
    if T.is_null(t):
        return pa.array(["null"] * len(values), TEXT)
    if T.is_list(t) or T.is_large_list(t):
        return or_null(values, text_of_lists(values, t))
    if T.is_struct(t) and 0 < t.num_fields == len({field.name for field in t}):
        texts = [texts_of(part, field.type) for part, field in zip(values.flatten(), t)]
        return or_null(values, text_of_object([field.name for field in t], texts))
    convert = converter(t) or (lambda value: value)
    rows = values.cast(storage(t)).to_pylist()
    return pa.array([encode(None if row is None else convert(row)) for row in rows], TEXT)

file = pq.ParquetFile("/dev/stdin")
schema = file.schema_arrow
places = {name: i for i, name in enumerate(schema.names)}  # of one name the last column
out = sys.stdout.buffer
for batch in file.iter_batches(batch_size=2000):
    texts = [texts_of(batch.column(i), schema.field(i).type) for i in places.values()]
    if len(batch) > 0:
        lines = join(text_of_object(places, texts), pa.scalar("\n", TEXT))
        ends = pa.Array.from_buffers(pa.int64(), len(lines) + 1, [None, lines.buffers()[1]],
                                     offset=lines.offset)
        out.write(memoryview(lines.buffers()[2])[ends[0].as_py():ends[-1].as_py()])
)python";

// A column without any number would become one of nulls.
constexpr const char* kPythonWriter = R"python(
import sys
sys.path[:] = [folder for folder in sys.path if folder]  # nothing of the current folder
try:
    import pyarrow as pa
    import pyarrow.csv, pyarrow.parquet
except ImportError:
    sys.exit(9)
table = pa.csv.read_csv("/dev/stdin")
types = [pa.int64()] + [pa.float64()] * (table.num_columns - 1)
table = table.cast(pa.schema(list(zip(table.column_names, types))), safe=False)
pa.parquet.write_table(table, sys.stdout.buffer)
)python";

// `name` as an identifier of SQL.
std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text.append(c == '"' ? 2 : 1, c);
  return text + "\"";
}

// Without these settings DuckDB would write temporary files into the current folder, fetch
// extensions from the network, and, while one of its threads waits for the pipe, let another one
// look for work all the time: more than half of its time on the processors. One thread writes JSON
// as fast as it is read here.
constexpr const char* kDuckdbSettings =
    "SET temp_directory=''; SET autoinstall_known_extensions=false; SET threads=1; ";

node::OutputProgram duckdb_program(const std::filesystem::path& duckdb,
                                   const std::string& statement, Duration silence_max) {
  return {.argv = {duckdb.string(), "-init", "/dev/null", "-batch", ":memory:", "-c",
                   kDuckdbSettings + statement},
          .environment = {{"TZ", "UTC"}},
          .silence_max = silence_max};
}

node::OutputProgram python_program(const std::filesystem::path& python, const char* program,
                                   Duration silence_max) {
  node::OutputProgram run{
      .argv = {python.string(), "-c", program}, .environment = {}, .silence_max = silence_max};
  // A Python outside the system's folders may need these to find its own parts.
  for (const char* name : {"PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH"})
    if (const char* const value = std::getenv(name)) run.environment[name] = value;
  return run;
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  });
  return text;
}

// Rows come in the order of the file, which is DuckDB's default.
std::string reading_statement(const ParquetFooter& footer) {
  std::string decimals;
  for (const ParquetLeaf& leaf : footer.leaves)
    if (leaf.kind == ParquetLeaf::Kind::kDecimal)
      decimals += (decimals.empty() ? " REPLACE (" : ", ") + std::string("CAST(") +
                  quoted(leaf.path.front()) + " AS VARCHAR) AS " + quoted(leaf.path.front());
  if (!decimals.empty()) decimals += ")";
  return "COPY (SELECT *" + decimals +
         " FROM read_parquet('/dev/stdin', hive_partitioning=false)) "
         "TO '/dev/stdout' (FORMAT json)";
}

// Does not name the other columns: there may be thousands, and Linux bounds the length of a
// program's argument.
std::string writing_statement(const std::string& whole_numbers) {
  const std::string name = quoted(whole_numbers);
  return "COPY (SELECT CAST(" + name + " AS BIGINT) AS " + name + ", CAST(COLUMNS(* EXCLUDE " +
         name +
         ") AS DOUBLE) FROM read_csv('/dev/stdin', header=true, all_varchar=true, delim=',', "
         "quote='\"', escape='\"')) TO '/dev/stdout' (FORMAT parquet)";
}

// Whether two columns, or two fields of one struct, differ in upper and lower case alone.
bool has_case_twins(const ParquetFooter& footer) {
  std::set<std::vector<std::string>> exact, folded;
  for (const ParquetLeaf& leaf : footer.leaves)
    for (std::size_t depth = 1; depth <= leaf.path.size(); ++depth) {
      std::vector<std::string> path(leaf.path.begin(),
                                    leaf.path.begin() + static_cast<std::ptrdiff_t>(depth));
      exact.insert(path);
      std::ranges::transform(path, path.begin(), lower_case);
      folded.insert(std::move(path));
    }
  return exact.size() != folded.size();
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
  if (programs.duckdb && !has_case_twins(footer))
    return duckdb_program(*programs.duckdb, reading_statement(footer), silence_max);
  if (programs.python) return python_program(*programs.python, kPythonProgram, silence_max);
  return no_parquet_program("");
}

Result<node::OutputProgram> parquet_writing_program(const ParquetPrograms& programs,
                                                    const std::vector<std::string>& columns,
                                                    Duration silence_max) {
  std::set<std::string> folded;
  for (const std::string& column : columns) folded.insert(lower_case(column));
  if (programs.duckdb && folded.size() == columns.size())
    return duckdb_program(*programs.duckdb, writing_statement(columns.front()), silence_max);
  if (programs.python) return python_program(*programs.python, kPythonWriter, silence_max);
  return no_parquet_program("");
}

Error no_parquet_program(const std::filesystem::path& path) {
  return {ErrorCode::kFailed,
          "parquet is read and written by DuckDB or by Python with pyarrow, and this machine has "
          "neither",
          path.string(),
          "`pip install pyarrow` for the python3 in PATH, or for the one that TANDEM_PYTHON names; "
          "or put DuckDB's program `duckdb` into PATH (`pip install duckdb-cli`)"};
}

}  // namespace tandem::data
