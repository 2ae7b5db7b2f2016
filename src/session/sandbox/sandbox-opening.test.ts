import { describe, expect, test } from "vitest";
import { CountedBackend } from "../../../test/counted-sandbox.ts";
import { registerSandboxBackend } from "./sandbox-backends.ts";
import { SandboxOpening, acquireSandbox } from "./sandbox-opening.ts";
import { Session } from "../value/session.ts";
import { Transcript } from "../value/transcript.ts";

describe("a recorded handle", () => {
  const recorded = (backend: CountedBackend, handleId: string, spec = {}) =>
    Session.of(Transcript.empty, { sandbox: { backend: backend.name, spec, handleId } });

  test("is attached to", async () => {
    const backend = new CountedBackend();
    const left = await backend.open({});
    await left.writeFile("notes", "kept");
    const session = recorded(backend, left.id);
    expect(session.sandboxPlacement).toEqual({ backend: backend.name, spec: {}, handleId: left.id });
    expect(new TextDecoder().decode(await (await session.requireSandbox()).readFile("notes"))).toBe("kept");
    expect([backend.attaches, backend.opens]).toEqual([[left.id], 1]);
    await session.closeSandbox();
  });

  test("that no longer exists, or of a backend without attach, opens a new sandbox", async () => {
    const backend = new CountedBackend();
    const session = recorded(backend, "gone", { workingDir: "/project" });
    expect((await session.requireSandbox()).id).toBe(`${backend.name}-1`);
    expect(backend.specs).toEqual([{ workingDir: "/project" }]);
    await session.closeSandbox();
    const plain = new CountedBackend();
    registerSandboxBackend(plain.name, () => ({ open: (spec) => plain.open(spec) }));
    await using other = recorded(plain, "gone");
    expect((await other.requireSandbox()).id).toBe(`${plain.name}-1`);
  });

  test("that no longer exists is looked up again each time, and stays recorded when the same sandbox is bound again", async () => {
    const backend = new CountedBackend();
    const session = recorded(backend, "gone");
    const first = await session.requireSandbox();
    session.bindSandbox(first);
    await session.closeSandbox();
    expect(session.sandboxPlacement?.handleId).toBe("gone");
    expect(await session.requireSandbox()).not.toBe(first);
    await session.closeSandbox();
    expect([backend.attaches, backend.opens, backend.closes]).toEqual([["gone", "gone"], 2, 2]);
  });

  test("that fails for another reason is an error, and opens no new sandbox", async () => {
    const backend = new CountedBackend();
    backend.failAt("attach", new Error("no route to the host"));
    const session = recorded(backend, "far-away");
    await expect(session.requireSandbox()).rejects.toThrow(/could not be opened: no route to the host\./);
    expect(backend.opens).toBe(0);
  });

  test("has one handle in a process, for all callers at any time", async () => {
    const backend = new CountedBackend();
    const left = await backend.open({});
    const slow = backend.waitAt("attach");
    const session = recorded(backend, left.id);
    const fork = session.fork();
    const both = Promise.all([session.requireSandbox(), fork.requireSandbox()]);
    slow.open();
    const [one, two] = await both;
    const late = recorded(backend, left.id);
    expect(await late.requireSandbox()).toBe(one);
    expect(two).toBe(one);
    expect(backend.attaches).toEqual([left.id]);
    await Promise.all([session.closeSandbox(), fork.closeSandbox()]);
    expect(one.closed).toBe(false);
    await late.closeSandbox();
    expect(one.closed).toBe(true);
  });

  test("of an unregistered backend can be read, and is refused on opening", async () => {
    const placement = { backend: "elsewhere", spec: null, handleId: null };
    const session = Session.of(Transcript.empty, { sandbox: placement });
    expect(session.sandboxPlacement).toEqual({ ...placement, spec: {} });
    await expect(session.requireSandbox()).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});

describe("a sandbox that is being opened", () => {
  const begun = (backend: CountedBackend) =>
    new SandboxOpening(
      backend.open({}).then((sandbox) => {
        acquireSandbox(sandbox);
        return sandbox;
      }),
    );

  test("can be acquired and released also after it is open", async () => {
    const backend = new CountedBackend();
    const opening = begun(backend);
    opening.acquire();
    await opening.opened;
    opening.acquire();
    await opening.release();
    await opening.release();
    expect(backend.closes).toBe(0);
    await opening.release();
    expect(backend.closes).toBe(1);
    expect(() => opening.acquire()).toThrow(expect.objectContaining({ kind: "sandbox_closed" }));
  });

  test("is kept if it is acquired after the last release, but before it is open", async () => {
    const backend = new CountedBackend();
    const slow = backend.waitAt("open");
    const opening = begun(backend);
    const left = opening.release();
    opening.acquire();
    slow.open();
    await left;
    expect([backend.opens, backend.closes]).toEqual([1, 0]);
    await opening.release();
    expect(backend.closes).toBe(1);
  });

  test("that never opens lets all waiters release it without an error", async () => {
    const backend = new CountedBackend();
    backend.failAt("open", new Error("no space"));
    const opening = begun(backend);
    await expect(opening.release()).resolves.toBeUndefined();
    await expect(opening.opened).rejects.toThrow("no space");
  });
});
