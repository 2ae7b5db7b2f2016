import { type Attack, type Attacker, at, attacks, must } from "../attack.ts";
import { chain, header, said } from "../log-lines.ts";

type Row = Omit<Attack, "kind">;
const REFUSED = { status: 400, code: "INVALID_REQUEST" } as const;
const TOO_LARGE = { status: 413, code: "BODY_TOO_LARGE" } as const;

/** The routes that accept JSON, with the field to attack. A field `$` is the body itself. */
type Made = { readonly sessionId: string };
const ROUTES: readonly (readonly [
  what: string,
  method: string,
  path: (made: Made) => string,
  rest: object,
  field: string,
])[] = [
  ["a session's metadata", "POST", () => "/api/sessions", {}, "metadata"],
  ["a turn's metadata", "POST", ({ sessionId }) => at(sessionId, "/turns"), { role: "user", content: "x" }, "metadata"],
  ["a turn's content", "POST", ({ sessionId }) => at(sessionId, "/turns"), { role: "user" }, "content"],
  ["appended entries", "POST", ({ sessionId }) => at(sessionId, "/entries"), {}, "entries"],
  ["variables", "PATCH", ({ sessionId }) => at(sessionId), {}, "variables"],
  ["a checkpoint's metadata", "POST", ({ sessionId }) => at(sessionId, "/checkpoints"), {}, "metadata"],
  ["a run's input", "POST", ({ sessionId }) => at(sessionId, "/runs"), {}, "input"],
  ["the turns of a merge", "POST", ({ sessionId }) => at(sessionId, "/merges"), { branchId: "x" }, "turnIds"],
  ["a fork's name", "POST", ({ sessionId }) => at(sessionId, "/forks"), {}, "branchName"],
  ["a leaf", "POST", ({ sessionId }) => at(sessionId, "/leaf"), {}, "entryId"],
  ["a label", "PUT", ({ sessionId }) => at(sessionId, "/labels/x"), {}, "label"],
  ["a branch to prune", "POST", ({ sessionId }) => at(sessionId, "/prune"), {}, "entryId"],
  ["a compaction", "POST", ({ sessionId }) => at(sessionId, "/compact"), {}, "model"],
  ["a reason to close", "POST", ({ sessionId }) => at(sessionId, "/close"), {}, "reason"],
  ["a recovery", "POST", ({ sessionId }) => at(sessionId, "/recover"), {}, "$"],
];

/** One attack on each of the routes. */
function onEach(
  name: string,
  value: () => string,
  options: { only?: readonly string[]; refusal?: typeof REFUSED | typeof TOO_LARGE } = {},
): Row[] {
  return ROUTES.filter(([what]) => options.only === undefined || options.only.includes(what)).map(
    ([what, method, path, rest, field]): Row => ({
      name: `${name} as ${what}`,
      who: "user",
      async send(attacker) {
        const sessionId = await attacker.session();
        const inner = value();
        const body =
          field === "$"
            ? inner
            : `${JSON.stringify(rest).slice(0, -1)}${Object.keys(rest).length > 0 ? "," : ""}"${field}":${inner}}`;
        return sendAs(attacker, method, path({ sessionId }), body);
      },
      expect: options.refusal ?? REFUSED,
    }),
  );
}

function sendAs(attacker: Attacker, method: string, path: string, body: string): ReturnType<Attacker["call"]> {
  const length = Buffer.byteLength(body);
  if (length < 500_000) return attacker.call(method, path, body);
  const type = ["Content-Type: application/json", `Content-Length: ${length}`];
  return attacker.raw(attacker.head(method, path, ...type), body);
}

const nested = (open: string, inside: string, close: string, levels: number) =>
  `${open.repeat(levels)}${inside}${close.repeat(levels)}`;

function deepFile(name: string, lines: () => readonly unknown[]): Row {
  return { name, who: "user", send: (attacker) => attacker.importLog(lines()), expect: REFUSED };
}

const raw = (entry: object, value: string) => JSON.stringify(entry).replace('"$"', value);

