import { describe, expect, test } from "vitest";
import { assistant, user } from "../../test/sample-log.ts";
import type { ModelReply, ModelRequest } from "../agent/model.ts";
import { scripted } from "./scripted.ts";

const request: ModelRequest = { messages: [user("q")] };

describe("scripted", () => {
  test("gives its replies in order and remembers what it was asked", async () => {
    const whole = assistant("two", { stopReason: "length" }) as ModelReply;
    const model = scripted(["one", whole, ({ messages }) => `three of ${messages.length}`, async () => whole]);
    expect(await model.complete(request)).toEqual({
      role: "assistant",
      content: "one",
      provider: "scripted",
      model: "scripted",
      stopReason: "stop",
    });
    expect(await model.complete(request)).toBe(whole);
    expect(await model.complete(request)).toMatchObject({ content: "three of 1" });
    expect(await model.complete(request)).toBe(whole);
    expect(model.requests).toEqual([request, request, request, request]);
  });

  test("fails where the script says so, and goes on", async () => {
    const model = scripted([new Error("rate limit"), "after it"]);
    await expect(model.complete(request)).rejects.toThrow("rate limit");
    expect(await model.complete(request)).toMatchObject({ content: "after it" });
  });

  test("fails when it is asked once more than it has replies", async () => {
    const model = scripted(["only"]);
    await model.complete(request);
    await expect(model.complete(request)).rejects.toThrow("has 1 replies and was asked 2 times");
  });

  test("names itself and its window", () => {
    expect(scripted([])).toMatchObject({ provider: "scripted", id: "scripted" });
    expect(scripted([], { contextWindow: 100 }).contextWindow).toBe(100);
  });

  test("uses up no reply for a request that is aborted already", async () => {
    const model = scripted(["one"]);
    await expect(model.complete(request, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: "AbortError",
    });
    expect(await model.complete(request)).toMatchObject({ content: "one" });
  });

  test("rejects at once when it is aborted while a reply is on its way", async () => {
    const controller = new AbortController();
    const model = scripted([() => new Promise<string>(() => {})]);
    const waiting = model.complete(request, { signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });

  test("gives a slow reply to one who does not abort", async () => {
    const { signal } = new AbortController();
    const model = scripted([() => new Promise<string>((resolve) => setImmediate(resolve, "slow"))]);
    expect(await model.complete(request, { signal })).toMatchObject({ content: "slow" });
  });
});
