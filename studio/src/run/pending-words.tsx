import { type ReactNode, useCallback, useEffect, useState } from "react";
import type { Entry } from "../../../src/session/log/entry.ts";
import type { Content } from "../../../src/session/message.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { textOf } from "../transcript/content/said.ts";
import type { SayHow } from "./say-how.tsx";

interface Word {
  readonly how: SayHow;
  readonly text: string;
  /** The last entry that was there when it was said. */
  readonly afterSeq: number;
}

/** What was said to a run and has not been heard by its model yet. */
export interface PendingWords {
  readonly words: readonly Word[];
  readonly add: (how: SayHow, content: Content) => void;
}

/** Keeps what was said to a run until the transcript has it, or the run is over. */
export function usePendingWords(runId: string | null, entries: readonly Entry[]): PendingWords {
  const [words, setWords] = useState<readonly Word[]>([]);
  const lastSeq = entries.at(-1)?.seq ?? -1;
  useEffect(() => setWords([]), [runId]);
  useEffect(() => {
    const heard = (word: Word): boolean =>
      entries.some(
        (entry) =>
          entry.seq > word.afterSeq &&
          entry.type === "message" &&
          entry.message.role === "user" &&
          textOf(entry.message.content) === word.text,
      );
    setWords((before) => (before.some(heard) ? before.filter((word) => !heard(word)) : before));
  }, [entries]);
  const add = useCallback(
    (how: SayHow, content: Content) =>
      setWords((before) => [...before, { how, text: textOf(content), afterSeq: lastSeq }]),
    [lastSeq],
  );
  return { words, add };
}

/** Shows what was said to a run and waits for its moment. */
export function PendingWordsView({ words }: { readonly words: readonly Word[] }): ReactNode {
  if (words.length === 0) return null;
  return (
    <ul className="run-pending" aria-label="Said, and not heard yet">
      {words.map(({ how, text }, index) => (
        <li key={index}>
          <span className="tag">{how === "steer" ? "before its next turn" : "when it is done"}</span>{" "}
          {visibleText(text.slice(0, 400))}
        </li>
      ))}
    </ul>
  );
}
