import { isValidElement, type ReactElement, type ReactNode } from "react";
import { CopyButton } from "./copy-button.tsx";

/** A code block with its language and a copy button. */
export function CodeBlock({ children }: { readonly children?: ReactNode }): ReactNode {
  const language = languageOf(children);
  return (
    <figure className="markdown-code">
      <figcaption className="markdown-code-head">
        <span>{language ?? "text"}</span>
        <CopyButton label="Copy code" text={() => plainText(children)} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard. */}
      <pre tabIndex={0}>{children}</pre>
    </figure>
  );
}

function languageOf(code: ReactNode): string | null {
  if (!isValidElement(code)) return null;
  const { className } = (code as ReactElement<{ className?: string }>).props;
  return /language-(\S{1,40})/.exec(className ?? "")?.[1] ?? null;
}

function plainText(node: ReactNode): string {
  if (typeof node === "string") return node;
  if (Array.isArray(node)) return node.map(plainText).join("");
  return isValidElement(node) ? plainText((node as ReactElement<{ children?: ReactNode }>).props.children) : "";
}
