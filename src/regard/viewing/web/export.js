// Taking a picture elsewhere: SVG with real text, PNG, JSON, and a table for a spreadsheet.

import { FONT, html, svg, text } from "./dom.js";

const PNG_SCALE = 2;
const MAX_PNG_SIDE = 8192;

/** A complete SVG document of parts above each other, each {width, height, node}, under an optional title. */
export function composed(parts, theme, title = "") {
  const margin = 12;
  const width = Math.max(...parts.map((part) => part.width)) + 2 * margin;
  const children = [];
  let y = margin;
  if (title) {
    children.push(text(margin, y + 8, title, { size: 14, weight: "600", fill: theme.ink }));
    y += 26;
  }
  for (const part of parts) {
    children.push(svg("g", { transform: `translate(${margin} ${y})` }, part.node));
    y += part.height + 8;
  }
  const size = { width: Math.ceil(width), height: Math.ceil(y + margin - 8) };
  const root = svg("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}`, "font-family": FONT });
  root.append(svg("title", title || "attention"), svg("rect", { ...size, fill: theme.paper }), ...children);
  return root;
}

/** The SVG file of a composed picture. */
function svgFile(root) {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(root)}\n`;
}

/** The PNG file of a composed picture, at twice its size where that is possible, as a promise of a Blob. */
async function pngFile(root) {
  const [width, height] = ["width", "height"].map((side) => Number(root.getAttribute(side)));
  const scale = Math.min(PNG_SCALE, MAX_PNG_SIDE / Math.max(width, height));
  const image = new Image(width, height);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgFile(root))}`;
  await image.decode();
  const [wide, high] = [width, height].map((side) => Math.max(1, Math.round(side * scale)));
  const canvas = html("canvas", { width: wide, height: high });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob(
      (blob) => (blob ? resolve(blob) : reject(new Error("The picture is too large for a PNG file."))),
      "image/png",
    );
  });
}

/** A table as tab-separated text, which spreadsheets paste into cells. */
export function tabSeparated({ columns, rows }) {
  const line = (cells) => cells.map((cell) => String(cell).replace(/[\t\n\r]+/g, " ")).join("\t");
  return [columns, ...rows].map(line).join("\n") + "\n";
}

/** Save a picture as SVG or as PNG, an object as JSON, or a table as TSV: {svg}, {png}, {json} or {tsv}. */
export async function saveAs(name, { svg: drawn, png, json, tsv }) {
  if (drawn) download(`${name}.svg`, svgFile(drawn), "image/svg+xml");
  else if (png) download(`${name}.png`, await pngFile(png), "image/png");
  else if (json) download(`${name}.json`, JSON.stringify(json), "application/json");
  else download(`${name}.tsv`, tabSeparated(tsv), "text/tab-separated-values");
}

/** Let the browser save a file. */
function download(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = html("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Copy text; where a frame may not use the clipboard, through a selection. Resolves to whether it worked. */
export async function copyText(string) {
  try {
    await navigator.clipboard.writeText(string);
    return true;
  } catch {
    const area = html("textarea", { value: string });
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}
