// A sentence as it is read (Cheng et al. 2016, figure 1): the current word in red, the words it attends to shaded.

import { colourAt, css, inkOn } from "./colours.js";
import { svg } from "./dom.js";
import { fixed } from "./scales.js";
import { measure, text, wrapped } from "./text.js";
import { shortened } from "./tokens.js";

const SIZE = 16;
const LINE = 70;
const ROW = 26;
const MIN_SHARE = 0.04;

/** One text, through which the current word moves; arcs lead to what it attends to, bars below show the surprisal. */
export function scrubPicture(selection, { width, theme, scale, table, surprisal }) {
  const words = selection.rows.labels.map((word) => shortened(word, 40));
  const rtl = selection.rows.direction === "rtl";
  const placed = wrapped(words, width, { size: SIZE, gap: 5, padding: 5, rtl });
  const lines = (placed.at(-1)?.line ?? 0) + 1;
  const most = Math.max(1e-9, ...(surprisal ?? []));
  const yOf = (line) => 40 + line * LINE;
  const centre = (item) => item.x + item.width / 2;
  const word = (item, options) =>
    text(centre(item), yOf(item.line), words[item.index], { anchor: "middle", size: SIZE, ...options });
  const visible = (top, bottom) =>
    placed.filter((item) => yOf(item.line) > top - LINE && yOf(item.line) < bottom + LINE);

  const draw = (top, bottom) => {
    const group = svg("g");
    for (const item of visible(top, bottom)) {
      group.append(word(item, { fill: theme.ink }));
      if (!surprisal) continue;
      const length = 18 * (surprisal[item.index] / most);
      group.append(
        svg("rect", {
          x: item.x + 4,
          y: yOf(item.line) + 13,
          width: item.width - 8,
          height: Math.max(1, length),
          fill: theme.line,
        }),
      );
    }
    return group;
  };

  const mark = ({ row }) => {
    const group = svg("g");
    const here = placed[row];
    for (const { item, weight, share } of attended(selection, scale, row, placed)) {
      const colour = colourAt(table, scale.signed ? 0.5 + share / 2 : share);
      group.append(
        svg("rect", { x: item.x, y: yOf(item.line) - 12, width: item.width, height: 24, rx: 4, fill: css(colour) }),
      );
      group.append(word(item, { fill: inkOn(colour) }));
      group.append(
        text(centre(item), yOf(item.line) - 20, fixed(weight, 2), { anchor: "middle", size: 10, fill: theme.quiet }),
      );
      group.append(arc(centre(here), yOf(here.line) - 13, centre(item), yOf(item.line) - 26, share, theme));
    }
    group.append(
      svg("rect", {
        x: here.x,
        y: yOf(here.line) - 12,
        width: here.width,
        height: 24,
        rx: 4,
        fill: theme.paper,
        stroke: theme.current,
      }),
    );
    group.append(word(here, { fill: theme.current, weight: "700" }));
    if (surprisal)
      group.append(
        text(centre(here), yOf(here.line) + 38, `${fixed(surprisal[row], 1)} bits`, {
          anchor: "middle",
          size: 10,
          fill: theme.quiet,
        }),
      );
    return group;
  };

  return {
    width,
    height: lines * LINE + 14,
    rows: words.length,
    reversed: rtl,
    draw,
    mark,
    at: (x, y) => {
      const found = placed.find(
        (item) => x >= item.x - 2 && x <= item.x + item.width + 3 && Math.abs(y - yOf(item.line)) < LINE / 2,
      );
      return found ? { row: found.index, column: null } : null;
    },
    box: ({ row }) => ({ x: placed[row].x, y: yOf(placed[row].line) - 35, width: placed[row].width, height: LINE }),
  };
}

/** A line for each word: the words up to it, or all where later words are attended to, shaded by their weight. */
export function linesOfReading(selection, { theme, scale, table, surprisal, seesAll }) {
  const words = selection.rows.labels.map((word) => shortened(word, 28));
  const rtl = selection.rows.direction === "rtl";
  const widths = words.map((word) => measure(word, 13) + 8);
  const margin = surprisal ? 44 : 6;
  const starts = [0];
  for (const own of widths) starts.push(starts.at(-1) + own + 2);
  const width = Math.ceil(margin + starts.at(-1) + 4);
  const xOf = (place) => (rtl ? width - margin - starts[place] - widths[place] : margin + starts[place]);

  const line = (row) => {
    const y = (row + 0.5) * ROW;
    const group = svg("g");
    if (surprisal)
      group.append(
        text(rtl ? width - 36 : 36, y, fixed(surprisal[row], 1), {
          anchor: rtl ? "left" : "right",
          size: 11,
          fill: theme.quiet,
        }),
      );
    const last = seesAll ? words.length : row + 1;
    for (let place = 0; place < last; place++) {
      const weight = selection.weights[row * selection.width + place];
      const share = Math.abs(weight) / scale.top(row);
      let fill = theme.ink;
      if (share >= MIN_SHARE && place !== row) {
        const colour = colourAt(table, scale.share(row, weight));
        group.append(svg("rect", { x: xOf(place), y: y - 11, width: widths[place], height: 22, fill: css(colour) }));
        fill = inkOn(colour);
      }
      const current = place === row ? { weight: "700", fill: theme.current } : { fill };
      group.append(text(xOf(place) + widths[place] / 2, y, words[place], { anchor: "middle", size: 13, ...current }));
    }
    return group;
  };

  return {
    width,
    height: words.length * ROW,
    rows: words.length,
    draw: (top, bottom) => {
      const [first, last] = [Math.max(0, Math.floor(top / ROW)), Math.min(words.length, Math.ceil(bottom / ROW))];
      return svg(
        "g",
        {},
        Array.from({ length: last - first }, (_, place) => line(first + place)),
      );
    },
    mark: ({ row }) =>
      svg("rect", {
        x: 1,
        y: row * ROW + 1,
        width: width - 2,
        height: ROW - 2,
        rx: 4,
        fill: "none",
        stroke: theme.mark,
        "stroke-width": 2,
      }),
    at: (x, y) => (y >= 0 && y < words.length * ROW ? { row: Math.floor(y / ROW), column: null } : null),
    box: ({ row }) => ({ x: 0, y: row * ROW, width: 10, height: ROW }),
  };
}

function attended(selection, scale, row, placed) {
  const found = [];
  for (let column = 0; column < selection.width; column++) {
    const weight = selection.weights[row * selection.width + column];
    const share = weight / scale.top(row);
    if (Math.abs(share) >= MIN_SHARE && column !== row)
      found.push({ item: placed[column], weight, share: Math.min(1, share) });
  }
  return found.sort((one, other) => one.share - other.share);
}

/** From the current word to an attended one: a bow above a line of text, or a curve between two lines. */
function arc(fromX, fromY, toX, toY, share, theme) {
  const rise = Math.min(26, 8 + Math.abs(toX - fromX) / 14);
  const bend = Math.min(fromY, toY) - (Math.abs(fromY - toY) < 20 ? rise : 4);
  return svg("path", {
    d: `M${Math.round(fromX)} ${Math.round(fromY)}C${Math.round(fromX)} ${Math.round(bend)} ${Math.round(toX)} ${Math.round(bend)} ${Math.round(toX)} ${Math.round(toY)}`,
    fill: "none",
    stroke: theme.current,
    "stroke-width": 0.8 + 2.4 * Math.abs(share),
    "stroke-opacity": 0.25 + 0.6 * Math.abs(share),
  });
}
