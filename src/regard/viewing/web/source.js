// Where an element gets its trace from: a property, or a <script type="application/json"> inside it.

/** Read the JSON script inside an element, as soon as the page has been parsed, and pass its text on. */
export function whenWritten(element, found) {
  const read = () => {
    const script = element.querySelector('script[type="application/json"]');
    if (script) found(script.textContent);
  };
  // While a page is parsed, an element is created before its children are.
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", read, { once: true });
  else read();
}

/** Properties that were set before the element was defined hide its accessors: set them again, through those. */
export function upgradeProperties(element, names) {
  for (const name of names.filter((each) => Object.hasOwn(element, each))) {
    const value = element[name];
    delete element[name];
    element[name] = value;
  }
}
