import { afterEach, describe, expect, test, vi } from "vitest";
import { openModelServer, wireFixture } from "../../test/model-server.ts";
import { anthropic } from "./anthropic/anthropic.ts";
import { openai } from "./openai/openai.ts";

afterEach(() => vi.unstubAllEnvs());

describe.for([
  ["OPENAI_API_KEY", openai, "authorization", "Bearer from-env", "openai", "chat-text.json"],
  ["ANTHROPIC_API_KEY", anthropic, "x-api-key", "from-env", "anthropic", "text.json"],
] as const)("without %s", ([variable, make, header, sent, provider, file]) => {
  test.for([{}, { apiKey: "" }, { apiKey: "  " }, { baseURL: "http://127.0.0.1:1" }])(
    "and with the options %j creating a model throws an error that names what to set",
    (options) => {
      vi.stubEnv(variable, undefined);
      const refused = expect.objectContaining({
        code: "KEY_MISSING",
        message: `There is no key for ${provider}: set the environment variable ${variable}, or give the option apiKey.`,
      });
      expect(() => make("some-model", options)).toThrow(refused);
      vi.stubEnv(variable, " ");
      expect(() => make("some-model", options)).toThrow(refused);
    },
  );

  test("a model accepts any text as a key", () => {
    vi.stubEnv(variable, undefined);
    expect(make("some-model", { apiKey: "none", baseURL: "http://127.0.0.1:1" }).id).toBe("some-model");
  });

  test("a call sends the key of the environment, and a given key overrides it", async () => {
    vi.stubEnv(variable, "from-env");
    await using server = await openModelServer({ body: wireFixture(provider, file) });
    const request = { messages: [{ role: "user", content: "hi" }] } as const;
    await make("some-model", { baseURL: server.url }).complete(request);
    await make("some-model", { baseURL: server.url, apiKey: "given" }).complete(request);
    expect(server.asked.map((asked) => asked.headers[header])).toEqual([sent, sent.replace("from-env", "given")]);
  });
});

test("a token of the environment is not sent together with a key of Anthropic", async () => {
  vi.stubEnv("ANTHROPIC_AUTH_TOKEN", "other-secret");
  await using server = await openModelServer({ body: wireFixture("anthropic", "text.json") });
  await anthropic("m", { baseURL: server.url, apiKey: "k" }).complete({ messages: [{ role: "user", content: "hi" }] });
  expect(JSON.stringify(server.asked[0]?.headers)).not.toContain("other-secret");
});