export const deepNesting: readonly Attack[] = attacks(
  "deep nesting",
  onEach("nests 10,000 lists", () => nested("[", "", "]", 10_000)),
  onEach("nests 5,000 objects", () => nested('{"a":', "1", "}", 5000)),
  onEach("opens 400,000 lists and closes none", () => "[".repeat(400_000), { only: ["a run's input", "a recovery"] }),
  {
    name: "nests 190 schemas in an output, each twice in the next by a reference",
    who: "user",
    async send(attacker) {
      const $defs: Record<string, object> = { d0: { type: "string" } };
      for (let level = 1; level < 190; level++) {
        const $ref = `#/$defs/d${level - 1}`;
        $defs[`d${level}`] = { anyOf: [{ $ref }, { $ref }] };
      }
      const id = await attacker.session();
      const output = { type: "object", $defs, properties: { a: { $ref: "#/$defs/d189" } } };
      const asked = await attacker.call("POST", at(id, "/runs"), { input: 'call give_answer {"a":1}', output });
      if (asked.status < 400) await attacker.settled(id, asked.body.runId);
      return asked;
    },
    expect: { status: 202 },
  },
  deepFile("nests 5,000 objects in the header of an import", () => [
    raw(header({ metadata: { x: "$" } }), nested('{"a":', "1", "}", 5000)),
    ...chain(said("Hi.")),
  ]),
  deepFile("nests 100,000 lists in an entry of an import", () => [
    JSON.stringify(header()),
    raw(chain({ type: "custom", customType: "x", data: "$" })[0] as object, nested("[", "", "]", 100_000)),
  ]),
  deepFile("nests 300 levels in an entry of an import", () => [
    JSON.stringify(header()),
    raw(chain({ type: "custom", customType: "x", data: "$" })[0] as object, nested("[", "", "]", 300)),
  ]),
  deepFile("nests 3,000,000 lists as a line of an import", () => [
    JSON.stringify(header()),
    nested("[", "", "]", 3_000_000),
  ]),
  deepFile("nests 10,000 lists in the usage of an import", () => [
    JSON.stringify(header()),
    raw(
      chain({ type: "message", message: { role: "assistant", content: "x", usage: "$" } })[0] as object,
      nested("[", "", "]", 10_000),
    ),
  ]),
);

const ones = (count: number) => `[${"1,".repeat(count - 1)}1]`;
const FIFTEEN_MEGABYTES = 7_500_000;

export const longLists: readonly Attack[] = attacks(
  "long lists",
  onEach("sends 15 MB of numbers", () => ones(FIFTEEN_MEGABYTES), {
    only: ["a run's input", "appended entries", "a turn's content"],
  }),
  onEach("sends 15 MB of numbers", () => ones(FIFTEEN_MEGABYTES), {
    only: ["the turns of a merge", "a leaf"],
    refusal: TOO_LARGE,
  }),
  onEach("sends 400,000 numbers", () => ones(400_000)),
  onEach("sends 100,000 empty objects", () => `[${"{},".repeat(99_999)}{}]`, {
    only: ["a run's input", "appended entries", "a turn's content"],
  }),
  ...[5000, 20_000].map(
    (count): Row => ({
      name: `sends ${count.toLocaleString("en")} parts in one run`,
      who: "user",
      async send(attacker) {
        const part = '{"type":"text","text":"x"}';
        const body = `{"input":[${`${part},`.repeat(count - 1)}${part}]}`;
        return attacker.post(at(await attacker.session(), "/runs"), body);
      },
      expect: REFUSED,
    }),
  ),
  {
    name: "unsets 400,000 variables",
    who: "user",
    send: async (attacker) =>
      sendAs(attacker, "PATCH", at(await attacker.session()), `{"variables":{"unset":${ones(400_000)}}}`),
    expect: REFUSED,
  },
  {
    name: "calls 30,000 tools in one turn",
    who: "user",
    async send(attacker) {
      const call = '{"id":"c","name":"n","arguments":7}';
      const calls = `${`${call},`.repeat(29_999)}${call}`;
      return attacker.post(
        at(await attacker.session(), "/turns"),
        `{"role":"assistant","content":null,"toolCalls":[${calls}]}`,
      );
    },
    expect: REFUSED,
  },
  {
    name: "appends a model name of 500 KB, which 9,999 entries would be stored with",
    who: "user",
    async send(attacker) {
      const change = JSON.stringify({ type: "model_change", provider: "x".repeat(500_000), modelId: "m" });
      const entry = '{"type":"custom","customType":"x"}';
      const body = `{"entries":[${change},${`${entry},`.repeat(9998)}${entry}]}`;
      return attacker.post(at(await attacker.session(), "/entries"), body);
    },
    expect: { status: 400, code: "INVALID_ENTRY" },
  },
  {
    name: "appends 10,001 entries at once",
    who: "user",
    async send(attacker) {
      const entry = '{"type":"label"}';
      return attacker.post(
        at(await attacker.session(), "/entries"),
        `{"entries":[${`${entry},`.repeat(10_000)}${entry}]}`,
      );
    },
    expect: REFUSED,
  },
);

