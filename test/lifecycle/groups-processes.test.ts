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
import { readTurns } from "../../src/lifecycle/read-state.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { linesOf, phasesOf } from "./groups-sample.ts";

/** Longer than the lease of a dead process. */
const LEASE_SECONDS = 60;

/** The stores that several processes can share. */
const shared: Readonly<Record<string, (directory: string) => Promise<SessionStore>>> = {
  jsonl: (directory) => openJsonlStore({ directory }),
  sqlite: (directory) => openSqliteStore({ path: join(directory, "skein.db") }),
};

/** Starts a process with a group; it is ended after the test. */
function startGroup(args: readonly string[]) {
  const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
  if (!existsSync(built)) throw new Error(`${built} is missing; run "npm run build" first, as "npm test" does.`);
  const program = fileURLToPath(new URL("./programs/group.mjs", import.meta.url));
  const child = spawn(process.execPath, ["--no-warnings", program, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  child.stdout.on("data", (data: Buffer) => {
    text += data.toString();
  });
  const lines = (): string[] => text.split("\n").slice(0, -1);
  const ended = once(child, "close").then(() => lines());
  return { child, lines, ended };
}

test.for(Object.entries(shared))(
  "a group whose process is killed in the middle of a round continues in another one, on a %s store",
  async ([kind, open]) => {
    const directory = await mkdtemp(join(tmpdir(), "skein-groups-"));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const store = await open(directory);
    onTestFinished(() => store.close());
    await store.create(createHeader({ id: "s", userId: "ann" }));

    const first = startGroup([kind, directory, "run", "0", "bob 2"]);
    await expect.poll(first.lines, { interval: 10 }).toEqual(["ada", "bob"]);
    first.child.kill("SIGKILL");
    await first.ended;
    const second = startGroup([kind, directory, "resume", String(LEASE_SECONDS), "ada 3"]);
    await expect.poll(second.lines, { interval: 10 }).toEqual(["bob", "cid", "ada"]);
    second.child.kill("SIGKILL");
    await second.ended;
    const third = startGroup([kind, directory, "resume", String(2 * LEASE_SECONDS)]);
    expect(await third.ended).toEqual(["ada", "bob", "cid", "done"]);

    const head = await store.head("s");
    expect(linesOf(await readTurns(store, "s", head?.leafId ?? null))).toEqual([
      "user: Go.",
      "ada: ada after 1",
      "bob: bob after 2",
      "cid: cid after 3",
      "ada: ada after 4",
      "bob: bob after 5",
      "cid: cid after 6",
    ]);
    expect(await phasesOf(store, "s")).toEqual(["started", "failed", "started", "failed", "started", "finished"]);
    expect(head?.openRuns).toEqual([]);
    await checkHeadIsFold(store, "s");
  },
);
