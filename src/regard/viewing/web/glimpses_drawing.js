// Glimpses (Mnih et al. 2014): their path over the image, what each saw at its scales, and the belief after it.

import { svg } from "./dom.js";
import { fixed } from "./scales.js";
import { text } from "./text.js";
import { shortened } from "./tokens.js";

const PATH = "#ffb000";
const PATCH = 74;
const BAR = 13;

/** `glimpses` has image (a data URI), points, boxes and patches (data URIs) by glimpse, beliefs, classes and labels. */
export function glimpsesPicture(glimpses, { width, theme }) {
  const { points, boxes, patches, beliefs, classes, labels, ratio } = glimpses;
  const side = Math.min(340, width);
  const high = Math.round(side * ratio);
  const scales = patches[0]?.length ?? 0;
  const pitch = PATCH + 12;
  const beside = width >= side + 40 + 2 * pitch;
  const left = beside ? side + 30 : 0;
  const top = beside ? 0 : high + 16;
  const perRow = Math.max(1, Math.min(points.length, Math.floor((width - left) / pitch)));
  const columnHeight = 20 + scales * (PATCH + 5) + classes.length * BAR + 40;
  const xOf = (glimpse) => left + (glimpse % perRow) * pitch;
  const yOf = (glimpse) => top + Math.floor(glimpse / perRow) * columnHeight;
  const image = { width: side, height: high, preserveAspectRatio: "none", "image-rendering": "pixelated" };
  const at = ([x, y]) => [x * side, y * high];

  const drawPath = () => {
    const group = svg(
      "g",
      {},
      svg("image", { ...image, href: glimpses.image }),
      svg("rect", { width: side, height: high, fill: "none", stroke: theme.line }),
    );
    const line = points
      .map(at)
      .map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`)
      .join(" ");
    group.append(svg("polyline", { points: line, fill: "none", stroke: "#000000", "stroke-width": 4, opacity: 0.4 }));
    group.append(svg("polyline", { points: line, fill: "none", stroke: PATH, "stroke-width": 2 }));
    points.forEach((point, glimpse) => {
      const [x, y] = at(point);
      group.append(svg("circle", { cx: x, cy: y, r: 9, fill: PATH, stroke: "#000000" }));
      group.append(text(x, y, String(glimpse + 1), { anchor: "middle", size: 11, weight: "700", fill: "#000000" }));
    });
    return group;
  };
  const drawBelief = (glimpse, y) => {
    const group = svg("g");
    const best = classes.reduce(
      (top, each) => (beliefs[glimpse][each] > beliefs[glimpse][top] ? each : top),
      classes[0],
    );
    classes.forEach((each, place) => {
      const down = y + place * BAR;
      const full = PATCH - 20;
      const fill = each === best ? theme.accent : theme.line;
      group.append(
        text(xOf(glimpse) + 14, down + BAR / 2, shortened(labels[each], 3), {
          anchor: "right",
          size: 10,
          fill: theme.ink,
        }),
      );
      group.append(
        svg("rect", {
          x: xOf(glimpse) + 18,
          y: down + 1,
          width: Math.max(1, full * beliefs[glimpse][each]),
          height: BAR - 3,
          fill,
        }),
      );
    });
    const answer = `${shortened(labels[best], 6)}  ${fixed(beliefs[glimpse][best], 2)}`;
    group.append(
      text(xOf(glimpse) + PATCH / 2, y + classes.length * BAR + 10, answer, {
        anchor: "middle",
        size: 12,
        weight: "600",
        fill: theme.ink,
      }),
    );
    return group;
  };
  const drawGlimpse = (_, glimpse) => {
    const group = svg(
      "g",
      {},
      text(xOf(glimpse) + PATCH / 2, yOf(glimpse) + 8, String(glimpse + 1), {
        anchor: "middle",
        size: 12,
        weight: "600",
        fill: theme.ink,
      }),
    );
    patches[glimpse].forEach((href, scale) => {
      const size = { x: xOf(glimpse), y: yOf(glimpse) + 20 + scale * (PATCH + 5), width: PATCH, height: PATCH };
      group.append(
        svg("image", { ...size, href, preserveAspectRatio: "none", "image-rendering": "pixelated" }),
        svg("rect", { ...size, fill: "none", stroke: theme.line }),
      );
    });
    group.append(drawBelief(glimpse, yOf(glimpse) + 24 + scales * (PATCH + 5)));
    return group;
  };

  return {
    width: Math.max(width, left + perRow * pitch),
    rows: points.length,
    height: Math.max(high, top + Math.ceil(points.length / perRow) * columnHeight),
    draw: () => svg("g", {}, drawPath(), points.map(drawGlimpse)),
    mark: ({ row }) => {
      const group = svg("g", { fill: "none", stroke: PATH });
      boxes[row].forEach((box, scale) => {
        const frame = {
          x: box.left * side,
          y: box.top * high,
          width: (box.right - box.left) * side,
          height: (box.bottom - box.top) * high,
        };
        group.append(
          svg("rect", {
            ...frame,
            "stroke-width": scale === 0 ? 3 : 1.5,
            "stroke-dasharray": scale === 0 ? undefined : "5 4",
          }),
        );
      });
      group.append(
        svg("rect", {
          x: xOf(row) - 4,
          y: yOf(row),
          width: PATCH + 8,
          height: columnHeight - 18,
          rx: 6,
          stroke: theme.mark,
          "stroke-width": 2,
        }),
      );
      return group;
    },
    at: (x, y) => {
      if (x < side && y < high) {
        const distances = points.map(at).map(([px, py]) => Math.hypot(px - x, py - y));
        const nearest = distances.indexOf(Math.min(...distances));
        return distances[nearest] < 40 ? { row: nearest, column: null } : null;
      }
      const glimpse = Math.floor((y - top) / columnHeight) * perRow + Math.floor((x - left) / pitch);
      return x >= left && y >= top && x < left + perRow * pitch && glimpse < points.length
        ? { row: glimpse, column: null }
        : null;
    },
    box: ({ row }) => ({ x: xOf(row), y: yOf(row), width: PATCH, height: columnHeight }),
  };
}
