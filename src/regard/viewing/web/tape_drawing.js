// The panels of a memory machine above each other, time from left to right (Graves et al. 2014, figure 6).

import { cells } from "./cells.js";
import { colourTable } from "./colours.js";
import { svg } from "./dom.js";
import { Scale } from "./scales.js";
import { measure, text } from "./text.js";

const LEFT = 34;
const TITLE = 20;
const GAP = 8;

/** `tape` has panels and memory, as `tapePanels` gives them. */
export function tapePicture({ panels, memory }, { width, theme, palette }) {
  const steps = panels[0].width;
  const cellWidth = Math.max(3, Math.min(20, (width - LEFT - 4) / steps));
  const wide = Math.max(width, LEFT + steps * cellWidth + 4);
  let y = 0;
  const placed = panels.map((panel) => {
    const top = y + TITLE;
    const cellHeight = panel.height > 60 ? 3 : panel.height > 24 ? 6 : 9;
    y = top + panel.height * cellHeight + GAP;
    return { panel, top, cellHeight };
  });
  const timeline = y;
  const memoryCell = memory && {
    width: Math.min(14, (width - LEFT) / memory.width),
    height: memory.height > 60 ? 3 : 9,
  };
  // The memory stands beside the panels where there is room, otherwise below them.
  const beside = memory && 2 * LEFT + steps * cellWidth + 40 + memory.width * memoryCell.width <= width;
  const memoryLeft = beside ? LEFT + steps * cellWidth + 40 + LEFT : LEFT;
  const memoryTop = beside ? TITLE : y + 26 + TITLE;
  const height = memory ? Math.max(y + 22, memoryTop + memory.height * memoryCell.height + 6) : y + 22;

  const drawCells = (panel, top, cellHeight, cell = cellWidth, left = LEFT) => {
    const scale = new Scale(panel.weights, panel.width);
    if (panel.bounded) scale.largest = 1;
    const table = colourTable(scale.signed ? "signed" : palette, theme.name);
    const frame = svg("rect", {
      x: left,
      y: top,
      width: panel.width * cell,
      height: panel.height * cellHeight,
      fill: "none",
      stroke: theme.line,
    });
    return [cells({ ...panel, scale, table, x: left, y: top, cellWidth: cell, cellHeight }), frame];
  };
  const drawLabels = (panel, top, cellHeight, left = LEFT) => {
    const every = Math.max(1, Math.ceil(14 / cellHeight));
    return panel.labels
      .filter((_, row) => row % every === 0)
      .map((label, place) =>
        text(left - 5, top + (place * every + 0.5) * cellHeight, label, {
          anchor: "right",
          size: 9,
          fill: theme.quiet,
        }),
      );
  };
  const drawTitle = (panel, top, left = LEFT) =>
    svg(
      "g",
      {},
      text(left, top - 10, panel.name, { size: 12, weight: "600", fill: theme.ink }),
      text(left + measure(panel.name, 12, "600") + 8, top - 10, panel.note, { size: 11, fill: theme.quiet }),
    );
  const drawWrong = (panel, top, cellHeight) =>
    [...(panel.wrong ?? [])].map((place) => {
      const [x, down] = [LEFT + (place % steps) * cellWidth, top + Math.floor(place / steps) * cellHeight];
      const d = `M${x} ${down}L${x + cellWidth} ${down + cellHeight}M${x + cellWidth} ${down}L${x} ${down + cellHeight}`;
      return svg("path", { d, stroke: theme.current, "stroke-width": 2 });
    });

  const draw = () => {
    const group = svg("g");
    for (const { panel, top, cellHeight } of placed) {
      group.append(
        drawTitle(panel, top),
        ...drawCells(panel, top, cellHeight),
        ...drawLabels(panel, top, cellHeight),
        ...drawWrong(panel, top, cellHeight),
      );
    }
    const every = Math.max(1, Math.ceil(28 / cellWidth / 5) * 5);
    for (let step = every; step <= steps; step += every) {
      group.append(
        text(LEFT + (step - 0.5) * cellWidth, timeline + 4, String(step), {
          anchor: "middle",
          size: 10,
          fill: theme.quiet,
        }),
      );
    }
    group.append(text(LEFT, timeline + 4, "step", { size: 10, fill: theme.quiet }));
    if (memory) {
      group.append(
        drawTitle(memory, memoryTop, memoryLeft),
        ...drawLabels(memory, memoryTop, memoryCell.height, memoryLeft),
      );
      group.append(...drawCells(memory, memoryTop, memoryCell.height, memoryCell.width, memoryLeft));
    }
    return group;
  };

  return {
    width: Math.ceil(wide),
    height: Math.ceil(height),
    rows: steps,
    draw,
    mark: ({ row }) =>
      svg("rect", {
        x: LEFT + row * cellWidth - 1,
        y: TITLE - 2,
        width: cellWidth + 1,
        height: timeline - TITLE - GAP + 4,
        fill: "none",
        stroke: theme.mark,
        "stroke-width": 2,
      }),
    at: (x, y) => {
      const step = Math.floor((x - LEFT) / cellWidth);
      return step >= 0 && step < steps && y < timeline ? { row: step, column: null } : null;
    },
    box: ({ row }) => ({ x: LEFT + row * cellWidth, y: 0, width: cellWidth, height: 1 }),
  };
}
