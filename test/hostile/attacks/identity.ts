import { hashToken } from "../../../src/http/api-token.ts";
import { tokenOf } from "../../http/server-support.ts";
import { type Attack, type Attacker, at, attacks, must } from "../attack.ts";

type Row = Omit<Attack, "kind">;

/** A request that claims an identity in some way, which must not be believed. */
function claims(
  name: string,
  headers: (attacker: Attacker) => readonly string[],
  path = "/api/sessions",
  status: number | readonly number[] = 401,
): Row {
  return {
    name,
    who: "no token",
    send: (attacker) => attacker.raw(attacker.head("GET", path, ...headers(attacker))),
    expect: {
      status,
      never: (_attacker, { text }) => must(!text.includes("canary"), "Someone's sessions were shown."),
    },
  };
}
const CANARY = tokenOf("canary");

export const tokens: readonly Attack[] = attacks(
  "tokens that are none",
  claims("has no token", () => []),
  claims("has a token that nobody has", () => ["Authorization: Bearer token-of-nobody-0123456789"]),
  claims("has the beginning of a token", () => [`Authorization: Bearer ${CANARY.slice(0, -1)}`]),
  claims("has a token and something more", () => [`Authorization: Bearer ${CANARY}0`]),
  claims("has a token in capital letters", () => [`Authorization: Bearer ${CANARY.toUpperCase()}`]),
  claims("has the hash of a token", () => [`Authorization: Bearer ${hashToken(CANARY)}`]),
  claims("has an empty token", () => ["Authorization: Bearer "]),
  claims("has a token of 60 KB", () => [`Authorization: Bearer ${"x".repeat(60_000)}`]),
  claims("has a token of another scheme", () => [
    `Authorization: Basic ${Buffer.from(`canary:${CANARY}`).toString("base64")}`,
  ]),
  claims("has a token whose time is over", () => [`Authorization: Bearer ${tokenOf("expired")}`]),
  claims(
    "has two tokens",
    () => ["Authorization: Bearer token-of-nobody-0123456789", `Authorization: Bearer ${CANARY}`],
    "/api/sessions",
    401,
  ),
  claims("has two tokens in one header", () => [`Authorization: Bearer token-of-nobody-0123456789, Bearer ${CANARY}`]),
  claims("has a token in a cookie", () => [`Cookie: token=${CANARY}; authorization=${CANARY}`]),
  claims("has a token in the address", () => [], `/api/sessions?token=${CANARY}`, 401),
  claims("has a token as the address's user", () => [], `http://canary:${CANARY}@localhost/api/sessions`, 401),
  claims("has a token in a header of its own", () => [`X-Api-Key: ${CANARY}`, `X-Authorization: Bearer ${CANARY}`]),
);

/** Every route with a parameter, with ids of another user's data. */
const OTHERS: readonly (readonly [method: string, path: (canary: Attacker["canary"]) => string, body?: object])[] = [
  ...[
    "",
    "/state",
    "/entries",
    "/entries/secret",
    "/path",
    "/tree",
    "/context",
    "/compaction",
    "/forks",
    "/checkpoints",
  ].map((rest) => ["GET", ({ sessionId }: Attacker["canary"]) => at(sessionId, rest)] as const),
  ...["/analytics", "/lineage", "/export", "/export?format=html", "/watch", "/runs"].map(
    (rest) => ["GET", ({ sessionId }: Attacker["canary"]) => at(sessionId, rest)] as const,
  ),
  ["PATCH", ({ sessionId }) => at(sessionId), { name: "taken" }],
  ["DELETE", ({ sessionId }) => at(sessionId)],
  ...(
    [
      ["/undelete", {}],
      ["/suspend", {}],
      ["/resume", {}],
      ["/close", {}],
      ["/entries", { entries: [{ type: "custom", customType: "x" }] }],
      ["/turns", { role: "user", content: "x" }],
      ["/leaf", { entryId: "secret" }],
      ["/prune", { entryId: "secret" }],
      ["/compact", {}],
      ["/undo-compaction", {}],
      ["/forks", { branchName: "x" }],
      ["/merges", { branchId: "x" }],
      ["/checkpoints", {}],
      ["/runs", { input: "x" }],
      ["/recover", {}],
    ] as const
  ).map(([rest, body]) => ["POST", ({ sessionId }: Attacker["canary"]) => at(sessionId, rest), body] as const),
  ["PUT", ({ sessionId, entryId }) => at(sessionId, `/labels/${entryId}`), { label: "x" }],
  ["GET", ({ checkpointId }) => `/api/checkpoints/${checkpointId}`],
  ["DELETE", ({ checkpointId }) => `/api/checkpoints/${checkpointId}`],
  ["POST", ({ checkpointId }) => `/api/checkpoints/${checkpointId}/restore`, {}],
  ["GET", ({ checkpointId }) => `/api/checkpoints/${checkpointId}/diff/${checkpointId}`],
  ["GET", ({ busyId, runId }) => at(busyId, `/runs/${runId}`)],
  ["GET", ({ busyId, runId }) => at(busyId, `/runs/${runId}/events`)],
  ["POST", ({ busyId, runId }) => at(busyId, `/runs/${runId}/cancel`), {}],
  ["POST", ({ busyId, question }) => at(busyId, `/questions/${question}`), { approve: true }],
  ["POST", ({ busyId }) => at(busyId, "/steer"), { content: "x" }],
  ["POST", ({ busyId }) => at(busyId, "/follow-ups"), { content: "x" }],
];
const NAMES: Attacker["canary"] = {
  userId: "canary",
  sessionId: ":id",
  entryId: "secret",
  checkpointId: ":checkpoint",
  forkId: ":fork",
  busyId: ":id",
  runId: ":run",
  question: ":question",
};

