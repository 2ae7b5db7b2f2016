import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { smallDiskMissing } from "../../scripts/small-disk.mjs";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { checkStore } from "../../src/stores/doctor/check-store.ts";
import { skipBecause } from "../skip.ts";
import { entriesOf, refusalOf, until } from "./store-support.ts";

const APPENDS_MAX = 2000;

/** The results of appends to the session `a` when the disk was full. */
export interface FullDisk {
  readonly acknowledged: readonly string[];
  readonly refused: readonly EntryDraft[];
  readonly refusal: { readonly code: string; readonly message: string };
}

/** A test that is skipped, with the reason, if no server can be given a small disk, or for its own reason. */
export function diskTest(name: string, run: () => Promise<void>, reason: string | null = null): void {
  test(name, async (context) => {
    const missing = reason ?? smallDiskMissing();
    if (missing !== null) skipBecause(context, missing);
    await run();
  });
}

/** Two messages for one append, with text that cannot be compressed. */
export function largeDrafts(name: string): readonly EntryDraft[] {
  return ["a", "b"].map((part) => ({
    id: `${name}-${part}`,
    type: "message",
    message: { role: "user", content: randomBytes(6000).toString("base64") },
  }));
}

/** Appends to the session `a` until an append is refused. */
export async function appendUntilRefused(store: SessionStore): Promise<FullDisk> {
  const acknowledged: string[] = [];
  for (let i = 0; i < APPENDS_MAX; i++) {
    const drafts = largeDrafts(`e${i}`);
    const refusal = await refusalOf(store.append("a", drafts));
    if (refusal.code !== "done") return { acknowledged, refused: drafts, refusal };
    acknowledged.push(...drafts.map(({ id }) => id as string));
  }
  throw new Error("the disk did not become full");
}

/** Checks that the session `a` has these entries and no others, and that reading, listing and searching return them. */
export async function checkHolds(store: SessionStore, ids: readonly string[]): Promise<void> {
  expect((await entriesOf(store, "a")).map(({ id }) => id)).toEqual(ids);
  expect((await store.head("a"))?.version).toBe(ids.length);
  expect((await store.list()).items.map(({ version }) => version)).toEqual([ids.length]);
  expect(await store.count()).toBe(1);
  expect(await checkStore(store)).toMatchObject({ sessions: 1, entries: ids.length, findings: [] });
}

/** Retries refused appends with the same ids until they are accepted. */
export async function appendAgain(store: SessionStore, drafts: readonly EntryDraft[]): Promise<void> {
  await until(async () => (await refusalOf(store.append("a", drafts))).code === "done", "an append");
}
