import { describe, expect, test } from "vitest";
import { createModel, registerModelProvider } from "../agent/model/model-providers.ts";
import "./register-built-in.ts";
import { scripted } from "./scripted.ts";

describe("createModel", () => {
  test.for([
    ["openai/gpt-5-mini", "openai", "gpt-5-mini"],
    ["openai/meta/llama-4", "openai", "meta/llama-4"],
    ["anthropic/claude-sonnet-5", "anthropic", "claude-sonnet-5"],
  ] as const)("makes %s a model of %s with the id %s", ([name, provider, id]) => {
    expect(createModel(name, { apiKey: "k", contextWindow: 9 })).toMatchObject({ provider, id, contextWindow: 9 });
  });

  test("makes the offline model with or without an id", () => {
    expect(createModel("offline").provider).toBe("offline");
    expect(createModel("offline/offline", { contextWindow: 9 })).toMatchObject({
      provider: "offline",
      contextWindow: 9,
    });
  });

  test("makes models of a registered provider, with the options it was given", () => {
    const seen: unknown[] = [];
    registerModelProvider("acme", (id, options) => {
      seen.push(id, options);
      return scripted(["hello"]);
    });
    expect(createModel("acme/large", { region: "north" }).provider).toBe("scripted");
    expect(seen).toEqual(["large", { region: "north" }]);
    registerModelProvider("acme", () => scripted([], { contextWindow: 5 }));
    expect(createModel("acme/large").contextWindow).toBe(5);
  });

  test.for(["gpt-5-mini", "nobody/model", "", "/x"])("refuses %j, and names the providers there are", (name) => {
    expect(() => createModel(name)).toThrow(
      expect.objectContaining({
        code: "INVALID_OPTION",
        message: expect.stringMatching(/one of: .*anthropic, offline, openai\.$/),
      }),
    );
  });

  test("refuses a name without a model where the provider needs one", () => {
    expect(() => createModel("openai/", { apiKey: "k" })).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  });
});

test.for(["", "a/b"])("registerModelProvider refuses the kind %j", (kind) => {
  expect(() => registerModelProvider(kind, () => scripted([]))).toThrow(
    expect.objectContaining({ code: "INVALID_OPTION" }),
  );
});
