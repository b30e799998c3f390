// A classified document (Yang et al. 2016, figure 5): a bar for each sentence, and its words shaded by their weight.

import { colourAt, css, inkOn } from "./colours.js";
import { svg } from "./dom.js";
import { fixed } from "./scales.js";
import { text, wrapped } from "./text.js";
import { shortened } from "./tokens.js";

const SIZE = 14;
const LINE = 26;
const GAP = 8;
const MIN_SHADE = 0.02;

/** `document` has words, owners (the sentence of each word), sentenceWeights, shades (0 to 1) and direction. */
export function documentPicture(document, { width, theme, table }) {
  const { words, owners, sentenceWeights, shades } = document;
  const margin = width < 480 ? 74 : 124;
  const rtl = document.direction === "rtl";
  const labels = words.map((word) => shortened(word, 40));
  const { items, sentences, height } = placedWords(labels, owners, sentenceWeights.length, width - margin, rtl);
  const left = rtl ? 0 : margin;
  const largest = Math.max(1e-9, ...sentenceWeights);
  const room = margin - 54;

  const drawWord = (item) => {
    const shade = shades[item.index];
    const colour = colourAt(table, shade);
    const middle = { anchor: "middle", size: SIZE, fill: shade >= MIN_SHADE ? inkOn(colour) : theme.ink };
    const label = text(left + item.x + item.width / 2, item.y + LINE / 2, labels[item.index], middle);
    if (shade < MIN_SHADE) return [label];
    return [
      svg("rect", { x: left + item.x, y: item.y + 2, width: item.width, height: LINE - 4, rx: 3, fill: css(colour) }),
      label,
    ];
  };
  const drawSentence = ({ top }, number) => {
    const length = (room * sentenceWeights[number]) / largest;
    const x = rtl ? width - margin + 8 : margin - 12 - length;
    const label = text(rtl ? width : 0, top + LINE / 2, fixed(sentenceWeights[number], 3), {
      anchor: rtl ? "right" : "left",
      size: 12,
      fill: theme.quiet,
    });
    return [
      label,
      svg("rect", { x, y: top + 6, width: Math.max(1, length), height: LINE - 12, rx: 2, fill: theme.current }),
    ];
  };
  const isVisible = (y, top, bottom) => y + LINE >= top && y <= bottom;

  return {
    width,
    height,
    rows: sentenceWeights.length,
    columns: words.length,
    reversed: rtl,
    draw: (top, bottom) => {
      const group = svg("g");
      sentences.forEach(
        (sentence, number) => isVisible(sentence.top, top, bottom) && group.append(...drawSentence(sentence, number)),
      );
      for (const item of items) if (isVisible(item.y, top, bottom)) group.append(...drawWord(item));
      return group;
    },
    mark: ({ row, column }) => {
      const { top, bottom } = sentences[row];
      const group = svg("g", { fill: "none", stroke: theme.mark });
      group.append(svg("rect", { x: 1, y: top, width: width - 2, height: bottom - top, rx: 4 }));
      if (column !== null)
        group.append(
          svg("rect", {
            x: left + items[column].x,
            y: items[column].y + 1,
            width: items[column].width,
            height: LINE - 2,
            rx: 3,
            "stroke-width": 2,
          }),
        );
      return group;
    },
    at: (x, y) => {
      const row = sentences.findIndex(({ top, bottom }) => y >= top && y < bottom);
      if (row < 0) return null;
      const found = items.find(
        (item) => y >= item.y && y < item.y + LINE && x >= left + item.x && x <= left + item.x + item.width,
      );
      return { row, column: found && owners[found.index] === row ? found.index : null };
    },
    box: ({ row, column }) =>
      column === null
        ? { x: 0, y: sentences[row].top, width: 10, height: LINE }
        : { x: left + items[column].x, y: items[column].y, width: items[column].width, height: LINE },
    // Left and right step through the words, up and down through the sentences.
    settled: (place, before) => {
      if (place.column !== null && place.column !== before?.column)
        return { row: owners[place.column], column: place.column };
      return { row: place.row, column: null };
    },
  };
}

/** Words in lines, a new line for each sentence: places of the words and of the sentences, and the height of all. */
function placedWords(labels, owners, count, width, rtl) {
  const items = [];
  const sentences = [];
  let y = 2;
  for (let number = 0, start = 0; number < count; number++) {
    let end = start;
    while (end < labels.length && owners[end] === number) end += 1;
    const placed = wrapped(labels.slice(start, end), width, { size: SIZE, gap: 1, padding: 3, rtl });
    const lines = (placed.at(-1)?.line ?? 0) + 1;
    for (const item of placed) items.push({ ...item, index: start + item.index, y: y + item.line * LINE });
    sentences.push({ top: y, bottom: y + lines * LINE });
    y += lines * LINE + GAP;
    start = end;
  }
  return { items, sentences, height: y };
}