const keys = (count: number) => Array.from({ length: count }, (_, index) => `"k${index}":1`).join(",");

export const unknownKeys: readonly Attack[] = attacks(
  "unknown keys",
  ...(["/api/sessions", "/runs", "/turns", "/leaf"] as const).map(
    (path): Row => ({
      name: `sends 60,000 unknown keys to ${path}`,
      who: "user",
      async send(attacker) {
        const where = path === "/api/sessions" ? path : at(await attacker.session(), path);
        return attacker.post(where, `{${keys(60_000)}}`);
      },
      expect: {
        ...REFUSED,
        never: (_attacker, { text }) => must(text.length < 20_000, `The answer has ${text.length} characters.`),
      },
    }),
  ),
  {
    name: "sends a key of 900 KB, which no answer repeats",
    who: "user",
    send: (attacker) => attacker.post("/api/sessions", `{"${"x".repeat(900_000)}":1}`),
    expect: {
      ...REFUSED,
      never: (_attacker, { text }) => must(text.length < 20_000, `The answer has ${text.length} characters.`),
    },
  },
  {
    name: "sends names of inherited properties as keys",
    who: "user",
    send: (attacker) =>
      attacker.call("POST", "/api/sessions", '{"__proto__":{"admin":true},"constructor":1,"toString":2}'),
    expect: { status: 400 },
  },
  {
    name: "sends one key twice, the second time as an administrator's",
    who: "user",
    send: (attacker) => attacker.call("POST", "/api/sessions", `{"userId":"${attacker.userId}","userId":"canary"}`),
    expect: { status: 403, code: "FORBIDDEN" },
  },
);

/** The declared cost of a turn. */
function costly(name: string, said: string, status: 400 | 403, times = 1): Row {
  return {
    name,
    who: "user",
    async send(attacker) {
      const path = at(await attacker.session(), "/turns");
      let answer = await attacker.call("POST", path, `{"role":"assistant","content":"x",${said}}`);
      for (let i = 1; i < times; i++)
        answer = await attacker.call("POST", path, `{"role":"assistant","content":"x",${said}}`);
      return answer;
    },
    expect: {
      status,
      code: status === 400 ? "INVALID_REQUEST" : "FORBIDDEN",
      async never(attacker) {
        const { items } = (await attacker.call("GET", "/api/sessions")).body;
        must(
          items[0].cost === 0 && items[0].usage.totalTokens === 0,
          `The totals have changed: ${JSON.stringify(items[0])}`,
        );
      },
    },
  };
}

export const hugeNumbers: readonly Attack[] = attacks(
  "huge numbers",
  costly("spends 1e308 twice", '"cost":1e308', 403, 2),
  costly("spends more than there are numbers for", '"cost":1e999', 400),
  costly("spends less than nothing", '"cost":-1', 400),
  costly("uses half a token", '"tokensUsed":1.5', 403),
  costly("uses less than no token", '"tokensUsed":-1', 400),
  costly("uses as many tokens as can be counted, twice", `"tokensUsed":${Number.MAX_SAFE_INTEGER}`, 403, 2),
  costly("uses 1e308 tokens", '"tokensUsed":1e308', 403),
  ...([1e308, -1, 1.5, 2 ** 53] as const).map(
    (total): Row => ({
      name: `appends an answer that has used ${total} tokens and cost as much`,
      who: "user",
      async send(attacker) {
        const usage = { inputTokens: total, outputTokens: total, totalTokens: total };
        const message = { role: "assistant", content: "x", usage, cost: total, stopReason: "stop" };
        const entries = [0, 1].map(() => ({ type: "message", message }));
        return attacker.call("POST", at(await attacker.session(), "/entries"), { entries });
      },
      expect: {
        status: 403,
        code: "FORBIDDEN",
        async never(attacker) {
          const { body } = await attacker.call("GET", "/api/sessions");
          must(
            body.items[0].cost === 0 && body.items[0].usage.totalTokens === 0,
            `The totals are ${JSON.stringify(body.items[0])}`,
          );
        },
      },
    }),
  ),
  {
    name: "expects a version beyond what can be counted",
    who: "user",
    send: async (attacker) =>
      attacker.call(
        "POST",
        at(await attacker.session(), "/entries"),
        '{"entries":[{"type":"custom","customType":"x"}],"expectedVersion":1e308}',
      ),
    expect: { status: 400 },
  },
);

