import { mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sessionToRow } from "../session/lineage/lineage-export.ts";
import { trackLineage } from "../session/lineage/lineage-scope.ts";
import { createUserSession } from "../session/value/session.ts";
import { SessionRegistry, sessionRegistry } from "../session/value/session-registry.ts";
import { exportJournalJsonl, exportJsonl } from "./export-lineage.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-lineage-"));
});
afterEach(() => rm(directory, { recursive: true }));

async function idsIn(path: string): Promise<string[]> {
  const text = await readFile(path, "utf8");
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line).id);
}

describe("exportJsonl", () => {
  test("writes one line for each session, replaces an existing file, and leaves no other file", async () => {
    const [a, b] = [createUserSession("a"), createUserSession("b")];
    const path = join(directory, "deep", "lineage.jsonl");
    await expect(exportJsonl([a, b], path)).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringContaining("check the path, or make it first"),
    });
    await mkdir(join(directory, "deep"));
    await exportJsonl([a, b], path);
    await exportJsonl([b, a.fork()], path);
    const [line] = (await readFile(path, "utf8")).split("\n");
    expect(JSON.parse(line as string)).toEqual(sessionToRow(b));
    expect(await idsIn(path)).toHaveLength(2);
    expect(await readdir(join(directory, "deep"))).toEqual(["lineage.jsonl"]);
  });

  test("replaces the file atomically, so that open readers still read the whole old one", async () => {
    const path = join(directory, "lineage.jsonl");
    await writeFile(path, "before");
    const reader = await open(path);
    await exportJsonl([createUserSession("a")], path);
    expect(await reader.readFile("utf8")).toBe("before");
    await reader.close();
  });

  test("does not change the file if a session cannot be written", async () => {
    const path = join(directory, "lineage.jsonl");
    await writeFile(path, "before");
    const broken = { id: "x", lineage: { parents: [], operator: 5n, kind: "unknown", extras: [] }, transcript: [] };
    await expect(exportJsonl([broken as never], path)).rejects.toThrow(TypeError);
    expect(await readFile(path, "utf8")).toBe("before");
    expect(await readdir(directory)).toEqual(["lineage.jsonl"]);
  });

  test("rejects if the path cannot be written to, and leaves no file", async () => {
    const path = join(directory, "taken");
    await mkdir(join(path, "inside"), { recursive: true });
    await expect(exportJsonl([], path)).rejects.toMatchObject({ code: "STORE_FAILED", cause: { code: "EISDIR" } });
    expect(await readdir(directory)).toEqual(["taken"]);
  });
});

describe("exportJournalJsonl", () => {
  test("writes the sessions of the registry in the order of their creation, each once", async () => {
    const registry = new SessionRegistry();
    const path = join(directory, "journal.jsonl");
    const { made, journal } = trackLineage((visited) => {
      const first = createUserSession("first");
      const sessions = [first, first.fork(), first.detach()] as const;
      return { made: sessions, journal: { visitOrder: [...visited.visitOrder, first.id] } };
    });
    for (const index of [2, 0] as const) registry.register(made[index]);
    registry.finish(made[0].id);
    await exportJournalJsonl(journal, path, { registry });
    expect(await idsIn(path)).toEqual([made[0].id, made[2].id]);
  });

  test("with skipUnknown: false, refuses an unknown id and writes nothing", async () => {
    const session = createUserSession("x");
    const path = join(directory, "journal.jsonl");
    const journal = { visitOrder: [session.id] };
    await expect(exportJournalJsonl(journal, path, { skipUnknown: false })).rejects.toMatchObject({
      code: "LINEAGE",
      sessionId: session.id,
      message: expect.stringContaining(session.id),
    });
    expect(await readdir(directory)).toEqual([]);
    sessionRegistry.register(session);
    await exportJournalJsonl(journal, path, { skipUnknown: false });
    sessionRegistry.finish(session.id);
    expect(await idsIn(path)).toEqual([session.id]);
  });
});
