import { type ReactNode, useCallback, useEffect, useState } from "react";
import type { Entry } from "../../../src/session/log/entry.ts";
import type { Content } from "../../../src/session/message.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { textOf } from "../transcript/content/content-text.ts";
import type { Delivery } from "./delivery-picker.tsx";

interface PendingMessage {
  readonly how: Delivery;
  readonly text: string;
  /** The position of the last entry when it was sent. */
  readonly afterSeq: number;
}

/** Messages that were sent to a run, but that its model has not got yet. */
export interface PendingMessages {
  readonly messages: readonly PendingMessage[];
  readonly add: (how: Delivery, content: Content) => void;
}

/** Keeps the messages sent to a run until they are in the transcript, or the run ends. */
export function usePendingMessages(runId: string | null, entries: readonly Entry[]): PendingMessages {
  const [messages, setMessages] = useState<readonly PendingMessage[]>([]);
  const lastSeq = entries.at(-1)?.seq ?? -1;
  useEffect(() => setMessages([]), [runId]);
  useEffect(() => {
    const isDelivered = (message: PendingMessage): boolean =>
      entries.some(
        (entry) =>
          entry.seq > message.afterSeq &&
          entry.type === "message" &&
          entry.message.role === "user" &&
          textOf(entry.message.content) === message.text,
      );
    setMessages((before) => (before.some(isDelivered) ? before.filter((message) => !isDelivered(message)) : before));
  }, [entries]);
  const add = useCallback(
    (how: Delivery, content: Content) =>
      setMessages((before) => [...before, { how, text: textOf(content), afterSeq: lastSeq }]),
    [lastSeq],
  );
  return { messages, add };
}

/** The messages that wait to be delivered to a run. */
export function PendingMessagesView({ messages }: { readonly messages: readonly PendingMessage[] }): ReactNode {
  if (messages.length === 0) return null;
  return (
    <ul className="run-pending" aria-label="Sent, but not delivered yet">
      {messages.map(({ how, text }, index) => (
        <li key={index}>
          <span className="tag">{how === "steer" ? "before its next turn" : "when it is done"}</span>{" "}
          {visibleText(text.slice(0, 400))}
        </li>
      ))}
    </ul>
  );
}
