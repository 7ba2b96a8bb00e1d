# SPDX-License-Identifier: MIT
"""Plots as SVG, written by hand: shares over time as lines, throughput as bars.

Colours are told apart by people with any kind of colour vision, and nobody has to rely on them: lines differ
in their dashes, too, and are named at their ends. A viewer that prefers a dark background gets one.
"""
import math
from xml.sax.saxutils import escape

WIDTH = 760
FONT = 12           # pixels
TITLE = 16
LINE = 16           # from one line of text to the next

# By name, so that a contender looks the same in all plots: colour on light, on dark, dashes.
LOOKS = {
    'none': ('#6b7280', '#9aa3af', ''),
    'numalift': ('#0072b2', '#56b4e9', ''),
    'balancing-1': ('#a8487f', '#e19cc4', '7 3'),
    'balancing-2': ('#c2410c', '#f58b52', '7 3'),
    'interleave': ('#00795a', '#35c79b', '2 3'),
    'fast': ('#475569', '#cbd5e1', '2 3'),
}
OTHERS = [
    ('#8a6100', '#f0c64a', '10 3 2 3'), ('#5b4bb7', '#a99cf5', '10 3 2 3'), ('#00738c', '#5fd0e6', '4 2'),
    ('#9f1239', '#fb8fa6', '4 2'), ('#4d6b00', '#b7d84b', '1 2'), ('#7a3e1d', '#d9a27e', '1 2'),
]

STYLE = '''
text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328; }
.back { fill: #ffffff; } .soft { fill: #57606a; }
.grid { stroke: #d8dee4; } .axis { stroke: #57606a; } .lead { stroke: #8c959f; }
.spread { stroke: #1f2328; }
%s
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .back { fill: #0d1117; } .soft { fill: #9aa4af; }
.grid { stroke: #2b323b; } .axis { stroke: #9aa4af; } .lead { stroke: #6e7681; }
.spread { stroke: #e6edf3; }
%s
}
'''


def looks(names):
    """{name: (class, light, dark, dashes)}"""
    ret, free = {}, 0
    for i, name in enumerate(names):
        if name in LOOKS:
            look = LOOKS[name]
        else:
            look = OTHERS[free % len(OTHERS)]
            free += 1
        ret[name] = ('c%d' % i,) + look
    return ret


def width_of(text, size=FONT):
    """No more than this many pixels, in all usual fonts: wide letters take as much as 0.7 of the size."""
    return size * sum(0.35 if c in 'iljtfrI.,:;()| -' else 0.95 if c in 'mwMW%@' else 0.64 for c in text)


def wrap(text, width, size=FONT):
    lines, line = [], ''
    for word in text.split():
        longer = (line + ' ' + word).strip()
        if line and width_of(longer, size) > width:
            lines.append(line)
            longer = word
        line = longer
    return lines + [line] if line else lines


def number(value):
    """With three digits: 4.31 M"""
    for factor, unit in ((1e9, ' G'), (1e6, ' M'), (1e3, ' k')):
        if abs(value) >= factor:
            return '%.3g%s' % (value / factor, unit) if abs(value) < 1000 * factor else '%.0f%s' % (
                value / factor, unit)
    return '%.3g' % value


def ticks(high, about=5):
    """Round figures from 0 to at least high."""
    step = 10 ** math.floor(math.log10(high / about))
    step *= next(f for f in (1, 2, 5, 10) if step * f * about >= high * 0.999)
    return [i * step for i in range(math.ceil(high / step - 1e-9) + 1)]


def apart(places, gap, low, high):
    """The places, moved as little as it takes for them to be `gap` apart within [low, high]; their order stays.
    There has to be room for all."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    ret = [0.0] * len(places)
    at = low
    for i in order:
        ret[i] = at = max(at, places[i])
        at += gap
    at = high
    for i in reversed(order):
        ret[i] = at = min(at, ret[i])
        at -= gap
    return ret


class Drawing:
    """Elements, and what they look like."""

    def __init__(self, title, about, names):
        self.looks = looks(names)
        self.title = title
        self.items = []
        self.text(16, 26, title, size=TITLE, weight='600')
        self.y = 26
        for line in wrap(about, WIDTH - 32):
            self.y += LINE
            self.text(16, self.y, line, look='soft')

    def text(self, x, y, text, size=FONT, anchor='start', look=None, weight=None):
        self.items.append('<text x="%.1f" y="%.1f" font-size="%d"%s%s%s>%s</text>' % (
            x, y, size, ' text-anchor="%s"' % anchor if anchor != 'start' else '',
            ' class="%s"' % look if look else '', ' font-weight="%s"' % weight if weight else '',
            escape(text)))

    def line(self, x1, y1, x2, y2, look, width=1, more=''):
        self.items.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s" stroke-width="%g"%s/>' % (
            x1, y1, x2, y2, look, width, more))

    def stroke(self, name):
        """Attributes of what is drawn in a contender's colour."""
        look, _, _, dashes = self.looks[name]
        return 'class="s%s"%s' % (look, ' stroke-dasharray="%s"' % dashes if dashes else '')

    def legend(self, names):
        x = 16
        self.y += LINE + 6
        for name in names:
            if x + 34 + width_of(name) > WIDTH - 16:
                x = 16
                self.y += LINE + 2
            self.items.append('<path d="M%.1f %.1fh24" fill="none" stroke-width="3" %s/>' % (
                x, self.y - 4, self.stroke(name)))
            self.text(x + 30, self.y, name)
            x += 30 + width_of(name) + 20

    def done(self, height):
        light = ['.s%s { stroke: %s; } .f%s { fill: %s; }' % (c, a, c, a) for c, a, _, _ in self.looks.values()]
        dark = ['.s%s { stroke: %s; } .f%s { fill: %s; }' % (c, b, c, b) for c, _, b, _ in self.looks.values()]
        return '\n'.join([
            '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">' % (
                WIDTH, height, WIDTH, height),
            '<title>%s</title>' % escape(self.title),
            '<style>%s</style>' % escape(STYLE % ('\n'.join(light), '\n'.join(dark))),
            '<rect class="back" width="%d" height="%d"/>' % (WIDTH, height)] + self.items + ['</svg>', ''])


