// Elements without a line of HTML text: a strict content policy and trusted types allow it.

export const BUBBLE = "M8 18.6L4 20l1-4a8.7 7.5 0 1 1 3 2.6z";
export const CROSS = "M6 6l12 12M18 6L6 18";
const SVG = "http://www.w3.org/2000/svg";

type Attributes = Readonly<Record<string, string | number | boolean>>;

export function set(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
}

export function put<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  into: Node,
  attributes: Attributes,
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  set(element, attributes);
  into.appendChild(element);
  return element;
}

/** A line drawing; the answer is its path. */
export function draw(into: Node, shape: string): Element {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  set(svg, { viewBox: "0 0 24 24" });
  set(path, { d: shape });
  svg.append(path);
  into.appendChild(svg);
  return path;
}

/** Constructed style sheets are no inline styles: `style-src 'self'` lets them be. */
export function addStyle(root: ShadowRoot, rules: string): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rules);
  root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
}
