import { createHeader } from "../../src/session/log/header.ts";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { assistant, call, message, result, usage, user } from "../sample-log.ts";

/** The smallest image that a browser shows. */
export const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/** A session with a tool call, an image, thinking, a compaction, a label, and an inactive branch. */
export async function fillSession(store: SessionStore, id = "talk"): Promise<void> {
  await store.create(createHeader({ id, userId: "ann", cwd: "/work/project", createdAt: "2024-01-01T00:00:00.000Z" }), {
    entries: [
      message("u1", user("Please look at *the* `file`.")),
      message(
        "a1",
        assistant(
          [
            { type: "thinking", text: "I must look." },
            { type: "text", text: "Looking." },
          ],
          {
            toolCalls: [call("c1", "look", '{"path":"a.txt"}')],
            provider: "offline",
            model: "model-1",
            usage: usage(10, 5),
            cost: 0.25,
            stopReason: "tool_calls",
          },
        ),
      ),
      message("t1", result("c1", "three lines")),
      message("a2", assistant("It has three lines.", { usage: usage(20, 7), cost: 0.5, stopReason: "stop" })),
      message(
        "u2",
        user([
          { type: "text", text: "A picture" },
          { type: "image", mediaType: "image/png", data: PICTURE, name: "dot.png" },
        ]),
      ),
      { type: "leaf", id: "l1", targetId: "a2" },
      message("u3", user("Another question")),
      { type: "compaction", id: "k1", summary: "They looked at a file.", firstKeptEntryId: "u3", tokensBefore: 900 },
      message("a3", assistant("Another answer")),
      { type: "label", id: "b1", targetId: "u3", label: "turning point" },
      { type: "session_info", id: "n1", name: "A talk" },
    ],
  });
}

/** A session of a user message and an answer with the given content. */
export async function fillWith(store: SessionStore, entries: readonly EntryDraft[], id = "talk"): Promise<void> {
  await store.create(createHeader({ id }), { entries });
}

/** Joins a stream of texts. */
export async function collect(pieces: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const piece of pieces) text += piece;
  return text;
}
