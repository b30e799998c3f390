// What a memory machine did, as panels over time: input, output, and for each head what it wrote or read, and where.

/** Weight from which on a slot counts as used. */
const MIN_WEIGHT = 0.05;

/**
 * The panels of a trace of kind "tape": {name, note, height, width, weights, labels, bounded, wrong?}, a column for
 * each step; the memory, if there is one, has a column for each feature. Unless `allSlots`, only the part of the
 * memory that a head used is shown. With `vectors`, also what each head adds and reads.
 */
export function tapePanels(trace, { allSlots = false, vectors = false } = {}) {
  const map = (name) => trace.map(name);
  const [input, output, target] = ["input", "output", "target"].map(map);
  const scored = trace.values("scored") ?? new Array(output.height).fill(1);
  const answer = transposed(output, (weight, step) => weight * scored[step]);
  const wrong = new Set();
  for (let step = 0; step < output.height; step++) {
    for (let bit = 0; bit < output.width; bit++) {
      const place = step * output.width + bit;
      if (scored[step] && output.weights[place] > 0.5 !== target.weights[place] > 0.5)
        wrong.add(bit * output.height + step);
    }
  }
  const bits = (count) => Array.from({ length: count }, (_, place) => String(place + 1));
  const panels = [
    {
      name: "input",
      note: "what the machine is given",
      ...transposed(input),
      labels: bits(input.width),
      bounded: true,
    },
    {
      name: "output",
      note: wrong.size ? "its answer; wrong bits are crossed out" : "its answer, all bits right",
      ...answer,
      labels: bits(output.width),
      bounded: true,
      wrong,
    },
  ];
  const heads = trace.maps.filter(({ name }) => /^(write|read) \d+$/.test(name));
  if (!heads.length) {
    const attention = map("attention");
    if (attention)
      panels.push({
        name: "attention",
        note: "",
        ...transposed(attention),
        labels: trace.axis(attention.columns).labels,
        bounded: true,
      });
    return { panels, memory: null, wrong };
  }
  const slots = usedSlots(heads, allSlots);
  const order = (head) => (head.name.startsWith("write") ? 0 : 1);
  for (const head of [...heads].sort((one, other) => order(one) - order(other))) {
    const writes = head.name.startsWith("write");
    const content = map(`${writes ? "adds" : "reads"} ${head.name.split(" ")[1]}`);
    if (vectors && content) {
      // A write head that is nowhere in particular adds next to nothing, whatever its vector is.
      const reach = (step) =>
        writes ? Math.max(...head.weights.subarray(step * head.width, (step + 1) * head.width)) : 1;
      const reached = transposed(content, (weight, step) => weight * reach(step));
      const note = writes ? "the vector that is added to memory" : "the vector that is read from memory";
      panels.push({ name: content.name, note, ...reached, labels: bits(content.width), bounded: false });
    }
    const whole = transposed(head);
    const note = `the slot of memory where the head ${writes ? "writes" : "reads"}`;
    panels.push({
      name: head.name,
      note,
      ...rowsOf(whole, slots),
      labels: slots.map((slot) => String(slot + 1)),
      bounded: true,
      slots,
    });
  }
  panels.push(...controlPanels(trace, heads));
  const sizes = map("slot sizes");
  if (sizes) {
    const note = "how full each slot is (root mean square)";
    panels.push({
      name: "memory over time",
      note,
      ...rowsOf(transposed(sizes), slots),
      labels: slots.map((slot) => String(slot + 1)),
      bounded: false,
    });
  }
  const kept = map("memory");
  const memory = kept && {
    name: "memory",
    note: "at the end: a row for each slot",
    ...rowsOf(kept, slots),
    labels: slots.map((slot) => String(slot + 1)),
    bounded: false,
  };
  return { panels, memory, wrong };
}

/** What the heads were told in each step: whether they look by content or keep their place, and how they move. */
function controlPanels(trace, heads) {
  const told = [
    ["gate", "gates", "strong: looks by content; faint: moves on"],
    ["shift", "shifts", "orange: one slot on; purple: one back"],
  ];
  return told.flatMap(([control, name, note]) => {
    const rows = heads.map((head) => trace.values(`${head.name} ${control}`));
    if (rows.some((row) => !row?.length)) return [];
    const [height, width] = [rows.length, rows[0].length];
    const weights = Float32Array.from(rows.flat());
    const labels = heads.map((head) => (head.name.startsWith("write") ? "W" : "R") + head.name.split(" ")[1]);
    return [{ name, note, weights, height, width, labels, bounded: true, signed: control === "shift" }];
  });
}

/** The slots to show: the shortest arc of the circle of slots that holds all that a head used. */
function usedSlots(heads, allSlots) {
  const count = heads[0].width;
  const every = Array.from({ length: count }, (_, slot) => slot);
  const used = every.filter((slot) =>
    heads.some(({ weights, height }) => {
      for (let step = 0; step < height; step++) if (weights[step * count + slot] >= MIN_WEIGHT) return true;
      return false;
    }),
  );
  if (allSlots || !used.length) return every;
  const gaps = used.map((slot, place) => (place + 1 < used.length ? used[place + 1] - slot : used[0] + count - slot));
  const widest = gaps.indexOf(Math.max(...gaps));
  const first = used[(widest + 1) % used.length];
  return Array.from({ length: count - gaps[widest] + 1 }, (_, place) => (first + place) % count);
}

function transposed({ weights, height, width }, change = (weight) => weight) {
  const turned = new Float32Array(height * width);
  for (let step = 0; step < height; step++) {
    for (let place = 0; place < width; place++)
      turned[place * height + step] = change(weights[step * width + place], step);
  }
  return { weights: turned, height: width, width: height };
}

function rowsOf({ weights, width }, rows) {
  const chosen = new Float32Array(rows.length * width);
  rows.forEach((row, place) => chosen.set(weights.subarray(row * width, (row + 1) * width), place * width));
  return { weights: chosen, height: rows.length, width };
}
