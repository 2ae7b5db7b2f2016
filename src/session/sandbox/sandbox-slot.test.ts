import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { CountedBackend, gate } from "../../../test/counted-sandbox.ts";
import type { SandboxPlacement } from "../log/header.ts";
import type { Sandbox } from "./sandbox.ts";
import { Session } from "../value/session.ts";

const aimed = (backend: CountedBackend, spec = {}) => Session.fromUserMessage("Go").to(backend.name, spec);

describe("a session's sandbox", () => {
  test("is opened on first use, once for all concurrent callers", async () => {
    const backend = new CountedBackend();
    const session = aimed(backend);
    expect([session.sandbox, session.sandboxBackend, backend.opens]).toEqual([null, backend.name, 0]);
    const asked = await Promise.all([session.requireSandbox(), session.requireSandbox(), session.requireSandbox()]);
    expect(new Set(asked)).toEqual(new Set([session.sandbox]));
    expect(await session.requireSandbox()).toBe(session.sandbox);
    expect(backend.opens).toBe(1);
    await session.closeSandbox();
    expect([backend.opens, backend.closes, session.sandbox]).toEqual([1, 1, null]);
  });

  test("is opened again after it was closed", async () => {
    const backend = new CountedBackend();
    await using session = aimed(backend);
    const first = await session.requireSandbox();
    await session.closeSandbox();
    expect(await session.requireSandbox()).not.toBe(first);
    expect([backend.opens, backend.closes]).toEqual([2, 1]);
  });

  test("without a target is an error that says what to call", async () => {
    const session = Session.fromUserMessage("Go");
    await expect(session.requireSandbox()).rejects.toMatchObject({
      code: "NO_SANDBOX",
      message: expect.stringMatching(/has no sandbox; call session\.to\("local"\) or session\.bindSandbox\(sandbox\)/),
    });
    await expect(session.hold()).rejects.toMatchObject({ code: "NO_SANDBOX" });
  });

  test("is refused for an unregistered backend, and the place does not change", async () => {
    const backend = new CountedBackend();
    await using session = aimed(backend);
    const sandbox = await session.requireSandbox();
    expect(() => session.to("nowhere")).toThrow(/There is no sandbox backend "nowhere"; registered are: .*counted-1/);
    expect(() => session.to(backend.name, 5 as never)).toThrow(/spec must be an object/);
    expect(() => session.to(backend.name, { env: { AT: new Date() } } as never)).toThrow(/spec\.env\.AT is a Date/);
    expect(session.sandbox).toBe(sandbox);
    expect(sandbox.closed).toBe(false);
  });

  test("accepts a text as the working directory, and copies a spec", async () => {
    const backend = new CountedBackend();
    await using text = Session.fromUserMessage("Go").to(backend.name, "/project");
    await text.requireSandbox();
    const env = { LANG: "C" };
    const spec = { env };
    await using given = aimed(backend, spec);
    env.LANG = "changed";
    await given.requireSandbox();
    expect(backend.specs).toEqual([{ workingDir: "/project" }, { env: { LANG: "C" } }]);
    const placement = given.sandboxPlacement as SandboxPlacement;
    expect(placement).toEqual({ backend: backend.name, spec: { env: { LANG: "C" } }, handleId: given.sandbox?.id });
    expect(Object.isFrozen((placement.spec as { env: object }).env)).toBe(true);
  });

  test("is released by to(), and the next one is opened after the old one is closed", async () => {
    const [one, two] = [new CountedBackend(), new CountedBackend()];
    await using session = aimed(one);
    await session.requireSandbox();
    const closing = one.waitAt("close");
    expect(session.to(two.name)).toBe(session);
    expect([session.sandbox, session.sandboxBackend]).toEqual([null, two.name]);
    const next = session.requireSandbox();
    await turn();
    expect(two.opens).toBe(0);
    closing.open();
    expect((await next).backend).toBe(two.name);
    expect(one.closes).toBe(1);
  });

  test("that could not be opened fails with the reason, and is tried again on the next use", async () => {
    const backend = new CountedBackend();
    const session = aimed(backend);
    backend.failAt("open", new Error("no space left."));
    await expect(Promise.all([session.requireSandbox(), session.requireSandbox()])).rejects.toMatchObject({
      code: "SANDBOX_FAILED",
      kind: "os_error",
      message: `The ${backend.name} sandbox could not be opened: no space left.`,
    });
    backend.before = async () => {};
    expect((await session.requireSandbox()).backend).toBe(backend.name);
    await session.closeSandbox();
  });

  test("is closed at the end of the scope that `await using` opens", async () => {
    const backend = new CountedBackend();
    {
      await using session = aimed(backend);
      await session.requireSandbox();
      expect(backend.live.size).toBe(1);
    }
    expect(backend.live.size).toBe(0);
  });
});

