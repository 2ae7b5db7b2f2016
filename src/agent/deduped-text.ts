import { type Content, partsOf } from "../session/message.ts";
import type { RunEvent } from "./run-event.ts";

/** A part of an answer's text or thinking. */
export interface TextPiece {
  readonly kind: "text" | "thinking";
  readonly text: string;
  /** True if it does not continue the text before it. */
  readonly begins?: true;
}

type Kind = TextPiece["kind"];

/**
 * The text of a run's answers for a reader that only appends: each character is returned once.
 *
 * - After a retry or a takeover, new text is returned as soon as it is longer than what the reader has and begins with that.
 *   If it differs, the whole answer is returned when it is finished, with `begins`.
 * - Text of dropped events is returned when the answer is finished.
 */
export class DedupedText {
  /** The text of the current answer that the reader has. */
  #sent: Record<Kind, string> = { text: "", thinking: "" };
  /** The text of the current attempt, if an earlier one was discarded; null in the first attempt. */
  #repeated: Record<Kind, string> | null = null;
  #missed = false;

  /** Returns the text that an event adds. */
  take(event: RunEvent): readonly TextPiece[] {
    switch (event.type) {
      case "text-delta":
        return this.#append("text", event.text);
      case "thinking-delta":
        return this.#append("thinking", event.text);
      case "run-started":
      case "model-retry":
        this.#repeated = { text: "", thinking: "" };
        this.#missed = false;
        return [];
      case "events-dropped":
        this.#missed = true;
        return [];
      case "round-finished":
        return this.#end(event.message.content);
      default:
        return [];
    }
  }

  #append(kind: Kind, text: string): readonly TextPiece[] {
    if (this.#missed || text === "") return [];
    if (this.#repeated === null) {
      this.#sent[kind] += text;
      return [{ kind, text }];
    }
    this.#repeated[kind] += text;
    const sent = this.#sent[kind];
    const repeated = this.#repeated[kind];
    if (repeated.length <= sent.length || !repeated.startsWith(sent)) return [];
    this.#sent[kind] = repeated;
    return [{ kind, text: repeated.slice(sent.length) }];
  }

  #end(content: Content | null): readonly TextPiece[] {
    const sent = this.#sent;
    this.#sent = { text: "", thinking: "" };
    this.#repeated = null;
    this.#missed = false;
    const whole = piecesOf(content);
    if (sent.text === "" && sent.thinking === "") return whole;
    return (["thinking", "text"] as const).flatMap((kind): TextPiece[] => {
      const text = whole.map((piece) => (piece.kind === kind ? piece.text : "")).join("");
      if (text === "" || text === sent[kind]) return [];
      if (!text.startsWith(sent[kind])) return [{ kind, text, begins: true }];
      return [{ kind, text: text.slice(sent[kind].length) }];
    });
  }
}

function piecesOf(content: Content | null): TextPiece[] {
  return partsOf(content).flatMap((part): TextPiece[] =>
    "text" in part && part.text !== "" ? [{ kind: part.type, text: part.text, begins: true }] : [],
  );
}
