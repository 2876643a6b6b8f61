// Tables and their cells.
#include "actors/cli/table.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/rng.h"
#include "tests/actors/cli/api_objects.h"

namespace tandem::cli {
namespace {

TEST(Table, AlignsAndCuts) {
  const std::vector<Column> columns{{"NAME"}, {"N", Align::kRight, 1}};
  EXPECT_EQ(render_table(columns, {{"a", "1"}, {"bcdef", "12"}}, 80),
            "NAME    N\na       1\nbcdef  12\n");
  EXPECT_EQ(render_table(columns, {{"abcdefghij", "1"}}, 8), "NAME   N\nabcd…  1\n");
  EXPECT_EQ(render_table(columns, {}, 80), "NAME  N\n");
}

TEST(Table, KeepsBothEndsOfANameAndLeavesOutWhatMayGo) {
  EXPECT_EQ(fit_middle("arithmetic-grpo-1/rollout/0", 15), "arithme…llout/0");
  EXPECT_EQ(fit_middle("arithmetic-grpo-1/rollout/0", 16), "arithme…ollout/0");
  EXPECT_EQ(fit_middle("日本語日本語", 7), "日本…語");
  EXPECT_EQ(fit_middle("abcdef", 2), "a…");
  EXPECT_EQ(fit_middle("abc", 3), "abc");
  const std::vector<Column> columns{{"NAME", Align::kLeft, 5, Cut::kMiddle},
                                    {"FIRST", Align::kLeft, 5, Cut::kEnd, 2},
                                    {"LAST", Align::kLeft, 4, Cut::kEnd, 1}};
  const std::vector<Row> rows{{"abcdefgh", "1", "2"}};
  EXPECT_EQ(render_table(columns, rows, 21), "NAME      FIRST  LAST\nabcdefgh  1      2\n");
  EXPECT_EQ(render_table(columns, rows, 18), "NAME   FIRST  LAST\nab…gh  1      2\n");
  EXPECT_EQ(render_table(columns, rows, 17), "NAME      LAST\nabcdefgh  2\n");
  EXPECT_EQ(render_table(columns, rows, 6), "NAME\nab…fgh\n");
}

TEST(Table, OffATerminalALongCellMovesItsOwnRowAlone) {
  const std::string reason(400, 'r');
  const std::vector<Column> columns{{"NAME"}, {"REASON"}, {"AGE"}};
  const auto lines =
      lines_of(render_table(columns, {{"a", reason, "1s"}, {"b", "-", "2s"}}, kUnlimitedWidth));
  EXPECT_EQ(lines[1], "a     " + reason + "  1s") << "nothing is cut";
  EXPECT_LT(lines[0].size(), 80u);
  EXPECT_LT(lines[2].size(), 80u);
  EXPECT_EQ(lines[0].find("AGE"), lines[2].find("2s"));
}

TEST(Table, KeptWidthsHoldColumnsInTheirPlace) {
  const std::vector<Column> columns{{"NAME"}, {"STATE"}};
  ColumnWidths kept;
  render_table(columns, {{"a-long-name", "Ready"}}, kUnlimitedWidth, &kept);
  EXPECT_EQ(render_table(columns, {{"b", "Ended"}}, kUnlimitedWidth, &kept),
            "NAME         STATE\nb            Ended\n");
  render_table(columns, {{"c", "a-longer-state"}}, kUnlimitedWidth, &kept);
  EXPECT_EQ(kept, (ColumnWidths{11, 14}));
}

TEST(Table, CellsCannotMoveTheCursor) {
  const std::string text = render_table({{"A"}, {"B"}}, {{"x\x1b[2J\n\ty", "z\xff"}}, 80);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(lines_of(text).size(), 2u);
  EXPECT_NE(text.find("z\uFFFD"), std::string::npos);
}

TEST(Table, MeasuresWideAndCombiningCharacters) {
  EXPECT_EQ(display_width("añb"), 3);
  EXPECT_EQ(display_width("日本"), 4);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(fit("日本語", 5), "日本…");
  EXPECT_EQ(fit("日本語", 4), "日…");
  EXPECT_EQ(fit("abc", 3), "abc");
  EXPECT_EQ(fit("abc", 0), "");
}

// Any cells, any width: no line is wider than the terminal, and a table that fits is not cut.
TEST(Table, FitsTheWidthOnRandomTables) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    static constexpr std::string_view kPieces[] = {"a", "bc", " ", "é", "日", "\n", "\xff", "long"};
    const auto text = [&rng] {
      std::string cell;
      for (std::uint64_t i = rng.below(12); i > 0; --i)
        cell += kPieces[rng.below(std::size(kPieces))];
      return cell;
    };
    std::vector<Column> columns(1 + rng.below(6));
    for (Column& column : columns)
      column = {text(), rng.below(2) ? Align::kLeft : Align::kRight,
                static_cast<int>(1 + rng.below(6))};
    std::vector<Row> rows(rng.below(6));
    for (Row& row : rows)
      for (std::size_t c = 0; c < columns.size(); ++c) row.push_back(text());
    const int width = static_cast<int>(1 + rng.below(100));
    const std::string table = render_table(columns, rows, width);
    EXPECT_EQ(lines_of(table).size(), rows.size() + 1);
    expect_fits(table, width);
    EXPECT_EQ(render_table(columns, rows, kUnlimitedWidth).find("…"), std::string::npos);
  }
}

}  // namespace
}  // namespace tandem::cli