describe("bindSandbox", () => {
  test("acquires a reference and releases the previous one; the same object again changes nothing", async () => {
    const backend = new CountedBackend();
    const [first, second] = [await backend.open({}), await backend.open({})];
    const session = Session.fromUserMessage("Go").bindSandbox(first);
    expect(session.bindSandbox(first).sandbox).toBe(first);
    session.bindSandbox(second);
    expect(await session.requireSandbox()).toBe(second);
    expect([first.closed, second.closed]).toEqual([true, false]);
    await session.closeSandbox();
    expect([backend.opens, backend.closes]).toEqual([2, 2]);
  });

  test("refuses a closed or closing sandbox, and keeps the old one", async () => {
    const backend = new CountedBackend();
    const [kept, closed, closing] = [await backend.open({}), await backend.open({}), await backend.open({})];
    await closed.close();
    const session = Session.fromUserMessage("Go").bindSandbox(kept);
    expect(() => session.bindSandbox(closed)).toThrow(expect.objectContaining({ kind: "sandbox_closed" }));
    const slow = backend.waitAt("close");
    const leaving = Session.fromUserMessage("Other").bindSandbox(closing).closeSandbox();
    expect(closing.closed).toBe(false);
    expect(() => session.bindSandbox(closing)).toThrow(expect.objectContaining({ kind: "sandbox_closed" }));
    slow.open();
    await leaving;
    expect(session.sandbox).toBe(kept);
    expect(kept.closed).toBe(false);
    await session.closeSandbox();
  });

  test("to a sandbox that is then closed elsewhere fails on use, until the session gets a new target", async () => {
    const backend = new CountedBackend();
    const sandbox = await backend.open({});
    const session = Session.fromUserMessage("Go").bindSandbox(sandbox);
    await sandbox.close();
    await expect(session.requireSandbox()).rejects.toMatchObject({
      code: "SANDBOX_FAILED",
      kind: "sandbox_closed",
      message: "session sandbox is closed",
    });
    session.to(backend.name);
    expect((await session.requireSandbox()).closed).toBe(false);
    await session.closeSandbox();
  });

  test("releases a sandbox that is being opened", async () => {
    const backend = new CountedBackend();
    const bound = await backend.open({});
    const slow = backend.waitAt("open");
    const session = aimed(backend);
    const asked = session.requireSandbox();
    session.bindSandbox(bound);
    slow.open();
    await expect(asked).rejects.toMatchObject({ kind: "sandbox_closed" });
    expect(await session.requireSandbox()).toBe(bound);
    await session.closeSandbox();
    expect(backend.live.size).toBe(0);
  });
});

