import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { CountedBackend, type CountedSandbox } from "../../../test/counted-sandbox.ts";
import { SandboxError } from "./sandbox.ts";
import { Session } from "../value/session.ts";
import { Transcript } from "../value/transcript.ts";

const SESSIONS_MAX = 12;

/** Sessions that share sandboxes of one backend, whose steps the test completes. */
class World {
  readonly backend = new CountedBackend();
  readonly sessions: Session[] = [];
  readonly #waiting: (() => void)[] = [];
  readonly #answers: Promise<unknown>[] = [];
  readonly #holds: AsyncDisposable[] = [];
  readonly #unexpected: unknown[] = [];

  constructor() {
    this.backend.before = () => new Promise((resolve) => this.#waiting.push(resolve));
    for (let i = 0; i < 2; i++) this.sessions.push(Session.fromUserMessage("Go").to(this.backend.name));
  }

  /** Starts an operation on one session, without waiting for it. */
  begin(operation: Operation, which: number, other: number): void {
    const session = this.sessions[which % this.sessions.length] as Session;
    const second = this.sessions[other % this.sessions.length] as Session;
    if (operation === "require") this.#ask(this.#use(session));
    else if (operation === "close") this.#ask(session.closeSandbox());
    else if (operation === "to") session.to(this.backend.name);
    else if (operation === "bind") this.#bind(session, second);
    else if (operation === "hold") this.#ask(session.hold().then((hold) => this.#holds.push(hold)));
    else if (operation === "end-hold") this.#ask(this.#endHold());
    else if (operation === "isolate") this.#ask(session.forkIsolated().then((fork) => this.sessions.push(fork)));
    else if (operation === "pass") this.#waiting.splice(which % Math.max(this.#waiting.length, 1), 1)[0]?.();
    else if (this.sessions.length < SESSIONS_MAX) this.sessions.push(this.#derive(operation, session, second));
  }

  /** Checks that no session has a sandbox that is closed or closing. */
  checkHandles(): void {
    for (const { sandbox } of this.sessions)
      if (sandbox !== null) expect((sandbox as CountedSandbox).closing).toBe(false);
  }

  /** Completes all started operations. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 2; ) {
      await turn();
      quiet = this.#waiting.length === 0 ? quiet + 1 : 0;
      for (const pass of this.#waiting.splice(0)) pass();
    }
    await Promise.all(this.#answers);
    expect(this.#unexpected).toEqual([]);
  }

  async #use(session: Session): Promise<void> {
    const sandbox = await session.requireSandbox();
    if (session.sandbox === sandbox) await sandbox.writeFile("used", "yes");
  }

  async #endHold(): Promise<void> {
    await this.#holds.shift()?.[Symbol.asyncDispose]();
  }

  #bind(session: Session, second: Session): void {
    const { sandbox } = second;
    if (sandbox !== null) session.bindSandbox(sandbox);
  }

  #derive(operation: Operation, session: Session, second: Session): Session {
    if (operation === "fork") return session.fork();
    if (operation === "detach") return session.detach();
    if (operation === "merge") return session.merge(second);
    // A session that was recorded while the other one had its sandbox.
    return Session.of(Transcript.empty, { sandbox: session.sandboxPlacement });
  }

  #ask(answer: Promise<unknown>): void {
    const settled = answer.catch((error: unknown) => {
      if (!(error instanceof SandboxError && error.kind === "sandbox_closed")) this.#unexpected.push(error);
    });
    this.#answers.push(settled);
  }
}

const OPERATIONS = [
  "require",
  "close",
  "to",
  "bind",
  "hold",
  "end-hold",
  "isolate",
  "fork",
  "detach",
  "merge",
  "recorded",
  "pass",
  "pass",
] as const;
type Operation = (typeof OPERATIONS)[number];

const operations = fc.array(fc.tuple(fc.constantFrom(...OPERATIONS), fc.nat(20), fc.nat(20), fc.boolean()), {
  maxLength: 60,
  size: "max",
});

test("in any order of operations, exactly the sandboxes that sessions hold are open, and none after all are released", async () => {
  await fc.assert(
    fc.asyncProperty(operations, fc.boolean(), async (steps, pause) => {
      const world = new World();
      for (const [operation, which, other, yields] of steps) {
        world.begin(operation, which, other);
        if (yields) await turn();
        world.checkHandles();
      }
      if (pause) {
        await world.settle();
        const held = new Set(world.sessions.flatMap(({ sandbox }) => (sandbox === null ? [] : [sandbox.id])));
        expect(new Set(world.backend.live.keys())).toEqual(held);
      }
      for (const [index] of world.sessions.entries()) world.begin("close", index, 0);
      await world.settle();
      for (const [index] of world.sessions.entries()) world.begin("close", index, 0);
      await world.settle();
      expect([...world.backend.live.keys()]).toEqual([]);
      expect(world.backend.closes).toBe(world.backend.opens);
      expect(world.backend.snapshots.size).toBe(0);
    }),
    { numRuns: 1000 },
  );
});
