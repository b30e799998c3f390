// The workbench: a header, and the page that the path names. A page is a module that exports `title` and `show`.

import "/web/index.js";
import { fill, html } from "/web/dom.js";
import { ApiError, get, setToken } from "/pages/api.js";
import { button, errorBox, field } from "/pages/parts.js";
import { PAGES } from "/pages/table.js";

const THEME = "regard-theme";
const main = html("main", { id: "main", tabIndex: -1 });
const tokenBox = html("div", { className: "token", hidden: true });
let models = null;
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

function header() {
  const link = ({ name, label }) => html("a", { href: `/${name}`, "data-page": name }, label);
  const icon = html("img", { src: "/pages/icon.svg", alt: "", width: 22, height: 22 });
  const brand = html("a", { href: "/", className: "brand", "data-page": "home" }, icon, "regard");
  const skip = (event) => {
    event.preventDefault();
    main.focus();
  };
  return html(
    "header",
    { className: "top" },
    html("a", { href: "#main", className: "skip", onclick: skip }, "Skip to the content"),
    brand,
    html("nav", { "aria-label": "Pages" }, PAGES.map(link)),
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
    models = null;
    route();
  };
  const send = html("button", { type: "submit" }, "Use it");
  fill(tokenBox, html("form", { onsubmit: submit }, field("Token of this server", input), send));
  tokenBox.hidden = false;
}

/**
 * Show the page that the address names, in a node of its own. Its context has
 *   models    the models of its verb, as /v1/models lists them
 *   all       all models
 *   signal    aborted when the user leaves the page: pass it to `post` and to listeners outside of the root
 *   navigate  goes to another address of the workbench
 */
async function route() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const name = pageName();
  const root = html("div", { className: `page page-${name}` });
  for (const link of document.querySelectorAll("[data-page]")) {
    if (link.dataset.page !== name) link.removeAttribute("aria-current");
    else {
      link.setAttribute("aria-current", "page");
      // On a phone, the navigation scrolls sideways.
      link.parentElement.scrollLeft = link.offsetLeft - link.parentElement.clientWidth / 2;
    }
  }
  fill(main, root);
  if (name !== "home" && !PAGES.some((each) => each.name === name)) {
    document.title = "No such page · regard";
    const home = html("a", { href: "/" }, "All pages and models");
    fill(root, html("h1", {}, "There is no such page"), html("p", {}, `Nothing is at ${location.pathname}. `, home));
    return;
  }
  try {
    const [page, found] = await Promise.all([import(`/pages/${name}.js`), models ?? get("/v1/models")]);
    models = found;
    if (signal.aborted) return;
    document.title = name === "home" ? "regard" : `${page.title} · regard`;
    const { verb } = PAGES.find((each) => each.name === name) ?? {};
    const all = found.models;
    await page.show(root, { models: all.filter((each) => each.verb === verb), all, signal, navigate });
  } catch (error) {
    if (signal.aborted) return;
    const message = error instanceof ApiError ? error.message : `This page cannot be shown: ${error.message}`;
    fill(root, errorBox(message, route));
    if (!(error instanceof ApiError)) throw error;
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
  const known = pathname === "/" || PAGES.some(({ name }) => pathname === `/${name}`);
  if (origin !== location.origin || !known || hash || link.download) return;
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
