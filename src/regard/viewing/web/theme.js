// Light and dark: the colours of everything that is not a weight, and which of the two a page has.

import { luminance } from "./colours.js";

export const THEMES = {
  light: {
    name: "light",
    paper: "#ffffff",
    ink: "#1b1f24",
    quiet: "#59626d",
    line: "#d4d9df",
    accent: "#0b57a4",
    current: "#b3261e",
    mark: "#c25100",
  },
  dark: {
    name: "dark",
    paper: "#16191f",
    ink: "#e8ebef",
    quiet: "#a7b0bb",
    line: "#3a414b",
    accent: "#8ec5ff",
    current: "#ff9d94",
    mark: "#ffb35c",
  },
};

/** The theme of the page around an element: dark where its text is bright, as in a dark notebook. */
export function themeAround(element) {
  const parts = getComputedStyle(element)
    .color.match(/[\d.]+/g)
    ?.map(Number) ?? [0, 0, 0];
  return luminance(parts.slice(0, 3)) > 0.4 ? THEMES.dark : THEMES.light;
}

/** Call `changed` whenever the theme of the page may have changed; returns a function that ends this. */
export function watchTheme(changed) {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", changed);
  // Notebooks switch their theme by attributes of <html> or <body>.
  const observer = new MutationObserver(changed);
  for (const node of [document.documentElement, document.body]) if (node) observer.observe(node, { attributes: true });
  return () => {
    scheme.removeEventListener("change", changed);
    observer.disconnect();
  };
}
