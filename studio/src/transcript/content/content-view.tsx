import type { ReactNode } from "react";
import type { Content, ContentPart } from "../../../../src/session/message.ts";
import { Markdown } from "../../markdown/markdown.tsx";
import { FilePart } from "./file-part.tsx";
import { Fold } from "./fold.tsx";
import { partsOf } from "./content-text.ts";

/** The content of a message: Markdown text, pictures, files, and collapsed thinking. */
export function ContentView({ content }: { readonly content: Content | null }): ReactNode {
  return partsOf(content).map((part, index) => <Part key={index} part={part} />);
}

function Part({ part }: { readonly part: ContentPart }): ReactNode {
  if (part.type === "text") return part.text === "" ? null : <Markdown text={part.text} />;
  if (part.type === "thinking") return <Thinking text={part.text} />;
  return <FilePart part={part} />;
}

/** The thinking of a model, collapsed. */
export function Thinking({ text }: { readonly text: string }): ReactNode {
  return (
    <Fold title="Thinking" className="transcript-thinking">
      {text === "" ? <p className="soft">The provider does not show it.</p> : <Markdown text={text} />}
    </Fold>
  );
}