describe("references on a sandbox", () => {
  test("are counted across fork, detach, merge and derive; the last release closes it", async () => {
    const backend = new CountedBackend();
    const source = aimed(backend);
    const sandbox = await source.requireSandbox();
    const other = Session.fromUserMessage("Other");
    const fork = source.fork();
    const derived = Session.derive(source, source.transcript, {});
    const sharing = [source, fork, fork.fork(), source.detach(), source.merge(other), derived];
    for (const each of sharing) expect(each.sandbox).toBe(sandbox);
    expect(other.merge(source).sandbox).toBeNull();
    for (const each of sharing) {
      expect(sandbox.closed).toBe(false);
      await each.closeSandbox();
    }
    expect([sandbox.closed, backend.closes]).toEqual([true, 1]);
  });

  test("of a fork outlive its source, and closing twice releases one reference", async () => {
    const backend = new CountedBackend();
    const source = aimed(backend);
    const sandbox = await source.requireSandbox();
    const fork = source.fork();
    await source.closeSandbox();
    await source.closeSandbox();
    expect(await fork.requireSandbox()).toBe(sandbox);
    expect(sandbox.closed).toBe(false);
    await fork.closeSandbox();
    expect([sandbox.closed, backend.closes]).toEqual([true, 1]);
  });

  test("are not shared for a target that is not open: each opens its own", async () => {
    const backend = new CountedBackend();
    await using source = aimed(backend, { workingDir: "/shared" });
    await using fork = source.fork();
    expect(fork.sandboxPlacement).toEqual(source.sandboxPlacement);
    expect(await fork.requireSandbox()).not.toBe(await source.requireSandbox());
    expect(backend.specs).toEqual([{ workingDir: "/shared" }, { workingDir: "/shared" }]);
  });

  test("are not acquired on a closing sandbox: a fork made then opens its own", async () => {
    const backend = new CountedBackend();
    const source = aimed(backend);
    const sandbox = await source.requireSandbox();
    const slow = backend.waitAt("close");
    const closing = source.closeSandbox();
    const fork = source.fork();
    slow.open();
    expect(await fork.requireSandbox()).not.toBe(sandbox);
    await Promise.all([closing, fork.closeSandbox()]);
    expect(backend.live.size).toBe(0);
  });

  test("are shared by a fork made while the sandbox opens, also if the source releases it before it is open", async () => {
    const backend = new CountedBackend();
    const slow = backend.waitAt("open");
    const source = aimed(backend);
    const asked = source.requireSandbox();
    const [fork, forgotten] = [source.fork(), source.fork()];
    const closing = source.closeSandbox();
    await forgotten.closeSandbox();
    slow.open();
    await expect(asked).rejects.toMatchObject({ kind: "sandbox_closed" });
    await closing;
    expect((await fork.requireSandbox()).closed).toBe(false);
    expect([backend.opens, backend.closes]).toEqual([1, 0]);
    await fork.closeSandbox();
    expect(backend.closes).toBe(1);
  });

  test("are kept by a fork that is made in the same synchronous step in which the sandbox opens and its source releases it", async () => {
    const backend = new CountedBackend();
    const source = aimed(backend);
    const asked = source.requireSandbox();
    const fork = source.fork();
    const closing = asked.then(() => source.closeSandbox());
    expect((await fork.requireSandbox()).closed).toBe(false);
    await closing;
    expect(backend.live.size).toBe(1);
    await fork.closeSandbox();
    expect(backend.live.size).toBe(0);
  });

  test("that are all released when a slow sandbox opens close it, and closeSandbox waits for that", async () => {
    const backend = new CountedBackend();
    const slow = backend.waitAt("open", "close");
    const session = aimed(backend);
    const asked = session.requireSandbox();
    const closing = session.closeSandbox();
    slow.open();
    await closing;
    expect([backend.opens, backend.closes]).toEqual([1, 1]);
    await expect(asked).rejects.toThrow("The session's sandbox was closed while it was being opened.");
  });

  test("are not acquired by a caller who waited for an old sandbox to close while the session was closed", async () => {
    const [one, two] = [new CountedBackend(), new CountedBackend()];
    const session = aimed(one);
    await session.requireSandbox();
    const slow = one.waitAt("close");
    session.to(two.name);
    const asked = session.requireSandbox();
    const closing = session.closeSandbox();
    slow.open();
    await expect(asked).rejects.toMatchObject({ kind: "sandbox_closed" });
    await closing;
    expect([two.opens, one.live.size]).toEqual([0, 0]);
  });

  test("to a released sandbox that is slow to open do not delay a new place", async () => {
    const [stuck, quick] = [new CountedBackend(), new CountedBackend()];
    const slow = stuck.waitAt("open");
    const session = aimed(stuck);
    const asked = session.requireSandbox();
    session.to(quick.name);
    expect((await session.requireSandbox()).backend).toBe(quick.name);
    slow.open();
    await expect(asked).rejects.toMatchObject({ kind: "sandbox_closed" });
    await session.closeSandbox();
    expect([stuck.live.size, quick.live.size]).toEqual([0, 0]);
  });
});

