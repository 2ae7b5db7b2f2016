import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assistant, calls, result, user } from "../../../test/sample-log.ts";
import { acceptable } from "./context.ts";
import { type Message, textOf } from "../message.ts";
import {
  RelevanceContextPruner,
  type RelevanceContextPrunerOptions,
  type ScoredTurn,
} from "./relevance-context-pruner.ts";
import { messageTokens } from "./tokens.ts";

const system = (content: string): Message => ({ role: "system", content });
const textsOf = (messages: readonly Message[]) => messages.map(({ content }) => textOf(content));

/** The kept ones of plain texts of a user; a text that begins with "!" is a system message. */
async function keep(
  texts: readonly string[],
  query: string,
  maxTurns: number,
  options?: RelevanceContextPrunerOptions,
): Promise<string[]> {
  const history = texts.map((text) => (text.startsWith("!") ? system(text) : user(text)));
  return textsOf(await new RelevanceContextPruner(options).prune(history, query, maxTurns));
}

describe("a pruned history", () => {
  test("is whole if it is within the limit, and a new list", async () => {
    const history = [user("a"), system("b"), user("c")];
    for (const maxTurns of [3, 4]) {
      const pruned = await new RelevanceContextPruner().prune(history, "a", maxTurns);
      expect(pruned).toEqual(history);
      expect(pruned).not.toBe(history);
    }
  });

  test("keeps the messages that share the most words with the query, in the original order", async () => {
    const texts = ["refund of order 4711", "nice weather", "where is my order", "hello there"];
    expect(await keep(texts, "refund the order", 2)).toEqual(["refund of order 4711", "where is my order"]);
  });

  test("keeps the newest if no word is shared", async () => {
    expect(await keep(["a", "b", "c", "d"], "none of it", 2)).toEqual(["c", "d"]);
    expect(await keep(["a", "b", "c", "d"], "", 1)).toEqual(["d"]);
  });

  test("prefers a message with one more shared word to any newer message", async () => {
    expect(await keep(["word", "b", "c", "d"], "word", 1)).toEqual(["word"]);
  });

  test("counts a word once, however often it occurs", async () => {
    expect(await keep(["order order order", "order refund", "x"], "order refund order", 1)).toEqual(["order refund"]);
  });

  test("compares in lower case, splits at white space only, and does not remove punctuation", async () => {
    expect(await keep(["ORDER", "order!", "x"], "Order", 1)).toEqual(["ORDER"]);
    expect(await keep(["one\ttwo\nthree", "two three", "x"], "  one two\u00a0three ", 1)).toEqual(["one\ttwo\nthree"]);
  });

  test("reads the text of a message in parts, and nothing of its images", async () => {
    const parts: Message = {
      role: "user",
      content: [
        { type: "text", text: "order" },
        { type: "text", text: "refund" },
      ],
    };
    const picture: Message = { role: "user", content: [{ type: "image", mediaType: "image/png", data: "order" }] };
    const pruned = await new RelevanceContextPruner().prune([parts, picture, user("x")], "order refund", 1);
    expect(pruned).toEqual([parts]);
  });

  test("keeps every system message, at any position, and the best of the rest", async () => {
    expect(await keep(["!a", "order", "b", "!c", "d"], "order", 3)).toEqual(["!a", "order", "!c"]);
  });

  test("keeps the first system messages if they alone exceed the limit, and nothing else", async () => {
    expect(await keep(["order", "!a", "!b", "!c", "order"], "order", 2)).toEqual(["!a", "!b"]);
  });

  test("is empty with a limit of 0", async () => {
    expect(await keep(["!a", "b"], "b", 0)).toEqual([]);
  });

  test("does not change the history", async () => {
    const history = Object.freeze([system("a"), user("b"), user("c")].map((message) => Object.freeze(message)));
    await new RelevanceContextPruner().prune(history, "b", 2);
    expect(textsOf(history)).toEqual(["a", "b", "c"]);
  });

  test("is within its limits, a part of the history, and the same every time", async () => {
    await fc.assert(
      fc.asyncProperty(
        anyHistory(),
        words(),
        fc.nat(12),
        fc.option(fc.nat(30)),
        async (history, query, maxTurns, tokens) => {
          const limits = tokens === null ? {} : { maxTokens: tokens };
          const pruner = new RelevanceContextPruner();
          const pruned = await pruner.prune(history, query, maxTurns, limits);
          expect(pruned.length).toBeLessThanOrEqual(maxTurns);
          expect(tokensOf(pruned)).toBeLessThanOrEqual(tokens ?? Number.POSITIVE_INFINITY);
          expect(history.filter((message) => pruned.includes(message))).toEqual(pruned);
          expect(await pruner.prune(history, query, maxTurns, limits)).toEqual(pruned);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("of plain messages has those that the formula ranks highest", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom("system", "user"), words()), { maxLength: 12 }),
        words(),
        fc.nat(12),
        async (said, query, maxTurns) => {
          const history = said.map(([role, content]): Message => ({ role: role as "system" | "user", content }));
          const pruned = await new RelevanceContextPruner().prune(history, query, maxTurns);
          expect(pruned).toEqual(byFormula(history, query, maxTurns));
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe("tool calls and their results", () => {
  const history = [
    user("find the order"),
    calls("1", "2"),
    result("1", "order 4711"),
    result("2", "nothing"),
    user("thanks"),
    calls("1"),
    result("1", "sunny"),
    assistant("it is sunny"),
  ];

  test("stay together, and count as many messages as they are", async () => {
    const pruner = new RelevanceContextPruner();
    const pruned = await pruner.prune(history, "4711 nothing", 3);
    expect(pruned).toEqual(history.slice(1, 4));
    // The pair with the best score does not fit, so it is dropped as a whole.
    expect(await pruner.prune(history, "4711 nothing", 2)).toEqual([history[4], history[7]]);
  });

  test("stay together with the latest answer, if a call id is reused", async () => {
    const pruned = await new RelevanceContextPruner().prune(history, "sunny", 3);
    expect(pruned).toEqual(history.slice(5));
  });

  test("leave a history that every provider accepts", async () => {
    await fc.assert(
      fc.asyncProperty(
        anyHistory(),
        words(),
        fc.nat(12),
        fc.option(fc.nat(30)),
        async (any, query, maxTurns, tokens) => {
          const limits = tokens === null ? {} : { maxTokens: tokens };
          const pruned = await new RelevanceContextPruner().prune(acceptable(any), query, maxTurns, limits);
          expect(acceptable(pruned)).toEqual(pruned);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("are scored separately if keepToolPairs is false", async () => {
    const pruned = await new RelevanceContextPruner({ keepToolPairs: false }).prune(history, "4711", 1);
    expect(pruned).toEqual([history[2]]);
  });
});

describe("a token budget", () => {
  const long = "x".repeat(400);

  test("limits the kept messages, even if their number is within the limit", async () => {
    expect(await keep(["a b", long, "c d"], "", 10, { maxTokens: 50 })).toEqual(["a b", "c d"]);
  });

  test("applies beside the number of messages", async () => {
    expect(await keep(["a", "b", "c"], "", 2, { maxTokens: 100 })).toEqual(["b", "c"]);
    expect(await keep(["a", "b", "c"], "", 2, { maxTokens: 1 })).toEqual(["c"]);
  });

  test("is spent on system messages first, up to the first that does not fit", async () => {
    expect(await keep(["!a", `!${long}`, "!b", "c"], "c", 3, { maxTokens: 10 })).toEqual(["!a", "c"]);
  });

  test("counts with the given counter, tool calls included", async () => {
    const pruner = new RelevanceContextPruner({ countTokens: (text) => text.length, maxTokens: 9 });
    const history = [user("12345"), calls("c"), result("c", "123"), user("1")];
    // look{} has six characters, with its result nine, so nothing is left for the newest message.
    expect(await pruner.prune(history, "123", 4)).toEqual([history[1], history[2]]);
  });

  test("of a call has priority over that of the pruner", async () => {
    const pruner = new RelevanceContextPruner({ maxTokens: 1 });
    const history = [user("a"), user("b")];
    expect(await pruner.prune(history, "", 2)).toEqual([history[1]]);
    expect(await pruner.prune(history, "", 2, { maxTokens: 2 })).toEqual(history);
  });
});

describe("an option that replaces a part of the formula", () => {
  test("can be the tokenizer", async () => {
    const tokenizer = (text: string) => text.split("");
    expect(await keep(["abc", "xyz", "-"], "cab", 1, { tokenizer })).toEqual(["abc"]);
  });

  test("can be the scorer, which gets the message, its words and its recency", async () => {
    const seen: ScoredTurn[] = [];
    const scorer = async (turn: ScoredTurn, query: { readonly text: string }) => {
      seen.push(turn);
      return query.text === "q" ? -turn.recency : 0;
    };
    expect(await keep(["!s", "a b", "c", "d"], "q", 2, { scorer })).toEqual(["!s", "a b"]);
    expect(seen.map(({ message, words: said, recency }) => [textOf(message.content), [...said], recency])).toEqual([
      ["a b", ["a", "b"], 0],
      ["c", ["c"], 0.5],
      ["d", ["d"], 1],
    ]);
  });

  test("is not called for a history within its limits", async () => {
    const scorer = () => expect.fail("a message was scored");
    expect(await keep(["a", "b"], "q", 2, { scorer, maxTokens: 2 })).toEqual(["a", "b"]);
  });

  test("can score all messages alike, and then the later ones are kept", async () => {
    expect(await keep(["a", "b", "c"], "q", 2, { scorer: () => 1 })).toEqual(["b", "c"]);
  });

  test("gets the recency 1 for the only message that is not a system message", async () => {
    const seen: number[] = [];
    const scorer = (turn: ScoredTurn) => seen.push(turn.recency);
    await keep(["!s", "a"], "q", 1, { scorer });
    expect(seen).toEqual([1]);
  });
});

describe("bad input", () => {
  test.for([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "3", null, undefined])("is a limit of %s", async (limit) => {
    const prune = new RelevanceContextPruner().prune([user("a")], "a", limit as number);
    await expect(prune).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: `The option maxTurns of a pruner is ${JSON.stringify(String(limit))}; it must be a whole number of 0 or more.`,
    });
  });

  test.for([-1, 0.5, "10"])("is a token budget of %s, of the pruner or of a call", async (maxTokens) => {
    const bad = { maxTokens: maxTokens as number };
    expect(() => new RelevanceContextPruner(bad)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
    const prune = new RelevanceContextPruner().prune([user("a")], "a", 1, bad);
    await expect(prune).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });

  test.for([{ tokenizer: "words" }, { scorer: 1 }, { countTokens: {} }, { keepToolPairs: "yes" }])(
    "is an option of the wrong kind: %j",
    (options) => {
      expect(() => new RelevanceContextPruner(options as never)).toThrow(
        expect.objectContaining({ code: "INVALID_OPTION" }),
      );
    },
  );

  test.for([{ score: Number.NaN }, { score: "1" }, { score: undefined }])("is a score of $score", async ({ score }) => {
    await expect(keep(["a", "b"], "a", 1, { scorer: () => score as number })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringContaining("message 0"),
    });
  });

  test("is a history that is not a list, and a query that is not a text", async () => {
    const pruner = new RelevanceContextPruner();
    await expect(pruner.prune("a" as never, "a", 1)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(pruner.prune([], undefined as never, 1)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});

/** The formula, word for word. */
function byFormula(history: readonly Message[], query: string, maxTurns: number): Message[] {
  if (history.length <= maxTurns) return [...history];
  const wordsOf = (text: string) => new Set(text.toLowerCase().split(/\s+/).filter(Boolean));
  const first = history.filter(({ role }) => role === "system").slice(0, maxTurns);
  const others = history.filter(({ role }) => role !== "system");
  const ranked = others
    .map((message, index) => {
      const overlap = [...wordsOf(query)].filter((word) => wordsOf(textOf(message.content)).has(word)).length;
      return { message, score: overlap + 0.3 * (others.length === 1 ? 1 : index / (others.length - 1)) };
    })
    .sort((a, b) => b.score - a.score)
    .slice(0, maxTurns - first.length);
  const kept = new Set([...first, ...ranked.map(({ message }) => message)]);
  return history.filter((message) => kept.has(message));
}

function tokensOf(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0);
}

function words(): fc.Arbitrary<string> {
  return fc.array(fc.constantFrom("order", "Refund", "x", "y", "z"), { maxLength: 4 }).map((list) => list.join(" "));
}

/** Any history, also with calls without results, results without calls, and reused ids. */
function anyHistory(): fc.Arbitrary<Message[]> {
  const id = fc.constantFrom("1", "2", "3");
  const said: fc.Arbitrary<Message> = fc.oneof(
    words().map(system),
    words().map((text) => user(text)),
    words().map((text) => assistant(text)),
    fc.array(id, { minLength: 1, maxLength: 3 }).map((ids) => calls(...ids)),
    fc.tuple(id, words()).map(([call, text]) => result(call, text)),
  );
  return fc.array(said, { maxLength: 14 });
}
