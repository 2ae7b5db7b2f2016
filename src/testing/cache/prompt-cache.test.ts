import { describe, expect, test } from "vitest";
import { promptCache, type PromptCacheInit } from "./prompt-cache.ts";

const MINUTE = 60_000;
/** A text of so many tokens, by the count of the emulation. */
const text = (tokens: number, letter = "a"): string => letter.repeat(tokens * 4);
const block = (tokens: number, letter?: string, ttl?: "1h" | "5m") => ({
  type: "text",
  text: text(tokens, letter),
  ...(ttl === undefined ? {} : { cache_control: { type: "ephemeral", ...(ttl === "1h" ? { ttl } : {}) } }),
});
const clockAt = (start = 0) => {
  const clock = () => clock.now;
  clock.now = start;
  return clock;
};
const open = (init: Partial<PromptCacheInit> = {}) => {
  const clock = clockAt();
  return { clock, cache: promptCache({ provider: "anthropic", model: "claude-opus-4-8", clock, ...init }) };
};

describe("the emulated cache of Anthropic", () => {
  test("comes to the figures of the provider's example: 188,086 tokens of a book written, then read", () => {
    const { cache } = open();
    const body = {
      system: [block(86, "s"), block(188_000, "b", "5m")],
      messages: [{ role: "user", content: text(21, "q") }],
    };
    expect(cache.ask(body)).toEqual({ read: 0, written: 188_086, writtenForAnHour: 0, fresh: 21 });
    expect(cache.ask(body)).toEqual({ read: 188_086, written: 0, writtenForAnHour: 0, fresh: 21 });
  });

  test("comes to the usage that a coding agent recorded of five requests to claude-sonnet-5-5, in October 2026", () => {
    const recorded = [
      { atMs: 54_367, read: 7276, written: 11_520, fresh: 2 },
      { atMs: 57_423, read: 18_796, written: 6384, fresh: 2 },
      { atMs: 59_323, read: 25_180, written: 3508, fresh: 2 },
      { atMs: 62_171, read: 28_688, written: 3032, fresh: 2 },
      { atMs: 72_253, read: 31_720, written: 3440, fresh: 2 },
    ];
    const { cache, clock } = open({ model: "claude-sonnet-5-5" });
    // The program shares the beginning of its requests among sessions.
    const shared = block(7276, "s", "1h");
    cache.ask({ system: [shared], messages: [{ role: "user", content: [block(500, "o")] }] });
    recorded.forEach(({ atMs, ...usage }, round) => {
      const said = recorded.slice(0, round + 1).map(({ written }, index) => {
        return block(written, String.fromCharCode(97 + index), index === round ? "1h" : undefined);
      });
      clock.now = atMs;
      const messages = [{ role: "user", content: [...said, block(2, "e")] }];
      expect(cache.ask({ system: [shared], messages })).toEqual({ ...usage, writtenForAnHour: usage.written });
    });
  });

  test("reads the prefix and writes what is new in a growing conversation", () => {
    const { cache } = open();
    const talk = [{ role: "user", content: [block(2000, "a", "5m")] }];
    expect(cache.ask({ messages: talk })).toMatchObject({ read: 0, written: 2000 });
    const longer = [
      { role: "user", content: [block(2000, "a")] },
      { role: "assistant", content: [block(100, "b")] },
      { role: "user", content: [block(50, "c", "5m")] },
    ];
    expect(cache.ask({ messages: longer })).toEqual({ read: 2000, written: 150, writtenForAnHour: 0, fresh: 0 });
  });

  test.for([
    ["tools", { tools: [{ name: "t", description: text(2000, "x"), input_schema: {} }] }, 0],
    ["instructions", { system: [block(3000, "y", "5m")] }, 3000],
    ["tool_choice", { tool_choice: { type: "any" } }, 6000],
    ["thinking", { thinking: { type: "enabled", budget_tokens: 1024 } }, 6000],
    ["the format of the answer", { output_config: { format: { type: "json_schema", schema: {} } } }, 3000],
  ] as const)("reads after a change of %s what stands before it", ([, change, read]) => {
    const { cache } = open();
    // Its JSON is 3,000 tokens long.
    const bare = { name: "t", input_schema: {}, description: "" };
    const tool = { ...bare, description: "x".repeat(12_000 - JSON.stringify(bare).length) };
    const body = {
      tools: [{ ...tool, cache_control: { type: "ephemeral" } }],
      system: [block(3000, "s", "5m")],
      messages: [{ role: "user", content: [block(2000, "m", "5m")] }],
    };
    expect(cache.ask(body)).toMatchObject({ written: 8000 });
    expect(cache.ask({ ...body, ...change }).read).toBe(read);
  });

  test("writes the messages anew when the first image comes", () => {
    const { cache } = open();
    const system = [block(3000, "s", "5m")];
    const said = { role: "user", content: [block(2000, "m", "5m")] };
    cache.ask({ system, messages: [said] });
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } };
    const answer = { role: "assistant", content: "ok" };
    const messages = [said, answer, { role: "user", content: [image] }];
    expect(cache.ask({ system, messages }).read).toBe(3000);
  });

  test("looks back from a marker over 20 positions, and finds an older entry by a second marker", () => {
    const beyond = (blocks: number, second: boolean): number => {
      const { cache } = open();
      cache.ask({ messages: [{ role: "user", content: [block(2000, "a", "5m")] }] });
      const more = Array.from({ length: blocks }, (_, at) => block(10, String.fromCharCode(98 + at)));
      const marked = [...more.slice(0, -1), { ...more.at(-1), cache_control: { type: "ephemeral" } }];
      const first = second ? block(2000, "a", "5m") : block(2000, "a");
      return cache.ask({ messages: [{ role: "user", content: [first, ...marked] }] }).read;
    };
    expect([beyond(19, false), beyond(20, false), beyond(20, true)]).toEqual([2000, 0, 2000]);
  });

  test.for([
    ["claude-opus-5", 512],
    ["claude-sonnet-4-5", 1024],
    ["claude-opus-4-7", 2048],
    ["claude-haiku-4-5", 4096],
  ] as const)("of %s caches nothing below %i tokens", ([model, least]) => {
    const { cache } = open();
    const ask = (tokens: number) =>
      cache.ask({ model, messages: [{ role: "user", content: [block(tokens, "a", "5m")] }] });
    expect(ask(least - 1)).toEqual({ read: 0, written: 0, writtenForAnHour: 0, fresh: least - 1 });
    expect(ask(least).written).toBe(least);
  });

  test("keeps an entry for its lifetime after its last use", () => {
    for (const [ttl, lifetime] of [
      ["5m", 5 * MINUTE],
      ["1h", 60 * MINUTE],
    ] as const) {
      const { cache, clock } = open();
      const body = { messages: [{ role: "user", content: [block(2000, "a", ttl)] }] };
      expect(cache.ask(body)).toMatchObject({ written: 2000, writtenForAnHour: ttl === "1h" ? 2000 : 0 });
      for (let uses = 0; uses < 3; uses++) {
        clock.now += lifetime - 1;
        expect(cache.ask(body).read).toBe(2000);
      }
      clock.now += lifetime;
      expect(cache.ask(body)).toMatchObject({ read: 0, written: 2000 });
    }
  });

  test("counts what is written for an hour before what is written for five minutes", () => {
    const { cache } = open();
    const messages = [{ role: "user", content: [block(500, "m", "5m")] }];
    expect(cache.ask({ system: [block(2000, "s", "1h")], messages })).toEqual({
      read: 0,
      written: 2500,
      writtenForAnHour: 2000,
      fresh: 0,
    });
  });

  test("leaves the thinking of earlier turns out, for models before Opus 4.5", () => {
    const thinking = { type: "thinking", thinking: text(1000, "t"), signature: "s" };
    const asked = { role: "user", content: [block(5000, "a", "5m")] };
    const answered = { role: "assistant", content: [thinking, block(100, "b")] };
    const next = { role: "user", content: [block(10, "c", "5m")] };
    const totals = ["claude-sonnet-4-5", "claude-opus-4-8"].map((model) => {
      const { read, written, fresh } = open().cache.ask({ model, messages: [asked, answered, next] });
      return read + written + fresh;
    });
    expect(totals).toEqual([5110, 6110]);
  });

  test("refuses what the provider refuses", () => {
    const { cache } = open();
    const refused = expect.objectContaining({ code: "INVALID_OPTION" });
    expect(() => cache.ask({ messages: [] })).toThrow(refused);
    const content = Array.from({ length: 5 }, () => block(10, "a", "5m"));
    expect(() => cache.ask({ messages: [{ role: "user", content }] })).toThrow(refused);
    expect(() => promptCache({ provider: "acme" as never, model: "m" })).toThrow(refused);
  });
});

