import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import "../../src/index.ts";
import type { Model } from "../../src/agent/model/model.ts";
import type { RunEvent } from "../../src/agent/run-event.ts";
import type { ChatOutput } from "../../src/cli/chat/chat-output.ts";
import { type ChatInit, ChatSession } from "../../src/cli/chat/chat-session.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { SessionError } from "../../src/session/errors.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";

/** A directory that is deleted after the test. */
export async function makeWorkspace(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "skein-chat-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** A chat with a model, by default in a new store and directory. */
export async function makeChat(
  model: Model,
  extras: Partial<ChatInit> & { readonly store?: SessionStore } = {},
): Promise<ChatSession> {
  const { store = await openMemoryStore(), ...init } = extras;
  const chat = new ChatSession({
    manager: new SessionManager({ store, config: { sessionTtl: 0 } }),
    models: (name) => {
      if (name.startsWith("locked/")) throw new SessionError("KEY_MISSING", "There is no key for locked.");
      return name.startsWith("other/") ? { ...model, provider: "other", id: name.slice(6) } : model;
    },
    workspace: await makeWorkspace(),
    ask: "writes",
    questions: "asked",
    ...init,
  });
  onTestFinished(() => chat[Symbol.asyncDispose]());
  return chat;
}

/** The outputs of a chat for some lines; `decide` answers its questions. */
export async function tell(
  chat: ChatSession,
  lines: string | readonly string[],
  onOutput: (output: ChatOutput) => void | Promise<void> = () => {},
): Promise<ChatOutput[]> {
  const outputs: ChatOutput[] = [];
  for (const line of [lines].flat()) {
    for await (const output of chat.handleLine(line)) {
      outputs.push(output);
      await onOutput(output);
    }
  }
  return outputs;
}

/** The notices of a chat, and its problems with an exclamation mark before them. */
export function wordsOf(outputs: readonly ChatOutput[]): string[] {
  return outputs.flatMap((output) =>
    output.type === "notice" ? [output.text] : output.type === "problem" ? [`! ${output.text}`] : [],
  );
}

/** The run events in the outputs of a chat. */
export function eventsIn(outputs: readonly ChatOutput[]): RunEvent[] {
  return outputs.flatMap((output) => (output.type === "run-event" ? [output.event] : []));
}
