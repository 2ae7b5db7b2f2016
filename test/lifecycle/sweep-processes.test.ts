import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { entriesOf } from "./lifecycle-case.ts";

const SESSIONS = 60;
const aWeekAgo = new Date(Date.now() - 7 * 86_400_000);

/** The stores that several processes can share, with a clock set back by a week. */
const shared: Readonly<Record<string, (directory: string) => Promise<SessionStore>>> = {
  jsonl: (directory) => openJsonlStore({ directory, clock: () => aWeekAgo }),
  sqlite: (directory) => openSqliteStore({ path: join(directory, "skein.db"), clock: () => aWeekAgo }),
};

function program(name: string): string {
  const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
  if (!existsSync(built)) throw new Error(`${built} is missing; run "npm run build" first, as "npm test" does.`);
  return fileURLToPath(new URL(`./programs/${name}`, import.meta.url));
}

/** Starts a program; `said` waits for its output. */
function start(name: string, args: readonly string[]) {
  const child = spawn(process.execPath, ["--no-warnings", program(name), ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  child.stdout.on("data", (data: Buffer) => {
    text += data.toString();
  });
  const said = async (line: string): Promise<void> => {
    while (!text.includes(line)) await once(child.stdout, "data");
  };
  const ended = once(child, "close").then(([code]) => ({ code: code as number, lines: text.trim().split("\n") }));
  return { child, said, ended };
}

test.for(Object.entries(shared))(
  "processes that sweep one %s store at the same time expire each session exactly once",
  async ([kind, open]) => {
    const directory = await mkdtemp(join(tmpdir(), "skein-sweep-"));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const store = await open(directory);
    onTestFinished(() => store.close());
    const ids = Array.from({ length: SESSIONS }, (_, i) => `s${i}`);
    for (const id of ids) await store.create(createHeader({ id, userId: "ann", createdAt: aWeekAgo.toISOString() }));
    const sweepers = [1, 2, 3].map(() => start("sweep.mjs", [kind, directory]));
    await Promise.all(sweepers.map(({ said }) => said("ready")));
    for (const { child } of sweepers) child.stdin.end("go\n");
    const results = await Promise.all(sweepers.map(({ ended }) => ended));
    expect(results.map(({ code }) => code)).toEqual([0, 0, 0]);
    const lines = results.flatMap((result) => result.lines);
    const named = (word: string) =>
      lines.flatMap((line) => (line.startsWith(`${word} `) ? [line.slice(word.length + 1)] : [])).sort();
    expect(named("expired")).toEqual(ids.toSorted());
    expect(named("consolidated")).toEqual(ids.toSorted());
    expect(named("counted").reduce((sum, count) => sum + Number(count), 0)).toBe(SESSIONS);
    for (const id of ids) expect(await entriesOf(store, id)).toMatchObject([{ type: "status", status: "expired" }]);
  },
);

test("the timer of a manager does not keep the process alive", async () => {
  const { child, ended } = start("start-sweeping.mjs", []);
  child.stdin.end();
  expect(await ended).toEqual({ code: 0, lines: ["started"] });
});