def percent(share):
    return '%.0f %%' % (100 * share)


def shares(title, about, lines, best, x_title):
    """lines: {contender: [(pass, Spread)]}; best: the share of the best placement or None."""
    d = Drawing(title, about, list(lines))
    d.legend(list(lines))
    last = max(k for points in lines.values() for k, _ in points)
    labels = {name: '%s %s' % (name, percent(points[-1][1].median)) for name, points in lines.items()}
    left, right = 58, WIDTH - 44 - max(width_of(t) for t in labels.values())
    top = d.y + 34
    bottom = top + max(260, (len(lines) + 1) * LINE)
    d.text(16, top - 14, 'share of accesses that go to fast nodes', look='soft')

    def x_of(k):
        return left + (right - left) * ((k - 1) / (last - 1) if last > 1 else 0.5)

    def y_of(share):
        return bottom - (bottom - top) * share
    for share in (0, 0.25, 0.5, 0.75, 1):
        d.line(left, y_of(share), right, y_of(share), 'axis' if share == 0 else 'grid')
        d.text(left - 8, y_of(share) + 4, percent(share), anchor='end', look='soft')
    step = max(1, math.ceil(last / 12))
    for k in range(1, last + 1, step):
        d.line(x_of(k), bottom, x_of(k), bottom + 4, 'axis')
        d.text(x_of(k), bottom + 18, str(k), anchor='middle', look='soft')
    d.text((left + right) / 2, bottom + 38, x_title, anchor='middle', look='soft')
    if best:
        d.line(left, y_of(best), right, y_of(best), 'axis', more=' stroke-dasharray="1 3"')
    for name, points in lines.items():
        look = d.looks[name][0]
        if len(points) > 1 and any(s.high > s.low for _, s in points):
            edge = [(k, s.high) for k, s in points] + [(k, s.low) for k, s in reversed(points)]
            d.items.append('<path d="M%sz" class="f%s" opacity="0.15"/>' % (
                'L'.join('%.1f %.1f' % (x_of(k), y_of(v)) for k, v in edge), look))
        d.items.append('<path d="M%s" fill="none" stroke-width="%s" stroke-linejoin="round" %s/>' % (
            'L'.join('%.1f %.1f' % (x_of(k), y_of(s.median)) for k, s in points),
            '3' if name.startswith('numalift') else '2', d.stroke(name)))
        d.items.append('<circle cx="%.1f" cy="%.1f" r="3" class="f%s"/>' % (
            x_of(points[-1][0]), y_of(points[-1][1].median), look))
    ends = [(x_of(points[-1][0]), y_of(points[-1][1].median)) for points in lines.values()]
    places = apart([y for _, y in ends], LINE - 1, top, bottom)
    for (name, text), (x, y), place in zip(labels.items(), ends, places):
        # across the plot it must not look like what was measured
        d.line(x + 5, y, right + 20, place, 'lead', more='' if x > right - 1 else ' stroke-dasharray="1 5"')
        d.text(right + 24, place + 4, text)
    if best:
        # where no line ends
        d.text(left + 6, y_of(best) - 5 if y_of(best) - 5 - FONT > top - 12 else y_of(best) + 14,
               'best placement %s' % percent(best), look='soft')
    return d.done(bottom + 52)


def bars(title, about, rows, unit):
    """rows: {contender: (Spread of a rate, text that follows its figure)}"""
    d = Drawing(title, about, list(rows))
    top = d.y + 20
    left = 28 + max(width_of(name) for name in rows)
    ends = {name: '%s/s%s' % (number(s.median), '  ' + more if more else '') for name, (s, more) in rows.items()}
    right = WIDTH - 32 - max(width_of(t) for t in ends.values())
    marks = ticks(max(s.high for s, _ in rows.values()))
    high = marks[-1]
    bottom = top + 28 * len(rows)

    def x_of(value):
        return left + (right - left) * value / high
    for value in marks:
        d.line(x_of(value), top, x_of(value), bottom + 4, 'axis' if value == 0 else 'grid')
        d.text(x_of(value), bottom + 18, number(value), anchor='middle', look='soft')
    for i, (name, (spread, _)) in enumerate(rows.items()):
        y = top + 28 * i + 5
        d.items.append('<rect x="%.1f" y="%.1f" width="%.1f" height="18" class="f%s"/>' % (
            left, y, x_of(spread.median) - left, d.looks[name][0]))
        d.text(left - 8, y + 13, name, anchor='end')
        if spread.high > spread.low:
            for value in (spread.low, spread.high):
                d.line(x_of(value), y + 4, x_of(value), y + 14, 'spread', 1.5)
            d.line(x_of(spread.low), y + 9, x_of(spread.high), y + 9, 'spread', 1.5)
        d.text(x_of(spread.high) + 8, y + 13, ends[name])
    d.text((left + right) / 2, bottom + 38, unit, anchor='middle', look='soft')
    return d.done(bottom + 52)
