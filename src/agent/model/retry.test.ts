import { describe, expect, test } from "vitest";
import {
  asking,
  callOf,
  calling,
  eventsOf,
  modelOf,
  nextEvent,
  saying,
  shortly,
  someAgent,
  toolOf,
} from "../../../test/sample-run.ts";
import { scripted } from "../../models/scripted.ts";
import { ModelError, type ModelFailure } from "./model-error.ts";
import { withRetries } from "./retry.ts";
import { runSessionLoop } from "../run-session-loop.ts";

const retry = { baseDelayMs: 0 };
const failing = (kind: ModelFailure, init: { retryAfterMs?: number; status?: number } = {}): ModelError =>
  new ModelError(kind, `It failed: ${kind}.`, { provider: "sample", ...init });

describe("a request is retried", () => {
  test.each(["rate_limit", "overloaded", "connection", "timeout", "server"] as const)("after %s", async (kind) => {
    const error = failing(kind);
    const model = scripted([error, "Done."]);
    const run = runSessionLoop(asking(), someAgent(), { model, retry });
    expect((await run).text()).toBe("Done.");
    const retries = (await eventsOf(run)).filter(({ type }) => type === "model-retry");
    expect(retries).toMatchObject([{ round: 1, attempt: 2, delayMs: 0, error: { details: { kind } } }]);
    expect(model.requests).toHaveLength(2);
    expect(model.requests[1]?.messages).toEqual(model.requests[0]?.messages);
  });

  test("only after a transient failure of the model", async () => {
    const kinds = ["authentication", "invalid_request", "malformed", "other", "context_overflow"] as const;
    for (const error of [...kinds.map((kind) => failing(kind)), new Error("A bug.")]) {
      const model = scripted([error, "Never asked for."]);
      await expect(runSessionLoop(asking(), someAgent(), { model, retry }).synchronize()).rejects.toBe(error);
      expect(model.requests).toHaveLength(1);
    }
  });

  test("three times by default", async () => {
    const errors = Array.from({ length: 5 }, () => failing("server"));
    const model = scripted(errors);
    await expect(runSessionLoop(asking(), someAgent(), { model, retry }).synchronize()).rejects.toBe(errors[3]);
    expect(model.requests).toHaveLength(4);
    const once = scripted(errors);
    const options = { model: once, retry: { ...retry, attempts: 1 } };
    await expect(runSessionLoop(asking(), someAgent(), options).synchronize()).rejects.toBe(errors[0]);
    expect(once.requests).toHaveLength(1);
  });

  test("with a new count in each round", async () => {
    const model = scripted([
      failing("server"),
      failing("server"),
      calling(callOf("a", "look")),
      failing("server"),
      failing("server"),
      failing("server"),
      "Done.",
    ]);
    const session = await runSessionLoop(asking(), someAgent(), { model, retry, tools: [toolOf("look")] });
    expect(session.text()).toBe("Done.");
  });

  test("after the text of the failed attempt is discarded", async () => {
    const model = scripted([
      async function* () {
        yield { type: "text-delta", text: "Half an ans" };
        throw failing("connection");
      },
      "Whole.",
    ]);
    const run = runSessionLoop(asking(), someAgent(), { model, retry });
    expect(shortly((await run).transcript)).toEqual(["user: Do it.", "assistant: Whole."]);
    const types = (await eventsOf(run)).map(({ type }) => type);
    expect(types).toEqual([
      "run-started",
      "round-started",
      "text-delta",
      "model-retry",
      "text-delta",
      "round-finished",
      "run-finished",
    ]);
  });
});

describe("the delay before a retry", () => {
  const delaysOf = async (options: object, error: ModelError, attempts = 4): Promise<number[]> => {
    const controller = new AbortController();
    const delays: number[] = [];
    let tried = 0;
    const trying = withRetries(
      () => {
        tried += 1;
        return Promise.reject(error);
      },
      { attempts, ...options },
      controller.signal,
      ({ delayMs }) => delays.push(delayMs),
    );
    await expect(trying).rejects.toBe(error);
    expect(tried).toBe(attempts);
    return delays;
  };

  test("doubles up to the maximum, and half of it is random", async () => {
    const [first, second, third, fourth] = await delaysOf({ baseDelayMs: 4, delayMaxMs: 12 }, failing("server"), 5);
    for (const [delay, most] of [
      [first, 4],
      [second, 8],
      [third, 12],
      [fourth, 12],
    ] as const) {
      expect(delay).toBeGreaterThanOrEqual(most / 2);
      expect(delay).toBeLessThanOrEqual(most);
    }
  });

  test("is the one that the provider asks for if that is longer, up to ten times the maximum", async () => {
    expect(await delaysOf({ baseDelayMs: 0, delayMaxMs: 5 }, failing("rate_limit", { retryAfterMs: 20 }), 2)).toEqual([
      20,
    ]);
    expect(await delaysOf({ baseDelayMs: 0, delayMaxMs: 2 }, failing("rate_limit", { retryAfterMs: 9999 }), 2)).toEqual(
      [20],
    );
  });

  test("ends immediately when the run is aborted, and the text of the failed attempt is not kept", async () => {
    const model = scripted([
      async function* () {
        yield { type: "text-delta", text: "Half an ans" };
        throw failing("rate_limit", { retryAfterMs: 3_600_000 });
      },
    ]);
    const run = runSessionLoop(asking(), someAgent(), { model, retry: { delayMaxMs: 3_600_000 } });
    const { delayMs } = await nextEvent(run, "model-retry");
    expect(delayMs).toBe(3_600_000);
    run.abort("no patience");
    await expect(run.synchronize()).rejects.toMatchObject({ code: "ABORTED", cause: "no patience" });
    expect(shortly(run.transcript)).toEqual(["user: Do it."]);
  });

  test("uses the defaults for settings that are undefined", async () => {
    let tried = 0;
    const model = modelOf(async () => {
      tried += 1;
      if (tried < 3) throw failing("server");
      return saying("Done.");
    });
    const options = { attempts: undefined, baseDelayMs: 0, delayMaxMs: undefined } as object;
    expect((await runSessionLoop(asking(), someAgent(), { model, retry: options })).text()).toBe("Done.");
    const always = modelOf(() => Promise.reject(failing("server")));
    await expect(
      runSessionLoop(asking(), someAgent(), { model: always, retry: options }).synchronize(),
    ).rejects.toMatchObject({ kind: "server" });
  });
});
