// Holds the page behind a panel that fills the screen. Property by property, so that nothing else of a page's own inline
// style is touched, and through the object model, which a strict content policy allows.

const AXES = ["overflow-x", "overflow-y"];

/** Locks the page's scrolling; the answer restores what stood there before. */
export function lockScroll(): () => void {
  const undo = scrollers().map(hold);
  return () => {
    for (const restore of undo) restore();
  };
}

/** The elements whose overflow makes the page scroll. One that lets it show must stay so: hiding would move its layout. */
function scrollers(): readonly HTMLElement[] {
  const { documentElement, body } = document;
  const shows = (element: HTMLElement) => getComputedStyle(element).overflowY === "visible";
  if (shows(documentElement)) return [body]; // the window takes over what the body says
  return shows(body) ? [documentElement] : [documentElement, body];
}

function hold(element: HTMLElement): () => void {
  const { style } = element;
  const hadStyle = element.hasAttribute("style");
  const kept = AXES.map((axis) => [axis, style.getPropertyValue(axis), style.getPropertyPriority(axis)] as const);
  for (const axis of AXES) style.setProperty(axis, "hidden", "important");
  return () => {
    for (const one of kept) style.setProperty(...one);
    if (!hadStyle && element.getAttribute("style") === "") element.removeAttribute("style");
  };
}
