import { join } from "node:path";
import { existsSync } from "node:fs";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { checkStore } from "../../src/stores/doctor/check-store.ts";
import { digestOf } from "../../src/stores/doctor/log-digest.ts";
import { openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { contentsOf, fillStore, makeDirectory, say } from "../moving/sample-store.ts";

const KILLS = 3;

test.for(["jsonl", "sqlite"] as const)(
  "a copy to %s that is killed again and again is complete in the end, and right at every moment",
  async (kind) => {
    const directory = await makeDirectory();
    const path = join(directory, "from.db");
    const place = join(directory, "to");
    await using from = await openSqliteStore({ path });
    await fillStore(from);
    for (let i = 0; i < 2; i++) {
      const entries = Array.from({ length: 1200 }, (_, n) => say(`${i}-${n}`));
      await from.create(createHeader({ id: `long${i}` }), { entries });
      await from.fork(`long${i}`, createHeader({ id: `fork${i}` }), { at: `${i}-700` });
      await from.append(`fork${i}`, [say(`own${i}`)]);
    }
    let kills = 0;
    // Each attempt is killed a little later; a part is 500 entries, so the kill is mostly in the middle of a session.
    for (let parts = 1; parts <= KILLS; parts++) {
      if (await copyAndKill([path, kind, place], 2 * parts)) kills += 1;
      await using to = await openTarget(kind, place);
      await expectBeginnings(from, to);
    }
    expect(kills).toBeGreaterThanOrEqual(2);
    expect(await copyAndKill([path, kind, place], Number.POSITIVE_INFINITY)).toBe(false);
    await using to = await openTarget(kind, place);
    expect(await contentsOf(to)).toEqual(await contentsOf(from));
    expect((await checkStore(to)).findings).toEqual([]);
  },
);

/** Every existing session is a prefix of the source's. */
async function expectBeginnings(from: SessionStore, to: SessionStore): Promise<void> {
  const { items, damaged } = await to.list();
  expect(damaged).toEqual([]);
  for (const { header, version } of items) {
    expect(await digestOf(to, header.id)).toEqual(await digestOf(from, header.id, { version }));
  }
}

function openTarget(kind: "jsonl" | "sqlite", place: string): Promise<SessionStore> {
  return kind === "jsonl" ? openJsonlStore({ directory: place }) : openSqliteStore({ path: place });
}

/** Runs the copy until it has reported progress this many times, and kills it; false if it finished before. */
async function copyAndKill(args: readonly string[], parts: number): Promise<boolean> {
  const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
  if (!existsSync(built)) throw new Error(`${built} is missing; run "npm run build" first, as "npm test" does.`);
  const program = fileURLToPath(new URL("../moving/programs/copy-store.mjs", import.meta.url));
  const child = spawn(process.execPath, ["--no-warnings", program, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (data: Buffer) => {
    text += data.toString();
    // After a random delay, so that the kill is not always between two parts.
    if (text.split("\n").length > parts) setTimeout(() => child.kill("SIGKILL"), Math.random() * 15);
  });
  await once(child, "close");
  const finished = text.includes("done");
  if (parts === Number.POSITIVE_INFINITY) expect(text).toMatch(/done 0\n$/);
  return !finished;
}
