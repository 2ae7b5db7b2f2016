import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { CountedBackend, CountedSandbox } from "../../../test/counted-sandbox.ts";
import { Session } from "./session.ts";
import { Transcript } from "./transcript.ts";

const aimed = (backend: CountedBackend, spec = {}) => Session.fromUserMessage("Go").to(backend.name, spec);

describe("forkIsolated", () => {
  const read = async (session: Session, path: string) =>
    new TextDecoder().decode(await (await session.requireSandbox()).readFile(path));

  test("copies the files of an open sandbox into a private one, and leaves no snapshot behind", async () => {
    const backend = new CountedBackend();
    await using source = aimed(backend, { workingDir: "/project", env: { LANG: "C" } });
    await (await source.requireSandbox()).writeFile("notes", "one");
    await using fork = await source.forkIsolated();
    await (await fork.requireSandbox()).writeFile("notes", "two");
    expect([await read(source, "notes"), await read(fork, "notes")]).toEqual(["one", "two"]);
    expect(backend.specs[1]).toEqual({ env: { LANG: "C" } });
    expect(backend.snapshots.size).toBe(0);
    expect(fork.lineage).toEqual({ parents: [source.id], operator: "forkIsolated", kind: "op_fork", extras: [] });
  });

  test("opens a given directory, or a recorded handle, to copy it", async () => {
    const backend = new CountedBackend();
    const left = await backend.open({});
    await left.writeFile("notes", "kept");
    await using source = Session.of(Transcript.empty, {
      sandbox: { backend: backend.name, spec: {}, handleId: left.id },
    });
    await using fork = await source.forkIsolated();
    expect(await read(fork, "notes")).toBe("kept");
    expect((await fork.requireSandbox()).id).not.toBe(left.id);
    await using given = aimed(backend, { workingDir: "/project" });
    await using own = await given.forkIsolated();
    expect([given.sandbox, own.sandbox]).toEqual([expect.any(CountedSandbox), expect.any(CountedSandbox)]);
    expect(own.sandbox).not.toBe(given.sandbox);
  });

  test("of a target without files, or without a place, opens no sandbox", async () => {
    const backend = new CountedBackend();
    const source = aimed(backend, { timeoutMs: 5 });
    const forking = source.forkIsolated();
    // The source may open its own at the same time; the fork must not end up in it.
    const sandbox = await source.requireSandbox();
    await using fork = await forking;
    expect(fork.sandboxPlacement).toEqual({ backend: backend.name, spec: { timeoutMs: 5 }, handleId: null });
    expect(await fork.requireSandbox()).not.toBe(sandbox);
    await source.closeSandbox();
    expect((await Session.fromUserMessage("Go").forkIsolated()).sandboxPlacement).toBeNull();
  });

  test("of a sandbox that cannot be copied is refused", async () => {
    const backend = new CountedBackend({ snapshot: false });
    await using source = aimed(backend);
    await source.requireSandbox();
    await expect(source.forkIsolated()).rejects.toMatchObject({ code: "SANDBOX_FAILED", kind: "unsupported" });
    expect(backend.opens).toBe(1);
  });

  test.for(["open", "restore", "delete-snapshot"] as const)(
    "that fails at %s closes the copy and keeps the source",
    async (step) => {
      const backend = new CountedBackend();
      await using source = aimed(backend);
      const sandbox = await source.requireSandbox();
      backend.failAt(step, new Error("disk full"));
      await expect(source.forkIsolated()).rejects.toThrow(/disk full/);
      expect([...backend.live.values()]).toEqual([sandbox]);
      if (step !== "delete-snapshot") expect(backend.snapshots.size).toBe(0);
    },
  );

  test("copies a sandbox that its source releases in the meantime", async () => {
    const backend = new CountedBackend();
    const source = aimed(backend);
    await (await source.requireSandbox()).writeFile("notes", "one");
    const slow = backend.waitAt("restore");
    const forking = source.forkIsolated();
    await turn();
    const closing = source.closeSandbox();
    slow.open();
    await using fork = await forking;
    await closing;
    expect(await read(fork, "notes")).toBe("one");
    await source.closeSandbox();
    expect(backend.live.size).toBe(1);
  });
});
