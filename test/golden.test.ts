import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Entry } from "../src/session/log/entry.ts";
import { buildContext } from "../src/session/context/context.ts";
import { SessionTree } from "../src/index.ts";

const golden = (name: string) => fileURLToPath(new URL(`golden/${name}`, import.meta.url));
const asJson = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-golden-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

// Every released format stays readable forever: these files are never changed, and new ones are added.
describe.for(["session-v1", "session-v2"])("the file %s", (name) => {
  async function openCopy(): Promise<SessionTree> {
    const path = join(directory, `${name}.jsonl`);
    await copyFile(golden(`${name}.jsonl`), path);
    return SessionTree.open(path);
  }

  test("is read with the same entries as it was written", async () => {
    await using tree = await openCopy();
    const [, ...lines] = (await readFile(golden(`${name}.jsonl`), "utf8")).trimEnd().split("\n");
    const written = lines
      .flatMap((line) => JSON.parse(line) as Entry | Entry[])
      .map((entry, seq) => ({ ...entry, seq }));
    expect(await tree.entries()).toEqual(written);
  });

  test("has the same head and context as before", async () => {
    await using tree = await openCopy();
    const { updatedAt: _storesClock, ...rest } = tree.head;
    // The fold of an older file knows where its requested runs start; the head of its version did not.
    const openRuns = rest.openRuns.map(({ first: _first, ...run }) => run);
    // So it is with the setups of its agents, which no file before format 3 has.
    const { setups, ...settings } = await tree.store.settings(tree.id, rest.path);
    expect(setups).toEqual({});
    const head = { ...rest, openRuns, path: { ...rest.path, settings } };
    await expect(asJson(head)).toMatchFileSnapshot(golden(`${name}.head.json`));
    const context = await tree.buildContext();
    await expect(asJson(context)).toMatchFileSnapshot(golden(`${name}.context.json`));
    expect(buildContext(await tree.entries())).toEqual(context);
  });

  test("accepts appends", async () => {
    const tree = await openCopy();
    await tree.appendMessage({ role: "user", content: "Still here?" });
    await tree.close();
    await using again = await SessionTree.open(tree.path as string);
    expect((await again.getLeaf())?.parentId).toBe("future-2");
  });
});
