import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Entry, EntryDraft } from "../../src/session/log/entry.ts";
import type { SessionErrorCode } from "../../src/session/errors.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { type Message, textOf } from "../../src/session/message.ts";
import type { SessionState } from "../../src/session/state/state.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { backends } from "../store-backends.ts";

/** Runs tests on each kind of store, each test on a new store. */
export function onEveryStore(
  what: string,
  tests: Readonly<Record<string, (store: SessionStore) => Promise<void>>>,
): void {
  for (const backend of backends) {
    describe(`${what} on the ${backend.name} store`, () => {
      for (const [name, run] of Object.entries(tests)) {
        test(name, async () => {
          const directory = await mkdtemp(join(tmpdir(), "skein-branches-"));
          const store = await backend.open(directory);
          try {
            await run(store);
          } finally {
            await store.close();
            await rm(directory, { recursive: true, force: true });
          }
        });
      }
    });
  }
}

/** A session with user messages whose ids are their texts. */
export async function sessionOf(store: SessionStore, id: string, ...turns: readonly string[]): Promise<string> {
  await store.create(createHeader({ id, userId: "ann", metadata: { plan: "free" } }));
  await say(store, id, ...turns);
  return id;
}

export async function say(store: SessionStore, id: string, ...turns: readonly string[]): Promise<void> {
  await store.append(
    id,
    turns.map((turn): EntryDraft => ({ type: "message", id: turn, message: { role: "user", content: turn } })),
  );
}

/** An answer with a number of tokens, and as many cents. */
export function spending(id: string, tokens: number): EntryDraft {
  const usage = { inputTokens: 0, outputTokens: tokens, totalTokens: tokens };
  return { type: "message", id, message: { role: "assistant", content: id, usage, cost: tokens / 100 } };
}

export function message(id: string, said: Message): EntryDraft {
  return { type: "message", id, message: said };
}

export function set(
  id: string,
  variables: Readonly<Record<string, string | number>>,
  unset: string[] = [],
): EntryDraft {
  return { type: "variables", id, set: variables, unset };
}

export async function entriesOf(store: SessionStore, id: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read(id)) entries.push(entry);
  return entries;
}

export function textsOf({ turns }: Pick<SessionState, "turns">): string[] {
  return turns.map(({ content }) => textOf(content));
}

/** Checks that a call is refused with the code, and changes no session and no checkpoint. */
export async function refuses(
  store: SessionStore,
  call: () => Promise<unknown>,
  code: SessionErrorCode,
): Promise<void> {
  const before = await contentsOf(store);
  await expect(call()).rejects.toMatchObject({ code });
  expect(await contentsOf(store)).toEqual(before);
}

export async function contentsOf(store: SessionStore): Promise<unknown> {
  const contents: unknown[] = [];
  for (const head of (await store.list({ limit: 1000 })).items) {
    const { id } = head.header;
    contents.push([head, await entriesOf(store, id), await store.listCheckpoints(id)]);
  }
  return contents;
}