const WRONG: readonly (readonly [what: string, method: string, path: string, body: string])[] = [
  ["a name that is a number", "POST", "", '{"name":7}'],
  ["metadata that is a text", "POST", "", '{"metadata":"x"}'],
  ["metadata that is null", "POST", "", '{"metadata":null}'],
  ["an owner that is a list", "POST", "", '{"userId":["canary"]}'],
  ["an owner that is an object", "POST", "", '{"userId":{"$ne":null}}'],
  ["a role that there is not", "POST", "/turns", '{"role":"root","content":"x"}'],
  ["a content that is a number", "POST", "/turns", '{"role":"user","content":7}'],
  ["a picture without its data", "POST", "/turns", '{"role":"user","content":[{"type":"image"}]}'],
  ["a call that is a text", "POST", "/turns", '{"role":"assistant","content":null,"toolCalls":["x"]}'],
  ["entries that are an object", "POST", "/entries", '{"entries":{"length":1}}'],
  ["an entry of a run", "POST", "/entries", '{"entries":[{"type":"run","runId":"r","phase":"started"}]}'],
  [
    "an entry of an approval",
    "POST",
    "/entries",
    '{"entries":[{"type":"approval","runId":"r","callId":"c","decision":{"approved":true}}]}',
  ],
  ["an entry of an effect", "POST", "/entries", '{"entries":[{"type":"effect","runId":"r","callId":"c"}]}'],
  [
    "an entry of queued words",
    "POST",
    "/entries",
    '{"entries":[{"type":"queued","runId":"r","kind":"steer","content":"x"}]}',
  ],
  ["an entry that asks for a run", "POST", "/entries", '{"entries":[{"type":"run_request","runId":"r","input":"x"}]}'],
  ["an entry of instructions", "POST", "/entries", '{"entries":[{"type":"setup","agent":"x","instructions":"y"}]}'],
  ["an entry that says that it was erased", "POST", "/entries", '{"entries":[{"type":"erased","was":"message"}]}'],
  ["an entry that parks a run", "POST", "/entries", '{"entries":[{"type":"run_parked","runId":"r","questions":[]}]}'],
  ["an entry that stops a run", "POST", "/entries", '{"entries":[{"type":"cancel","runId":"r"}]}'],
  ["a run in another's name", "POST", "/runs", '{"input":"x","by":"canary"}'],
  ["a run with options of its own", "POST", "/runs", '{"input":"x","options":{"ask":"never"}}'],
  ["a run of a name that is a number", "POST", "/runs", '{"input":"x","runId":7}'],
  ["a run at a time that there is not", "POST", "/runs", '{"input":"x","notBefore":"2026-02-31T00:00:00.000Z"}'],
  ["a run at a time of a place", "POST", "/runs", '{"input":"x","deadline":"2026-02-01T00:00:00.000+02:00"}'],
  ["an entry of a status", "POST", "/entries", '{"entries":[{"type":"status","status":"closed"}]}'],
  ["an entry with a stamp of its own", "POST", "/entries", '{"entries":[{"type":"lost","reason":"x"}]}'],
  ["an input that is true", "POST", "/runs", '{"input":true}'],
  ["an agent that is an object", "POST", "/runs", '{"input":"x","agent":{}}'],
  ["a way to wait that there is not", "POST", "/runs", '{"input":"x","ifBusy":"kill"}'],
  ["a leaf that is a number", "POST", "/leaf", '{"entryId":7}'],
  ["a label that is a list", "PUT", "/labels/x", '{"label":[]}'],
  ["a body that is a list", "POST", "/forks", "[]"],
  ["a body that is null", "POST", "/checkpoints", "null"],
  ["a body that is a text", "POST", "/close", '"x"'],
  ["a body that is a number", "PATCH", "", "7"],
];

export const wrongTypes: readonly Attack[] = attacks(
  "values of the wrong kind",
  WRONG.map(
    ([what, method, path, body]): Row => ({
      name: `sends ${what}`,
      who: "user",
      async send(attacker) {
        const isNew = path === "" && method === "POST";
        return attacker.call(method, isNew ? "/api/sessions" : at(await attacker.session(), path), body);
      },
      expect: { status: 400 },
    }),
  ),
);
