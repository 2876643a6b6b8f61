"""A line chart as SVG: values over positions, with a legend on the right."""

WIDTH, HEIGHT = 560, 340
LEFT, BOTTOM, TOP, RIGHT = 56, 44, 20, 110  # margins


class Chart:
    def __init__(self, ticks, x_label, y_label, highest=1, y_ticks=(0, 0.25, 0.5, 0.75, 1)):
        """`ticks` maps positions on the x axis, ascending, to labels; the axis ends with them. Values go from 0
        to `highest`."""
        positions = list(ticks)
        self.first, self.last = positions[0], positions[-1]
        self.highest = highest
        self.legend_rows = 0
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        ]
        for tick in y_ticks:
            self.parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{self.y(tick):.1f}" '
                              f'y2="{self.y(tick):.1f}" stroke="#ddd"/>')
            self.parts.append(f'<text x="{LEFT - 8}" y="{self.y(tick) + 4:.1f}" '
                              f'text-anchor="end">{tick:g}</text>')
        for position, label in ticks.items():
            self.parts.append(f'<text x="{self.x(position):.1f}" y="{HEIGHT - BOTTOM + 18}" '
                              f'text-anchor="middle">{label}</text>')
        self.parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" '
                          f'text-anchor="middle">{x_label}</text>')
        self.parts.append(f'<text x="14" y="{HEIGHT / 2:.0f}" text-anchor="middle" '
                          f'transform="rotate(-90 14 {HEIGHT / 2:.0f})">{y_label}</text>')

    def x(self, position):
        return LEFT + (WIDTH - LEFT - RIGHT) * (position - self.first) / (self.last - self.first)

    def y(self, value):
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / self.highest

    def line(self, points, colour, width=2):
        """Through (position, value) pairs."""
        text = " ".join(f"{self.x(position):.1f},{self.y(value):.1f}" for position, value in points)
        self.parts.append(f'<polyline points="{text}" fill="none" stroke="{colour}" '
                          f'stroke-width="{width}"/>')

    def bar(self, position, low, high, colour):
        """A thin vertical line."""
        self.parts.append(f'<line x1="{self.x(position):.1f}" x2="{self.x(position):.1f}" '
                          f'y1="{self.y(low):.1f}" y2="{self.y(high):.1f}" stroke="{colour}"/>')

    def legend(self, name, colour):
        row = TOP + 16 + 18 * self.legend_rows
        self.legend_rows += 1
        self.parts.append(f'<rect x="{WIDTH - RIGHT + 12}" y="{row - 9}" width="10" height="10" '
                          f'fill="{colour}"/>')
        self.parts.append(f'<text x="{WIDTH - RIGHT + 28}" y="{row}">{name}</text>')

    def text(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def stacked(charts):
    """The charts one below the other, as one picture."""
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT * len(charts)}">']
    for row, chart in enumerate(charts):
        parts.append(f'<g transform="translate(0 {HEIGHT * row})">\n{chart.text()}</g>')
    return "\n".join([*parts, "</svg>"]) + "\n"
