import { type Attack, type Attacker, at, attacks, must } from "../attack.ts";
import { madeNone } from "../refusals.ts";
import { called, chain, header, said } from "../log-lines.ts";

type Row = Omit<Attack, "kind">;
const REFUSED = 400;

/** A file that is refused, after which its author has no more sessions than before. */
function refused(
  name: string,
  lines: readonly unknown[] | (() => readonly unknown[]),
  status: number | number[] = REFUSED,
): Row {
  return {
    name,
    who: "user",
    send: (attacker) => attacker.importLog(typeof lines === "function" ? lines() : lines),
    expect: { status, never: madeNone },
  };
}

/** A file of bytes that is refused. */
function refusedBytes(name: string, bytes: () => Uint8Array, status: number | number[] = REFUSED): Row {
  return {
    name,
    who: "user",
    send: (attacker) => attacker.post("/api/import", bytes(), "application/jsonl"),
    expect: { status, never: madeNone },
  };
}

/** A file that is accepted, but whose claims about itself are not. */
function disbelieved(name: string, lies: (canary: Attacker["canary"]) => object, check: Expect): Row {
  return {
    name,
    who: "user",
    send: (attacker) =>
      attacker.importLog([header(lies(attacker.canary) as Record<string, unknown>), ...chain(said("Hi."))]),
    expect: {
      status: 201,
      never: (attacker, { body }) => check(body.header as Record<string, unknown>, attacker),
    },
  };
}
type Expect = (kept: Record<string, unknown>, attacker: Attacker) => void;

const saysHi = chain(said("Hi."));
const lied = (name: string, lies: Record<string, unknown>, status: number | number[] = REFUSED): Row =>
  refused(name, () => [header(lies), ...saysHi], status);

export const headerLies: readonly Attack[] = attacks(
  "lies in the header of an import",
  disbelieved(
    "has the id of someone else's session",
    ({ sessionId }) => ({ id: sessionId }),
    ({ id }, { canary }) => must(id !== canary.sessionId, "An import chose its id."),
  ),
  disbelieved(
    "belongs to someone else",
    ({ userId }) => ({ userId }),
    ({ userId }, attacker) => must(userId === attacker.userId, "An import chose its owner."),
  ),
  disbelieved(
    "belongs to the administrator",
    () => ({ userId: "root" }),
    ({ userId }, attacker) => must(userId === attacker.userId, "An import chose its owner."),
  ),
  disbelieved(
    "belongs to nobody",
    () => ({ userId: null }),
    ({ userId }, attacker) => must(userId === attacker.userId, "An import chose its owner."),
  ),
  lied("is of a later format", { version: 99 }),
  lied("is of a format before the first", { version: 0 }),
  lied("has a version that is a text", { version: "1" }),
  lied("has a version without an end", { version: 1e308 }),
  lied("has an id that climbs", { id: "../../etc/passwd" }),
  lied("was made at a time that is none", { createdAt: "2026-02-30T00:00:00.000Z" }),
  lied("was made at a number", { createdAt: 0 }),
  lied("has metadata of 300 KB", { metadata: { x: "x".repeat(300_000) } }, 413),
  refused("has a prototype in its metadata", () => [
    JSON.stringify(header()).replace('"metadata":{}', '"metadata":{"__proto__":{"admin":true}}'),
    ...saysHi,
  ]),
  lied("has metadata that is a list", { metadata: [1] }),
  lied("has a working directory of 5,000 characters", { cwd: `/${"x".repeat(5000)}` }),
  lied("has an origin of a kind that nobody knows", {
    lineage: { parents: [], operator: "x", kind: "op_admin", extras: [] },
  }),
  refused("is a list", ["[]", ...saysHi]),
  refused("is missing", saysHi),
  refused("is there twice", [header(), header()]),
  refused("is an empty file", [""]),
);

