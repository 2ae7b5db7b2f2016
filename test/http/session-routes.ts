import assert from "node:assert/strict";
import { AsyncResource } from "node:async_hooks";
import { setImmediate, setTimeout } from "node:timers/promises";
import { vi } from "vitest";
import type { RequestSession } from "../../src/http/middleware/request-session.ts";
import type { SessionContext } from "../../src/lifecycle/session-context.ts";

/** What the routes of an application do, whatever the framework. */
export class Routes {
  /** Null where no context binds the sessions of requests. */
  readonly context: SessionContext | null;
  readonly #strays: (() => unknown)[] = [];
  /** Called when an endless answer has ended, with what was bound then. */
  ended: (bound: unknown) => void = () => undefined;
  /** Holds a handler up until the test lets it go on. */
  gate: Promise<unknown> = Promise.resolve();
  /** Called when a handler waits at the gate. */
  arrived: () => void = () => undefined;

  constructor(context: SessionContext | null) {
    this.context = context;
  }

  /** POST /say: adds what the body says, and tells what there is now. */
  async say(session: RequestSession, body: unknown): Promise<Record<string, unknown>> {
    const { text } = body as { text: string };
    await session.addTurn({ role: "user", content: text });
    const { turns } = await session.state();
    const { id, userId, isNew } = session;
    return { id, userId, isNew, bound: this.bound(), said: turns.map(({ content }) => content) };
  }

  /** GET /steps: many small steps, each of which looks at what is bound. */
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

  /** GET /stream: three chunks that say what is bound. */
  async stream(session: RequestSession): Promise<AsyncIterable<string>> {
    await session.state();
    this.#leaveBehind();
    return this.#chunks(3);
  }

  /** GET /late: uses the session for the first time when the answer has begun. */
  async *late(session: RequestSession): AsyncIterable<string> {
    yield "begun ";
    await setImmediate();
    yield await session.state().then(
      () => "made",
      (error) => error.code,
    );
  }

  /** GET /endless: chunks until nobody wants more. */
  async endless(session: RequestSession): Promise<AsyncIterable<string>> {
    await session.state();
    this.#leaveBehind();
    return this.#chunks(Number.POSITIVE_INFINITY);
  }

  /** GET /wait: answers when the test says so, with what is bound then. */
  async wait(session: RequestSession): Promise<Record<string, unknown>> {
    await session.state();
    this.#leaveBehind();
    this.arrived();
    await this.gate;
    const bound = this.bound();
    this.ended(bound);
    return { bound };
  }

  /** The id that is bound, or the code of the refusal. */
  bound(): unknown {
    try {
      return this.context?.sessionId ?? "NO_CONTEXT";
    } catch (error) {
      return (error as { code: unknown }).code;
    }
  }

  /** Resolves once code that a request has left behind sees no session any more; there must be some. */
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
