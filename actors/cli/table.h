// Plain-text tables that fit a terminal, and the number formats that cells share. Widths are in
// columns of a terminal. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::cli {

enum class Align { kLeft, kRight };
enum class Cut { kEnd, kMiddle };  // where a cell that is too wide is cut

struct Column {
  std::string title;
  Align align = Align::kLeft;
  int width_min = 4;  // columns; a table that is too wide shrinks its columns down to this
  Cut cut = Cut::kEnd;
  int drop = 0;  // > 0: left out where the table would still be too wide, the greatest first
};

using Row = std::vector<std::string>;

inline constexpr int kUnlimitedWidth = 1 << 30;  // pipes and files: never truncate

// The natural widths of a table's columns. In a table that is shown again and again the widths only
// grow, so that the columns stay where they are.
using ColumnWidths = std::vector<int>;

// A header line and one line per row, columns two spaces apart, no trailing spaces. A table wider
// than `width` leaves out the columns that may be dropped, and shrinks the widest of the others,
// whose cells then show "…"; control characters in cells are shown as escapes (text.h), so a cell
// never breaks the line or the terminal. Cells beyond the last column are not shown, missing ones
// are empty. With kUnlimitedWidth nothing is cut, and a cell wider than 64 columns moves the rest
// of its own row alone. `kept`, if given, are the widths of earlier tables of these columns; it is
// updated.
std::string render_table(const std::vector<Column>& columns, const std::vector<Row>& rows,
                         int width, ColumnWidths* kept = nullptr);

// The columns that a text takes on a terminal: one per code point, two for wide East Asian ones,
// none for combining ones. An approximation by blocks of code points.
int display_width(std::string_view text);

// At most `width` columns of `text`, with "…" as the last one if something was cut.
std::string fit(std::string_view text, int width);
// The same with both ends kept: "arithm…olout/0".
std::string fit_middle(std::string_view text, int width);

// A duration with two units: "5s", "3m12s", "2h05m", "4d03h". Negative ones are 0.
std::string age(double seconds);
// The AGE column, as short as kubectl's: "5s", "3m20s", "45m", "2h5m", "23h", "4d".
std::string short_age(double seconds);

// "0", "950", "12.3k", "4.6M", in powers of 1000; "1.5 GiB", in powers of 1024.
std::string short_count(double value);
std::string short_bytes(double bytes);

}  // namespace tandem::cli
