// The workbench: a header, and the page that the path names: that of a system, the page Attention, or the home page.

import "/web/index.js";
import { fill, html } from "/web/dom.js";
import { ApiError, get, setToken } from "/pages/api.js";
import { showHome } from "/pages/home.js";
import { button, errorBox, field } from "/pages/parts.js";

const THEME = "regard-theme";
/** The page that belongs to no system: it computes in the browser, and asks no model. */
const ATTENTION = { name: "attention", label: "Attention" };
const main = html("main", { id: "main", tabIndex: -1 });
const tokenBox = html("div.token", { hidden: true });
const navigation = html("nav", { "aria-label": "Pages" });
/** The systems that have a page, and all models, as the server lists them. */
let known = null;
let leaving = new AbortController();

function pageName() {
  return location.pathname.slice(1) || "home";
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem(THEME, name);
}

function themeSwitch() {
  const label = () => (isDark() ? "Light" : "Dark");
  const control = button(label(), () => {
    setTheme(isDark() ? "light" : "dark");
    control.textContent = label();
  });
  control.title = "Switch between light and dark";
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (control.textContent = label()));
  return control;
}

/** The name of a system as people read it. */
const labelOf = (name) => name[0].toUpperCase() + name.slice(1);

function header() {
  const icon = html("img", { src: "/pages/icon.svg", alt: "", width: 22, height: 22 });
  const brand = html("a.brand", { href: "/", "data-page": "home" }, icon, "regard");
  const skip = (event) => {
    event.preventDefault();
    main.focus();
  };
  return html(
    "header.top",
    html("a.skip", { href: "#main", onclick: skip }, "Skip to the content"),
    brand,
    navigation,
    themeSwitch(),
    tokenBox,
  );
}

/** A field for the token, shown once the server has refused a request without it. */
function askForToken() {
  const input = html("input", { type: "password", autocomplete: "off" });
  const submit = (event) => {
    event.preventDefault();
    setToken(input.value.trim());
    tokenBox.hidden = true;
    route();
  };
  const send = html("button", { type: "submit" }, "Use it");
  fill(tokenBox, html("form", { onsubmit: submit }, field("Token of this server", input), send));
  tokenBox.hidden = false;
}

/** Ask the server, once, for the systems that have a page, and for its models. */
async function ask() {
  const [{ systems }, { models }] = await Promise.all([get("/v1/systems"), get("/v1/models")]);
  const labelled = systems.map((system) => ({ ...system, label: labelOf(system.name) }));
  const pages = [ATTENTION, ...labelled];
  fill(navigation, pages.map(({ name, label }) => html("a", { href: `/${name}`, "data-page": name }, label)));
  return { systems: labelled, models };
}

/** Show the page that the address names, in a node of its own. */
async function route() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const name = pageName();
  const root = html("div", { className: `page page-${name}` });
  fill(main, root);
  try {
    known ??= await ask();
    if (signal.aborted) return;
    markCurrent(name);
    const { systems, models: all } = known;
    const system = systems.find((each) => each.name === name);
    if (name === "home") {
      document.title = "regard";
      return showHome(root, { systems, all, signal });
    }
    if (name === ATTENTION.name) {
      document.title = `${ATTENTION.label} · regard`;
      const { showAttention } = await import("/pages/attention.js");
      return void (signal.aborted || showAttention(root));
    }
    if (!system) {
      document.title = "No such page · regard";
      const home = html("a", { href: "/" }, "All pages and models");
      const said = html("p", `Nothing is at ${location.pathname}. `, home);
      return void fill(root, html("h1", "There is no such page"), said);
    }
    const { default: SystemPage } = await import(system.page);
    if (signal.aborted) return;
    document.title = `${system.label} · regard`;
    const models = all.filter((each) => each.verb === name);
    await new SystemPage(root, { system, models, all, signal }).start();
  } catch (error) {
    if (signal.aborted) return;
    const message = error instanceof ApiError ? error.message : `This page cannot be shown: ${error.message}`;
    fill(root, errorBox(message, route));
    if (!(error instanceof ApiError)) throw error;
  }
}

function markCurrent(name) {
  for (const link of document.querySelectorAll("[data-page]")) {
    if (link.dataset.page !== name) link.removeAttribute("aria-current");
    else {
      link.setAttribute("aria-current", "page");
      // On a phone, the navigation scrolls sideways.
      link.parentElement.scrollLeft = link.offsetLeft - link.parentElement.clientWidth / 2;
    }
  }
}

function navigate(address) {
  if (address !== location.pathname + location.search) history.pushState(null, "", address);
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
  return route();
}

/** Follow links inside the workbench without loading everything again. */
function onClick(event) {
  const link = event.target.closest?.("a[href]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const { origin, pathname, search, hash } = new URL(link.href);
  const pages = [ATTENTION, ...(known?.systems ?? [])];
  const isPage = pathname === "/" || pages.some(({ name }) => pathname === `/${name}`);
  if (origin !== location.origin || !isPage || hash || link.download) return;
  event.preventDefault();
  navigate(pathname + search);
}

const chosen = localStorage.getItem(THEME);
if (chosen) document.documentElement.dataset.theme = chosen;
document.body.append(header(), main);
document.addEventListener("click", onClick);
document.addEventListener("regard-token-needed", askForToken);
addEventListener("popstate", route);
route();
