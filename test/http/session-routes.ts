import assert from "node:assert/strict";
import { AsyncResource } from "node:async_hooks";
import { setImmediate, setTimeout } from "node:timers/promises";
import { vi } from "vitest";
import type { RequestSession } from "../../src/http/middleware/request-session.ts";
import type { SessionContext } from "../../src/lifecycle/session-context.ts";

/** The routes of an application, for every framework. */
export class Routes {
  /** Null without a context. */
  readonly context: SessionContext | null;
  readonly #strays: (() => unknown)[] = [];
  /** Called with the bound session when an endless answer has ended. */
  ended: (bound: unknown) => void = () => undefined;
  /** Blocks a handler until the test releases it. */
  gate: Promise<unknown> = Promise.resolve();
  /** Called when a handler waits at the gate. */
  arrived: () => void = () => undefined;

  constructor(context: SessionContext | null) {
    this.context = context;
  }

  /** POST /say: adds a turn with the body, and answers the turns. */
  async say(session: RequestSession, body: unknown): Promise<Record<string, unknown>> {
    const { text } = body as { text: string };
    await session.addTurn({ role: "user", content: text });
    const { turns } = await session.state();
    const { id, userId, isNew } = session;
    return { id, userId, isNew, bound: this.bound(), said: turns.map(({ content }) => content) };
  }

  /** GET /steps: many small async steps, each of which reads the bound session. */
  async steps(session: RequestSession): Promise<Record<string, unknown>> {
    const { sessionId, userId } = await session.state({ turns: false });
    const seen = new Set<unknown>();
    for (let step = 0; step < 4; step++) {
      await (step % 2 === 0 ? setImmediate() : setTimeout(1));
      seen.add(this.bound());
      await Promise.all([setImmediate().then(() => seen.add(this.bound()))]);
    }
    return { id: sessionId, userId, seen: [...seen] };
  }

  /** GET /fail: throws with a session in use. */
  async fail(session: RequestSession): Promise<never> {
    await session.state();
    this.#leaveBehind();
    throw new Error("as asked");
  }

  /** GET /stream: three chunks with the bound session. */
  async stream(session: RequestSession): Promise<AsyncIterable<string>> {
    await session.state();
    this.#leaveBehind();
    return this.#chunks(3);
  }

  /** GET /late: uses the session for the first time after the answer has started. */
  async *late(session: RequestSession): AsyncIterable<string> {
    yield "begun ";
    await setImmediate();
    yield await session.state().then(
      () => "made",
      (error) => error.code,
    );
  }

  /** GET /endless: chunks until the stream is cancelled. */
  async endless(session: RequestSession): Promise<AsyncIterable<string>> {
    await session.state();
    this.#leaveBehind();
    return this.#chunks(Number.POSITIVE_INFINITY);
  }

  /** GET /wait: answers with the bound session when the test releases it. */
  async wait(session: RequestSession): Promise<Record<string, unknown>> {
    await session.state();
    this.#leaveBehind();
    this.arrived();
    await this.gate;
    const bound = this.bound();
    this.ended(bound);
    return { bound };
  }

  /** The bound id, or the code of the error. */
  bound(): unknown {
    try {
      return this.context?.sessionId ?? "NO_CONTEXT";
    } catch (error) {
      return (error as { code: unknown }).code;
    }
  }

  /** Resolves when background code of a request no longer has a bound session; there must be such code. */
  async unbound(): Promise<void> {
    assert.notEqual(this.#strays.length, 0);
    await vi.waitFor(() => assert.deepEqual(new Set(this.#strays.map((look) => look())), new Set(["NO_SESSION"])), {
      timeout: 60_000,
    });
  }

  #leaveBehind(): void {
    const look = AsyncResource.bind(() => this.bound());
    assert.notEqual(look(), "NO_SESSION");
    this.#strays.push(look);
  }

  async *#chunks(count: number): AsyncIterable<string> {
    try {
      for (let chunk = 0; chunk < count; chunk++) {
        await setTimeout(1);
        yield `${this.bound()} `;
      }
    } finally {
      this.ended(this.bound());
    }
  }
}
