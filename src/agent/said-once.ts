import { type Content, partsOf } from "../session/message.ts";
import type { RunEvent } from "./run-event.ts";

/** Some words of an answer. */
export interface SaidPiece {
  readonly kind: "text" | "thinking";
  readonly text: string;
  /** It does not go on with the words before it. */
  readonly begins?: true;
}

type Kind = SaidPiece["kind"];

/**
 * What a run says, for a reader that cannot take back what it has: every word of an answer once.
 *
 * - After a retry or a takeover it goes on where the new words begin with those that were told; else the whole answer
 *   follows once more, from its beginning.
 * - What was missed of the stream is told when the answer is whole.
 */
export class SaidOnce {
  /** What the reader has of the present answer. */
  #told: Record<Kind, string> = { text: "", thinking: "" };
  /** What the present try has come to, where an earlier one was void; null in the first. */
  #retold: Record<Kind, string> | null = null;
  #missed = false;

  /** The words that an event adds. */
  take(event: RunEvent): readonly SaidPiece[] {
    switch (event.type) {
      case "text-delta":
        return this.#hear("text", event.text);
      case "thinking-delta":
        return this.#hear("thinking", event.text);
      case "run-started":
      case "model-retry":
        this.#retold = { text: "", thinking: "" };
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

  #hear(kind: Kind, text: string): readonly SaidPiece[] {
    if (this.#missed || text === "") return [];
    if (this.#retold === null) {
      this.#told[kind] += text;
      return [{ kind, text }];
    }
    this.#retold[kind] += text;
    const told = this.#told[kind];
    const words = this.#retold[kind];
    if (words.length <= told.length || !words.startsWith(told)) return [];
    this.#told[kind] = words;
    return [{ kind, text: words.slice(told.length) }];
  }

  #end(content: Content | null): readonly SaidPiece[] {
    const told = this.#told;
    this.#told = { text: "", thinking: "" };
    this.#retold = null;
    this.#missed = false;
    const whole = piecesOf(content);
    if (told.text === "" && told.thinking === "") return whole;
    return (["thinking", "text"] as const).flatMap((kind): SaidPiece[] => {
      const words = whole.map((piece) => (piece.kind === kind ? piece.text : "")).join("");
      if (words === "" || words === told[kind]) return [];
      if (!words.startsWith(told[kind])) return [{ kind, text: words, begins: true }];
      return [{ kind, text: words.slice(told[kind].length) }];
    });
  }
}

function piecesOf(content: Content | null): SaidPiece[] {
  return partsOf(content).flatMap((part): SaidPiece[] =>
    "text" in part && part.text !== "" ? [{ kind: part.type, text: part.text, begins: true }] : [],
  );
}
