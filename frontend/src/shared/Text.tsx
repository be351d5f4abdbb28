// What people and models wrote, as plain text: one text node, never parsed as HTML. A growing text is appended to, so a
// running reply costs its new characters only and a reader's selection survives. Line breaks are kept by the style sheet.

import { useLayoutEffect, useRef } from "preact/hooks";

export function PlainText({ text }: { readonly text: string }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return;
    const shown = node.firstChild;
    if (!(shown instanceof Text)) node.append(document.createTextNode(text));
    else if (text.startsWith(shown.data)) shown.appendData(text.slice(shown.data.length));
    else shown.data = text;
  }, [text]);
  return <div class="text" dir="auto" ref={box} />;
}
