// A finished answer, laid out. The one place where a model's text becomes more than text: `marked` takes it apart into
// tokens, each kind we know becomes an element of ours, everything else stays the characters that were written. HTML is
// never parsed, images are never fetched, and nothing that a model wrote disappears.

import { Lexer, type MarkedToken, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { t } from "../i18n";
import { memo } from "../shared/memo";
import { PlainText } from "../shared/Text";

/** Longer texts stay plain: laying them out could hold the page up. */
const MAX_CHARS = 12_000;
/** Deeper than this, lists and quotes stay as they were written. */
const MAX_DEPTH = 8;
const LINK_SCHEMES = ["https:", "http:", "mailto:"];

/** null where the text cannot be taken apart. */
export function tokensOf(text: string): readonly Token[] | null {
  if (text.length > MAX_CHARS) return null;
  try {
    return Lexer.lex(text, { gfm: true, breaks: true });
  } catch {
    return null; // nested beyond the parser's stack
  }
}

/** The address of a link that may be one, else null: never a script, never a file. */
export function safeAddress(href: string): string | null {
  try {
    const { protocol, href: address } = new URL(href);
    return LINK_SCHEMES.includes(protocol) ? address : null;
  } catch {
    return null; // relative: a model knows no page of ours
  }
}

export const MarkdownText = memo(({ text }: { readonly text: string }) => {
  const tokens = useMemo(() => tokensOf(text), [text]);
  if (tokens === null) return <PlainText text={text} />;
  return (
    <div class="text formatted" dir="auto">
      {nodesOf(tokens, 0)}
    </div>
  );
});

function nodesOf(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  return tokens?.map((token) => nodeOf(token as MarkedToken, depth));
}

function nodeOf(token: MarkedToken, depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return token.raw;
  const inside = "tokens" in token ? () => nodesOf(token.tokens, depth + 1) : () => null;
  switch (token.type) {
    case "space":
      return token.raw;
    case "paragraph":
      return <p dir="auto">{inside()}</p>;
    case "heading":
      return (
        <p class="heading" dir="auto">
          {inside()}
        </p>
      );
    case "blockquote":
      return <blockquote dir="auto">{inside()}</blockquote>;
    case "code":
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard
        <pre tabIndex={0} dir="ltr">
          <code>{token.text}</code>
        </pre>
      );
    case "hr":
      return <hr />;
    case "list":
      return <List list={token} depth={depth} />;
    case "table":
      return <Table table={token} depth={depth} />;
    case "strong":
      return <strong>{inside()}</strong>;
    case "em":
      return <em>{inside()}</em>;
    case "del":
      return <s>{inside()}</s>;
    case "codespan":
      return <code>{token.text}</code>;
    case "link":
      return <Link link={token} depth={depth} />;
    case "text":
      return "tokens" in token && token.tokens ? inside() : token.text;
    case "escape":
      return token.text;
    case "checkbox":
      return token.checked ? "☑ " : "☐ ";
    default:
      return token.raw; // HTML, images, definitions, line breaks
  }
}

function List({ list, depth }: { readonly list: Tokens.List; readonly depth: number }) {
  const items = list.items.map((item) => (
    <li key={item} dir="auto">
      {nodesOf(item.tokens, depth + 1)}
    </li>
  ));
  return list.ordered ? <ol start={list.start === "" ? 1 : list.start}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ table, depth }: { readonly table: Tokens.Table; readonly depth: number }) {
  const cells = (row: readonly Tokens.TableCell[], Cell: "th" | "td") =>
    row.map((cell) => (
      <Cell key={cell} dir="auto">
        {nodesOf(cell.tokens, depth + 1)}
      </Cell>
    ));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard
    <div class="table" tabIndex={0}>
      <table>
        <thead>
          <tr>{cells(table.header, "th")}</tr>
        </thead>
        <tbody>
          {table.rows.map((row) => (
            <tr key={row}>{cells(row, "td")}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Link({ link, depth }: { readonly link: Tokens.Link; readonly depth: number }) {
  const address = safeAddress(link.href);
  if (address === null) return link.raw;
  return (
    <a href={address} title={address} target="_blank" rel="noopener noreferrer nofollow">
      {nodesOf(link.tokens, depth + 1)}
      <span class="unseen"> {t("(opens in a new tab)")}</span>
    </a>
  );
}
