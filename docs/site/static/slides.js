// A page as slides, at its address with ?slides: each heading begins a slide, and so does whatever does not fit on one.
// Arrow keys turn the slides, Escape leaves them, and printing gives one slide a page.

function start(article) {
  const show = document.createElement("main");
  show.className = "slides";
  document.body.replaceChildren(show);
  document.title += " (slides)";
  let title = "";
  const begin = (heading) => {
    const slide = document.createElement("section");
    slide.append(heading);
    show.append(slide);
    return slide;
  };
  let slide;
  for (const node of parts(article)) {
    if (/^H[1-6]$/.test(node.tagName)) {
      node.querySelector(".headerlink")?.remove();
      title = node;
      slide = begin(node);
      continue;
    }
    slide ??= begin(document.createElement("h2"));
    const alone = slide.children.length === 1;
    slide.append(node);
    if (!alone && slide.scrollHeight > slide.clientHeight + 2) {
      slide = begin(title.cloneNode(true));
      slide.append(node);
    }
    // A part that is larger than a slide by itself is drawn smaller.
    for (let zoom = 0.95; slide.scrollHeight > slide.clientHeight + 2 && zoom > 0.3; zoom -= 0.05) {
      node.style.zoom = zoom;
    }
  }
  turn(show);
}

// The parts of an article in order, its nested sections and cells opened; solutions stay in the page.
function* parts(node) {
  for (const child of [...node.children]) {
    if (child.matches("details, .forms, script, style")) continue;
    if (child.matches("section, .cell, .cell_output")) yield* parts(child);
    else yield child;
  }
}

function turn(show) {
  const slides = [...show.children];
  const counter = document.createElement("footer");
  show.append(counter);
  let current = -1;
  const go = (number) => {
    const next = Math.min(Math.max(number, 0), slides.length - 1);
    if (next === current) return;
    slides.forEach((slide, index) => slide.classList.toggle("current", index === next));
    current = next;
    counter.textContent = `${next + 1} / ${slides.length}`;
    history.replaceState(null, "", `#${next + 1}`);
  };
  show.classList.add("ready");
  go((Number.parseInt(location.hash.slice(1), 10) || 1) - 1);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") location.assign(location.pathname);
    const by = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 }[event.key];
    if (event.key === "Home") go(0);
    else if (event.key === "End") go(slides.length - 1);
    else if (by) go(current + by);
    else return;
    event.preventDefault();
  });
  show.addEventListener("click", (event) => {
    if (!event.target.closest("a")) go(current + (event.clientX < innerWidth / 3 ? -1 : 1));
  });
}

if (new URLSearchParams(location.search).has("slides")) {
  addEventListener("load", () => start(document.querySelector("article[role=main]")));
}
