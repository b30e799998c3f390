// Moving glimpses over the image, with the pointer or with the keys.

const STEP = 0.05;
const MOVES = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };
const clamp = (value) => Math.min(1, Math.max(0, value));

/** Let an <attention-glimpses> with the option `movable` move its glimpses; `picture` gives what is drawn now. */
export function makeMovable(element, picture) {
  let dragged = null;
  let wasDragged = false;
  /** The last move, which is drawn only when the answer to it has come. */
  let moved = null;
  const tell = (glimpse, { x, y }) => {
    const detail = { glimpse, x: clamp(x), y: clamp(y) };
    moved = { ...detail, trace: element.trace, picture: picture() };
    element.dispatchEvent(new CustomEvent("attention-glimpse", { bubbles: true, composed: true, detail }));
  };
  /** Where a glimpse is, also while a move of it is not drawn yet: keys may be faster than answers. */
  const placeOf = (glimpse) => {
    const isDrawn = moved?.trace !== element.trace && moved?.picture !== picture();
    if (moved?.glimpse === glimpse && !isDrawn) return moved;
    const [x, y] = picture().glimpses.points[glimpse];
    return { x, y };
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
    const { x, y } = placeOf(place.row);
    tell(place.row, { x: x + move[0], y: y + move[1] });
  });
}
