import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import Database from "libsql";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionHead } from "../../src/session/log/fold.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { checkpointAt, say } from "../moving/sample-store.ts";

/**
 * Creates the session `a` of user ann with 100 turns, a moved leaf and a checkpoint, its fork `f`, and the session `beta` of
 * user bob with a requested run.
 */
export async function fill(store: SessionStore): Promise<void> {
  await store.create(createHeader({ id: "a", userId: "ann", cwd: "/one" }));
  for (let i = 0; i < 100; i += 10) {
    await store.append(
      "a",
      Array.from({ length: 10 }, (_, n) => say(`m${i + n}`, `turn ${i + n} about llamas`)),
    );
  }
  await store.append("a", [{ id: "back", type: "leaf", targetId: "m50" }, say("last", "the last word")]);
  await store.append("a", [{ id: "label", type: "label", targetId: "m3", label: "here" }, say("end", "at the end")]);
  await store.saveCheckpoint(checkpointAt((await store.head("a")) as SessionHead, "check"));
  await store.fork("a", createHeader({ id: "f", userId: "ann" }), { at: "m20" });
  await store.append("f", [say("f1", "a fork in the road")]);
  const at = { notBefore: "2040-01-01T00:00:00.000Z" };
  const request = { type: "run_request", id: "run:r", runId: "r", agent: "helper", input: "hi", ...at } as const;
  await store.create(createHeader({ id: "beta", userId: "bob" }), { entries: [say("b1", "zebra crossing"), request] });
  await store.search("llamas");
}

/** Changes a database directly, without the store. */
export function tamper(path: string, ...statements: readonly string[]): void {
  const database = new Database(path);
  try {
    for (const statement of statements) {
      const { changes } = database.prepare(statement).run();
      if (changes === 0) throw new Error(`"${statement}" changed nothing.`);
    }
  } finally {
    database.close();
  }
}

/** Changes the file of a session directly, without the store. */
export async function tamperFile(directory: string, id: string, change: (text: string) => string): Promise<void> {
  const name = (await readdir(directory)).find((each) => each.endsWith(`_${id}.jsonl`)) as string;
  const path = join(directory, name);
  const text = await readFile(path, "utf8");
  const changed = change(text);
  if (changed === text) throw new Error("The change changed nothing.");
  await writeFile(path, changed);
}
