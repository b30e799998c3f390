// Moving glimpses over the image, with the pointer or with the keys.

const STEP = 0.05;
const MOVES = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };
const clamp = (value) => Math.min(1, Math.max(0, value));

/** Let an <attention-glimpses> with the option `movable` move its glimpses; `picture` gives what is drawn now. */
export function makeMovable(element, picture) {
  let dragged = null;
  let wasDragged = false;
  /** Where the keys have moved a glimpse of a trace, from where they go on until the page shows another trace. */
  let told = null;
  const tell = (glimpse, { x, y }) => {
    const detail = { glimpse, x: clamp(x), y: clamp(y) };
    element.dispatchEvent(new CustomEvent("attention-glimpse", { bubbles: true, composed: true, detail }));
  };
  const sheet = () => element.shadowRoot.querySelector(".picture svg");
  const point = (event) => {
    const { left, top } = sheet().getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  const listen = (type, listener) => element.addEventListener(type, listener, { capture: true, passive: false });
  /** The glimpse under a pointer or a finger, or null. */
  const under = (event, where) => {
    if (!element.options.movable || !sheet() || !event.composedPath().includes(sheet())) return null;
    return picture()?.inImage(...point(where)) && picture().at(...point(where));
  };

  // A finger on a glimpse moves it, and not the page.
  listen("touchstart", (event) => {
    if (event.touches.length === 1 && under(event, event.touches[0])) event.preventDefault();
  });
  listen("pointerdown", (event) => {
    wasDragged = false;
    const place = event.button ? null : under(event, event);
    if (!place) return;
    event.preventDefault();
    element.setPointerCapture(event.pointerId);
    dragged = { glimpse: place.row, ghost: null };
    element.pinned = place;
  });
  listen("pointermove", (event) => {
    if (!dragged) return;
    event.stopPropagation();
    wasDragged = true;
    dragged.ghost?.remove();
    dragged.ghost = picture().ghost(...point(event));
    sheet().append(dragged.ghost);
  });
  listen("pointerup", (event) => {
    if (!dragged) return;
    const { glimpse, ghost } = dragged;
    dragged = null;
    ghost?.remove();
    const { side, high } = picture();
    const [x, y] = point(event);
    if (wasDragged) tell(glimpse, { x: x / side, y: y / high });
  });
  listen("pointercancel", () => {
    dragged?.ghost?.remove();
    dragged = null;
  });
  // A drag ends with a click, which would let go of the glimpse.
  listen("click", (event) => {
    if (wasDragged) event.stopPropagation();
    wasDragged = false;
  });
  listen("keydown", (event) => {
    const move = event.shiftKey && MOVES[event.key];
    const place = element.current;
    if (!move || !element.options.movable || !place) return;
    event.stopPropagation();
    event.preventDefault();
    const { trace } = element;
    const isPending = told?.trace === trace && told.glimpse === place.row;
    const [x, y] = isPending ? [told.x, told.y] : ["x", "y"].map((axis) => trace.values(axis)[place.row]);
    told = { trace, glimpse: place.row, x: clamp(x + move[0]), y: clamp(y + move[1]) };
    tell(place.row, told);
  });
}
