import { memo, type ReactNode } from "react";
import renderMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { CodeBlock } from "./code-block.tsx";
import { limitDepth } from "./limit-depth.ts";
import { LongText } from "./long-text.tsx";
import { type MarkedPiece, markPieces } from "./mark-pieces.ts";
import { safeImage, safeLink } from "./safe-url.ts";
import { visibleText } from "./visible-text.ts";
import "./markdown.css";

/** Longer texts are shown as plain text: parsing them would take seconds. */
const CHARACTERS_MAX = 60_000;

/** Renders untrusted Markdown safely: HTML is shown as text. */
export const Markdown: (props: MarkdownProps) => ReactNode = memo(function Markdown({
  text,
  marks,
}: MarkdownProps): ReactNode {
  const rendered = text.length > CHARACTERS_MAX ? null : render(text, marks);
  return rendered === null ? <LongText text={text} /> : <div className="markdown">{rendered}</div>;
});

/** The props of a Markdown text. */
export interface MarkdownProps {
  readonly text: string;
  /** The text in pieces, of which some are marked; nothing is marked by default. */
  readonly marks?: { readonly pieces: readonly MarkedPiece[]; readonly className: string };
}

/** Null if the text cannot be rendered as Markdown. */
function render(text: string, marks: MarkdownProps["marks"]): ReactNode {
  try {
    // Called as a function, not as a component, so that errors are caught here.
    return renderMarkdown({
      children: visibleText(text),
      remarkPlugins: [[remarkGfm, { singleTilde: false }], limitDepth],
      rehypePlugins: marks === undefined ? [] : [markPieces(marks.pieces.map(visiblePiece), marks.className)],
      urlTransform: (url, key) => (key === "src" ? safeImage(url) : safeLink(url)) ?? "",
      components: COMPONENTS,
    });
  } catch {
    return null;
  }
}

function visiblePiece({ text, own }: MarkedPiece): MarkedPiece {
  return { text: visibleText(text), own };
}

const COMPONENTS: Components = {
  a: ({ href, title, children }) =>
    href ? (
      <a href={href} title={title} target="_blank" rel="noreferrer noopener">
        {children}
      </a>
    ) : (
      <span className="markdown-no-link">{children}</span>
    ),
  img: ({ src, alt }) =>
    typeof src === "string" && src !== "" ? (
      <img src={src} alt={alt ?? ""} className="markdown-image" />
    ) : (
      <span className="tag">Picture not shown{alt ? `: ${alt}` : ""}</span>
    ),
  pre: ({ children }) => <CodeBlock>{children}</CodeBlock>,
  p: ({ children }) => <p dir="auto">{children}</p>,
  // Headings of a message must not be headings of the page; a wide table scrolls separately.
  h1: ({ children }) => <p className="markdown-heading markdown-heading-1">{children}</p>,
  h2: ({ children }) => <p className="markdown-heading markdown-heading-2">{children}</p>,
  h3: ({ children }) => <p className="markdown-heading">{children}</p>,
  h4: ({ children }) => <p className="markdown-heading">{children}</p>,
  h5: ({ children }) => <p className="markdown-heading">{children}</p>,
  h6: ({ children }) => <p className="markdown-heading">{children}</p>,
  table: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard.
    <div className="markdown-table" tabIndex={0}>
      <table>{children}</table>
    </div>
  ),
  input: ({ checked }) => <input type="checkbox" checked={checked === true} disabled aria-label="Done" />,
};
