// The words of a translation, and for one of them: what else could stand there, and where its step attends.

import { roving } from "/web/controls.js";
import { fill, html } from "/web/dom.js";
import { button, END, ending, field, named, number, percent, textForm, track } from "/pages/parts.js";

/** A word for people: what continues a word shows that it does. */
function shown({ text, begins }) {
  return begins || !/^[\p{L}\p{N}]/u.test(text) ? named(text) : `·${text}`;
}

/** Words as one text. */
export function joined(words) {
  return words.map(({ text, begins }, at) => (at && begins ? ` ${text}` : text)).join("");
}

/** The translation as a row of buttons, one for each word; `pick` is told which. Arrow keys step through them. */
export function translationWords({ words }, pick) {
  const buttons = words.map((word, at) => {
    const [over, out] = [() => hint(at), () => tip.remove()];
    const properties = { "data-keep": `word-${at}`, onpointerenter: over, onpointerleave: out };
    const className = `word${word.text === END ? " end" : ""}`;
    return button(shown(word).replace(/^·/, ""), () => pick(at), { className, ...properties });
  });
  const node = html("div.words", { role: "group", "aria-label": "Words of the translation", dir: "auto" });
  words.forEach((word, at) => {
    if (at && (word.begins || word.text === END)) node.append(" ");
    node.append(buttons[at]);
  });

  const tip = html("div.wordtip", { "aria-hidden": "true" });
  /** The likeliest words at a position, while the pointer is there; choosing the word shows more. */
  function hint(at) {
    const rows = words[at].likeliest.map((each) =>
      html("tr", html("td", html("bdi", shown(each))), html("td", percent(each.probability))),
    );
    if (!rows.length) return;
    fill(tip, html("table", rows));
    node.append(tip);
    const { offsetLeft: left, offsetTop: top, offsetHeight: high } = buttons[at];
    tip.style.left = `${Math.max(0, Math.min(left, node.clientWidth - tip.offsetWidth))}px`;
    tip.style.top = `${top + high + 4}px`;
  }

  const select = roving(buttons, { chosen: pick });
  node.select = (chosen) => {
    select(chosen);
    buttons.forEach((each, at) => each.setAttribute("aria-pressed", String(at === chosen)));
  };
  return node;
}

/** What can be seen and done at one word. */
export function wordPanel(page, at) {
  const word = page.current.words[at];
  if (!word) return [];
  return [likeliest(page, at, word), attention(page, at, word)];
}

function likeliest(page, at, word) {
  const same = (one) => JSON.stringify(one.tokens) === JSON.stringify(word.tokens);
  const list = word.likeliest.some(same) ? word.likeliest : [...word.likeliest, word];
  const items = list.map((each) => {
    const chosen = same(each);
    const properties = {
      className: "candidate",
      "aria-pressed": String(chosen),
      "data-keep": `candidate-${each.tokens}`,
      title: chosen ? "This word stands here" : `Put “${shown(each)}” here and decode again`,
    };
    const share = number(each.probability, percent(each.probability));
    const label = [html("bdi", shown(each)), track(each.probability), share];
    return html("li", button(label, () => !chosen && page.force(at, { tokens: each.tokens }), properties));
  });
  const typed = html("input", { type: "text", maxLength: 60, size: 14, dir: "auto" });
  const form = textForm("Another word", typed, "Put it here", (text) => text && page.force(at, { word: text }));
  const before = ending(joined(page.current.words.slice(0, at)), 26);
  return html(
    "div.likeliest",
    html("h3", at ? ["Likeliest words after ", html("q", before)] : "Likeliest first words"),
    word.likeliest.length ? html("ol", items) : html("p.quiet", "Not computed this far into a long translation."),
    html("p.quiet", "Choose another word: everything after it is translated again."),
    form,
  );
}

/** Sliders for where the step of a word attends. */
function attention(page, at, word) {
  const { trace, source_words: source } = page.current;
  if (!trace) return null;
  const last = word.step + word.tokens.length;
  const moved = page.state.attention.map(({ step }) => step).find((step) => step >= word.step && step < last);
  const step = moved ?? word.step;
  const row = trace.maps[0].weights[word.first + step - word.step];
  if (!row) return null;
  const groups = [...source, { text: "(end)", positions: [row.length - 1] }];
  const shares = groups.map(({ positions }) => positions.reduce((sum, position) => sum + row[position], 0));
  const send = () => page.move(step, word.first + step - word.step, spread(groups, shares, row.length));

  /** One share changes; the others keep their proportions, and all add up to 1. */
  const change = (index, share) => {
    const rest = shares.reduce((sum, each, other) => (other === index ? sum : sum + each), 0);
    shares.forEach((each, other) => {
      const part = rest > 1e-9 ? each / rest : 1 / (shares.length - 1);
      if (other !== index) shares[other] = part * (1 - share);
    });
    shares[index] = share;
    sliders.forEach((slider, other) => slider.show(shares[other]));
  };
  const sliders = groups.map(({ text }, index) => {
    const number = html("output");
    const range = html("input", {
      type: "range",
      min: 0,
      max: 100,
      step: 1,
      "aria-label": `Attention to ${text}`,
      "data-keep": `slider-${index}`,
      oninput: () => change(index, range.value / 100),
      onchange: send,
    });
    const onto = () => {
      change(index, 1);
      send();
    };
    const all = button(text, onto, { title: `Put all attention on “${text}”`, dir: "auto" });
    const node = html("li", all, range, number);
    const show = (share) => {
      range.value = Math.round(100 * share);
      number.textContent = percent(share);
      node.classList.toggle("weak", share < 0.02);
    };
    show(shares[index]);
    return { node, show };
  });
  const byYou = moved === undefined ? "" : " (moved by you)";
  const help =
    "Drag a slider, or choose a source word to put all attention on it: the translation is decoded again from here.";
  return html(
    "div.moving",
    html("h3", "Where ", html("q", shown(word).replace(/^·/, "")), " attends", byYou),
    html("ol.sliders", sliders.map(({ node }) => node)),
    html("p.quiet", help),
  );
}

/** The weight of each source token: that of its word, divided evenly. */
function spread(groups, shares, length) {
  const weights = Array(length).fill(0);
  groups.forEach(({ positions }, number) => {
    for (const position of positions) weights[position] = Math.round((1e4 * shares[number]) / positions.length) / 1e4;
  });
  return weights;
}
