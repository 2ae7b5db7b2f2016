import { afterEach, expect, test, vi } from "vitest";
import { openModelServer, wireFixture } from "../../../test/model-server.ts";
import { anthropic } from "../anthropic/anthropic.ts";
import { openai } from "../openai/openai.ts";

const absent = () => {
  throw new Error("Cannot find package");
};

afterEach(() => vi.resetModules());

test.for([
  ["openai", openai, "chat-text.json"],
  ["@anthropic-ai/sdk", anthropic, "text.json"],
] as const)("names the missing package %s in its error, and works once it is installed", async ([name, make, file]) => {
  await using server = await openModelServer({ body: wireFixture(name === "openai" ? name : "anthropic", file) });
  vi.doMock(name, absent);
  const model = make("some-model", { apiKey: "k", baseURL: server.url });
  const request = { messages: [{ role: "user", content: "hi" }] } as const;
  const asking = model.complete(request);
  await expect(asking).rejects.toMatchObject({ code: "DRIVER_MISSING" });
  await expect(asking).rejects.toThrow(`install the package ${name}, version`);
  expect(server.asked).toEqual([]);
  vi.doUnmock(name);
  vi.resetModules();
  expect((await model.complete(request)).stopReason).toBe("stop");
});