describe("the emulated cache of OpenAI", () => {
  const gpt = (model: string) => open({ provider: "openai", model });
  const chat = (...contents: unknown[]) => ({ messages: contents.map((content) => ({ role: "user", content })) });

  test("comes to the figures of the provider's example: 1,920 of 2,006 tokens", () => {
    const { cache } = gpt("gpt-4o");
    expect(cache.ask(chat(text(2006)))).toEqual({ read: 0, written: 0, writtenForAnHour: 0, fresh: 2006 });
    expect(cache.ask(chat(text(2006)))).toEqual({ read: 1920, written: 0, writtenForAnHour: 0, fresh: 86 });
  });

  test("matches to the first different token in steps of 128, from 1,024 on", () => {
    const { cache } = gpt("gpt-5.2");
    cache.ask(chat(text(1023, "x")));
    expect(cache.ask(chat(text(1023, "x"))).read).toBe(0);
    cache.ask(chat(text(3000)));
    expect(cache.ask(chat(text(1500) + text(1500, "b"))).read).toBe(1408);
    expect(cache.ask(chat(text(1000) + text(2000, "b"))).read).toBe(0);
  });

  test("forgets after minutes, or after a day", () => {
    for (const [retention, lifetime] of [
      [undefined, 5 * MINUTE],
      ["24h", 24 * 60 * MINUTE],
    ] as const) {
      const { cache, clock } = gpt("gpt-5.2");
      const body = { ...chat(text(2048)), ...(retention && { prompt_cache_retention: retention }) };
      cache.ask(body);
      clock.now += lifetime - 1;
      expect(cache.ask(body).read).toBe(2048);
      clock.now += lifetime;
      expect(cache.ask(body).read).toBe(0);
    }
  });

  test("finds a server by beginning and key, and another one after 15 requests in a minute", () => {
    const { cache } = gpt("gpt-5.2");
    const ask = (key: string) => cache.ask({ ...chat(text(2048)), prompt_cache_key: key }).read;
    expect([ask("a"), ask("b"), ask("a")]).toEqual([0, 0, 2048]);
    for (let asked = 2; asked < 15; asked++) expect(ask("a")).toBe(2048);
    expect(ask("a")).toBe(0);
  });

  test("of gpt-5.6 writes at breakpoints and reads only there", () => {
    const { cache, clock } = gpt("gpt-5.6-sol");
    const first = { messages: [{ role: "user", content: text(2000) }] };
    expect(cache.ask(first)).toEqual({ read: 0, written: 2000, writtenForAnHour: 0, fresh: 0 });
    const second = {
      messages: [
        ...first.messages,
        { role: "assistant", content: text(100, "b") },
        { role: "user", content: text(50, "c") },
      ],
    };
    expect(cache.ask(second)).toEqual({ read: 2000, written: 150, writtenForAnHour: 0, fresh: 0 });
    // Nothing ends a common part of 1,900 tokens.
    expect(cache.ask({ messages: [{ role: "user", content: text(1900) + text(100, "z") }] }).read).toBe(0);
    const explicit = { ...first, prompt_cache_options: { mode: "explicit" } };
    expect(cache.ask(explicit)).toEqual({ read: 0, written: 0, writtenForAnHour: 0, fresh: 2000 });
    clock.now += 30 * MINUTE;
    expect(cache.ask(first).read).toBe(0);
  });

  test("of gpt-5.6 reads instructions that are marked in another conversation", () => {
    const { cache } = gpt("gpt-5.6-sol");
    const mark = { prompt_cache_breakpoint: { mode: "explicit" } };
    const talk = (asked: string) => ({
      input: [
        { role: "system", content: [{ type: "input_text", text: text(1500, "s"), ...mark }] },
        { role: "user", content: [{ type: "input_text", text: asked }] },
      ],
    });
    expect(cache.ask(talk("one "))).toMatchObject({ read: 0, written: 1501 });
    expect(cache.ask(talk("two "))).toMatchObject({ read: 1500, written: 1 });
  });

  test("reads a text and the same text as a part, on both of its APIs, as the same", () => {
    const { cache } = gpt("gpt-5.2");
    cache.ask(chat(text(1024)));
    expect(cache.ask(chat([{ type: "text", text: text(1024) }])).read).toBe(1024);
    expect(cache.ask({ input: [{ role: "user", content: [{ type: "input_text", text: text(1024) }] }] }).read).toBe(
      1024,
    );
  });
});