export const damagedLines: readonly Attack[] = attacks(
  "damaged lines in an import",
  refused("is cut off in a line", () => [header(), JSON.stringify(saysHi[0]).slice(0, 40)]),
  refused("is cut off in its header", () => [JSON.stringify(header()).slice(0, 40)]),
  refused("has a line that is not JSON", [header(), "{", ...saysHi]),
  refused("has an empty line in the middle", [header(), "", ...saysHi]),
  refused("has a line that is an empty list", [header(), "[]"]),
  refused("has a line that is a number", [header(), "7"]),
  refused("has a line that is null", [header(), "null"]),
  refused("has a NUL between its lines", [header(), "\u0000", ...saysHi]),
  refusedBytes("is not UTF-8", () =>
    Buffer.concat([Buffer.from(`${JSON.stringify(header())}\n`), Buffer.from([0xff, 0xfe])]),
  ),
  refusedBytes("is UTF-16", () => Buffer.from(`${JSON.stringify(header())}\n`, "utf16le")),
  refusedBytes("begins with two marks of byte order", () => Buffer.from(`\ufeff\ufeff${JSON.stringify(header())}\n`)),
  refused("has a line of 9 MB", () => [header(), ...chain(said("x".repeat(9 * 1024 * 1024)))], 413),
  refused("has lines without what their type needs", [
    header(),
    { type: "message", id: "e0", parentId: null, timestamp: "now" },
  ]),
  refused("has an entry of a type that is no text", [header(), ...chain({ type: 7 })]),
  {
    name: "has 100,000 tiny lines",
    who: "user",
    send: (attacker) => {
      const label = JSON.stringify({
        type: "label",
        targetId: "e0",
        label: "x",
        parentId: "e0",
        timestamp: "2026-01-01T00:00:00.000Z",
        id: "",
      });
      const lines = Array.from({ length: 100_000 }, (_, index) => label.replace('"id":""', `"id":"l${index}"`));
      return attacker.importLog([header(), ...saysHi, ...lines]);
    },
    expect: { status: 413, code: "TOO_LARGE", never: madeNone },
  },
  {
    name: "has 5,000 lines of which each sets one more variable",
    who: "user",
    send: (attacker) => {
      const each = Array.from({ length: 5000 }, (_, index) => ({
        type: "variables",
        set: { [`k${index}`]: 1 },
        unset: [],
      }));
      return attacker.importLog([header(), ...chain(...each)]);
    },
    expect: { status: 201 },
  },
  refused(
    "takes back 4,500 compactions, all of which each line would be stored with",
    () => {
      const ids = Array.from({ length: 4500 }, (_, index) => `c${index}`);
      const made = ids.map((id) => ({ type: "compaction", id, summary: "x", firstKeptEntryId: "c0", tokensBefore: 1 }));
      const undone = ids.map((targetId) => ({ type: "compaction_undone", id: `u${targetId}`, targetId }));
      return [header(), ...chain(...made, ...undone)];
    },
    413,
  ),
  refused("closes for a reason of 1 MB, which each name would be stored with", () => {
    const names = Array.from({ length: 1000 }, (_, index) => ({ type: "session_info", name: `n${index}` }));
    return [header(), ...chain({ type: "status", status: "closed", reason: "x".repeat(1_000_000) }, ...names)];
  }),
  {
    name: "ends its lines with CRLF",
    who: "user",
    send: (attacker) =>
      attacker.post(
        "/api/import",
        [header(), ...saysHi].map((line) => `${JSON.stringify(line)}\r\n`).join(""),
        "application/jsonl",
      ),
    expect: { status: 201 },
  },
);

const node = (id: string, parentId: string | null) => ({
  ...said("Hi."),
  id,
  parentId,
  timestamp: "2026-01-01T00:00:00.000Z",
});

export const impossibleTrees: readonly Attack[] = attacks(
  "impossible trees in an import",
  refused("has two parents of each other", [header(), node("a", "b"), node("b", "a")]),
  refused("has an entry that is its own parent", [header(), node("a", "a")]),
  refused("has a parent that comes later", [header(), node("a", null), node("b", "c"), node("c", "a")]),
  refused("has a parent that is missing", [header(), node("a", "nowhere")]),
  refused("has an id twice", [header(), node("a", null), node("a", null)]),
  refused("has an id that is a number", [header(), { ...node("a", null), id: 7 }]),
  refused("has an id of 600 characters", [header(), node("x".repeat(600), null)]),
  refused("has an id with control characters", [header(), node("a\u0000\u001b[2J", null)]),
  refused("labels an entry that is missing", [
    header(),
    node("a", null),
    ...chain({ type: "label", targetId: "b", label: "x", id: "l" }),
  ]),
  refused("moves the leaf to an entry that is missing", [
    header(),
    node("a", null),
    ...chain({ type: "leaf", targetId: "b", id: "l" }),
  ]),
  {
    name: "keeps from an entry that is missing, so that no context can be built",
    who: "user",
    send: (attacker) => {
      const compaction = { type: "compaction", summary: "x", firstKeptEntryId: "b", tokensBefore: 1, id: "c" };
      return attacker.importLog([header(), node("a", null), { ...chain(compaction)[0], parentId: "a" }]);
    },
    expect: {
      status: 201,
      async never(attacker, { body }) {
        const context = await attacker.call("GET", at(body.header.id, "/context"));
        must(context.status < 500, "The context of an import fails", context);
      },
    },
  },
  {
    name: "gives its entries positions of its own",
    who: "user",
    send: (attacker) =>
      attacker.importLog([header(), { ...node("a", null), seq: 1e15 }, { ...node("b", "a"), seq: -1 }]),
    expect: {
      status: 201,
      async never(attacker, { body }) {
        const { items } = (await attacker.call("GET", at(body.header.id, "/entries"))).body;
        must(
          items.every(({ seq }: { seq: number }, index: number) => seq === index),
          "An import chose positions.",
        );
      },
    },
  },
);

export const forgedSums: readonly Attack[] = attacks(
  "forged sums in an import",
  ...[1e308, Number.MAX_SAFE_INTEGER, 1e15].map(
    (cost): Row => ({
      name: `says that each answer cost ${cost}`,
      who: "user",
      send(attacker) {
        const answer = called("read_workspace_file", {});
        const usage = {
          inputTokens: Number.MAX_SAFE_INTEGER,
          outputTokens: Number.MAX_SAFE_INTEGER,
          totalTokens: Number.MAX_SAFE_INTEGER,
        };
        const message = { ...(answer["message"] as object), cost, usage, toolCalls: [] };
        return attacker.importLog([header(), ...chain(said("Hi."), { ...answer, message }, { ...answer, message })]);
      },
      expect: {
        status: REFUSED,
        async never(attacker) {
          const { body, text } = await attacker.call("GET", "/api/analytics?groupBy=user");
          const [sums = { cost: 0, usage: { totalTokens: 0 } }] = body.rows;
          must(sums.cost === 0 && sums.usage.totalTokens === 0, `What an import says that it cost counts: ${text}`);
        },
      },
    }),
  ),
);