export const othersSessions: readonly Attack[] = attacks(
  "sessions, checkpoints and runs of others",
  OTHERS.map(
    ([method, path, body]): Row => ({
      name: `asks for ${method} ${decodeURIComponent(path(NAMES))}`,
      who: "another user",
      send: (attacker) => attacker.call(method, path(attacker.canary), body),
      expect: {
        status: 404,
        never: (_attacker, { text }) => must(!text.includes("canary sings"), "It says what was said."),
      },
    }),
  ),
  {
    name: "lists the sessions of someone else",
    who: "another user",
    send: (attacker) => attacker.call("GET", "/api/sessions?userId=canary"),
    expect: { status: 200, never: (_attacker, { text }) => must(!text.includes('"canary"'), "They are shown.") },
  },
  {
    name: "searches for what someone else said",
    who: "another user",
    send: (attacker) => attacker.call("GET", "/api/search?q=sings&userId=canary"),
    expect: { status: 200, never: (_attacker, { text }) => must(!text.includes("sings"), "It is found.") },
  },
  {
    name: "searches with a pattern for what someone else said",
    who: "another user",
    send: (attacker) => attacker.call("GET", "/api/search?q=re:sings"),
    expect: { status: 200, never: (_attacker, { text }) => must(!text.includes("sings"), "It is found.") },
  },
  {
    name: "adds up what someone else spent",
    who: "another user",
    send: (attacker) => attacker.call("GET", "/api/analytics?userId=canary&groupBy=user"),
    expect: { status: 200, never: (_attacker, { text }) => must(!text.includes("canary"), "It is shown.") },
  },
  {
    name: "makes a session for someone else",
    who: "another user",
    send: (attacker) => attacker.call("POST", "/api/sessions", { userId: "canary" }),
    expect: { status: 403, code: "FORBIDDEN" },
  },
  {
    name: "merges someone else's fork into a session of its own",
    who: "another user",
    send: async (attacker) =>
      attacker.call("POST", at(await attacker.session(), "/merges"), { branchId: attacker.canary.forkId }),
    expect: { status: 404, code: "SESSION_NOT_FOUND" },
  },
  {
    name: "forks its own session from someone else's checkpoint",
    who: "another user",
    send: async (attacker) =>
      attacker.call("POST", at(await attacker.session(), "/forks"), {
        branchName: "x",
        fromCheckpoint: attacker.canary.checkpointId,
      }),
    expect: { status: 404, code: "CHECKPOINT_NOT_FOUND" },
  },
);

export const reservedIds: readonly Attack[] = attacks(
  "ids that mean something to the program",
  ...[
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "null",
    "undefined",
    ".",
    "..",
    "=",
    " ",
    "-",
    "*",
    "%",
    "a/b",
    "a\u0000b",
    "x".repeat(600),
    "' OR 1=1 --",
    "../canary",
    "😀",
  ].flatMap((id): Row[] => [
    {
      name: `asks for the session ${JSON.stringify(id.slice(0, 30))}`,
      who: "user",
      send: (attacker) => attacker.raw(attacker.head("GET", `/api/sessions/${encodeURIComponent(id)}/state`)),
      expect: { status: /^(?:[a-z]+|\.\.?)$/i.test(id) && id.length < 600 ? 404 : 400 },
    },
  ]),
  ...["__proto__", "constructor", "valueOf"].flatMap((id): Row[] => [
    {
      name: `runs the agent ${id}`,
      who: "user",
      send: async (attacker) => attacker.call("POST", at(await attacker.session(), "/runs"), { input: "x", agent: id }),
      expect: { status: 404, code: "AGENT_NOT_FOUND" },
    },
    {
      name: `runs the model ${id}`,
      who: "user",
      send: async (attacker) => attacker.call("POST", at(await attacker.session(), "/runs"), { input: "x", model: id }),
      expect: { status: 404, code: "MODEL_NOT_FOUND" },
    },
    {
      name: `asks for the run and the checkpoint ${id}`,
      who: "user",
      send: async (attacker) => {
        must((await attacker.call("GET", `/api/checkpoints/${id}`)).status === 404, "There is such a checkpoint.");
        return attacker.call("GET", at(await attacker.session(), `/runs/${id}`));
      },
      expect: { status: 404, code: "RUN_NOT_FOUND" },
    },
  ]),
);