describe("a release that fails", () => {
  test.for(["requireSandbox", "closeSandbox"] as const)("is reported once, by the next %s", async (method) => {
    const [broken, sound] = [new CountedBackend(), new CountedBackend()];
    const session = aimed(broken);
    await session.requireSandbox();
    broken.failAt("close", new Error("the daemon is gone"));
    session.to(sound.name);
    await turn();
    await expect(session[method]()).rejects.toMatchObject({
      code: "SANDBOX_FAILED",
      kind: "os_error",
      message: "A sandbox that the session released could not be closed: the daemon is gone.",
    });
    expect((await session.requireSandbox()).backend).toBe(sound.name);
    await session.closeSandbox();
  });

  test("is reported with all others of the same time, each as a cause", async () => {
    const [one, two] = [new CountedBackend(), new CountedBackend()];
    const session = aimed(one);
    await session.requireSandbox();
    one.failAt("close", new Error("first"));
    two.failAt("close", new Error("second"));
    session.bindSandbox(await two.open({}));
    session.to(one.name);
    const error: unknown = await session.closeSandbox().catch((reason: unknown) => reason);
    expect((error as { cause: AggregateError }).cause.errors).toMatchObject([
      { message: "first" },
      { message: "second" },
    ]);
    expect(await session.closeSandbox()).toBe(session);
  });

  test("of a sandbox that opened too late is reported by the closeSandbox that released it", async () => {
    const backend = new CountedBackend();
    const slow = gate();
    backend.before = async (step) => {
      if (step === "open") await slow.pass;
      else throw new Error("stuck");
    };
    const session = aimed(backend);
    const asked = session.requireSandbox();
    const closing = session.closeSandbox();
    slow.open();
    await expect(closing).rejects.toThrow(/stuck/);
    await expect(asked).rejects.toMatchObject({ kind: "sandbox_closed" });
  });
});

describe("hold", () => {
  test("opens the sandbox, counts nested holds, and closes it at the end of the outermost", async () => {
    const backend = new CountedBackend();
    const session = aimed(backend);
    {
      await using _outer = await session.hold();
      {
        await using _inner = await session.hold();
        expect([backend.opens, backend.live.size]).toEqual([1, 1]);
      }
      expect(session.sandbox?.closed).toBe(false);
    }
    expect([session.sandbox, backend.opens, backend.closes]).toEqual([null, 1, 1]);
  });

  test("is released once, even if it is disposed several times, and not before a hold that is still opening", async () => {
    const backend = new CountedBackend();
    const session = aimed(backend);
    const first = await session.hold();
    const opening = session.hold();
    await first[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();
    const second = await opening;
    expect(session.sandbox?.closed).toBe(false);
    await second[Symbol.asyncDispose]();
    expect(backend.live.size).toBe(0);
  });

  test("that fails after the others have ended leaves no sandbox open", async () => {
    const [broken, sound] = [new CountedBackend(), new CountedBackend()];
    const session = aimed(sound);
    const first = await session.hold();
    const slow = gate();
    broken.before = async (step) => {
      if (step !== "close") return;
      await slow.pass;
      throw new Error("stuck");
    };
    const handle = session.sandbox as Sandbox;
    session.bindSandbox(await broken.open({})).bindSandbox(await sound.open({}));
    expect(handle.closed).toBe(true);
    const failed = session.hold();
    await first[Symbol.asyncDispose]();
    slow.open();
    await expect(failed).rejects.toThrow(/stuck/);
    expect(session.sandbox).toBeNull();
    await session.closeSandbox();
    expect(sound.live.size).toBe(0);
  });
});
