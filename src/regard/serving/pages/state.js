// The state of a page lives in the query of its address, so that a link shows what its sender saw.

/** Longer values stay out of the address, which browsers and servers cut. */
const MAX_LENGTH = 6000;

let known = {};
let belonging = {};
/** Names of the values that the address cannot have. */
const absent = new Set();

/**
 * The state that the address gives, with a default for what it leaves out. The type of a default says how a value is
 * read: text, a number, true or false; objects and lists are JSON. `parts` names, for a value such as a text, those
 * that mean something only together with it: where the address cannot have the text, it has none of them.
 */
export function read(defaults, parts = {}) {
  known = { ...defaults };
  belonging = parts;
  absent.clear();
  const query = new URLSearchParams(location.search);
  return Object.fromEntries(
    Object.entries(defaults).map(([name, value]) => [name, query.has(name) ? parsed(query.get(name), value) : value]),
  );
}

/**
 * Write values into the address; those that equal their default are left out, and null, which stands for a value that
 * no address can have, such as an image. Others of the page stay as they are.
 */
export function write(values) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    const text = written(value);
    const isAbsent = value === null || encodeURIComponent(text).length > MAX_LENGTH;
    absent[isAbsent ? "add" : "delete"](name);
    if (isAbsent || text === written(known[name])) query.delete(name);
    else query.set(name, text);
  }
  for (const name of [...absent].flatMap((each) => belonging[each] ?? [])) query.delete(name);
  const search = query.size ? `?${query}` : "";
  history.replaceState(history.state, "", `${location.pathname}${search}`);
}

function written(value) {
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}

function parsed(text, initial) {
  if (typeof initial === "boolean") return text === "true";
  if (typeof initial === "string") return text;
  if (typeof initial === "number") return text.trim() && Number.isFinite(Number(text)) ? Number(text) : initial;
  try {
    return JSON.parse(text);
  } catch {
    return initial;
  }
}
