import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  type ApiToken,
  hashToken,
  openTokenFile,
  type TokenFileOptions,
  type TokenSource,
} from "../../src/http/index.ts";
import { measureLag } from "../measure-lag.ts";
import { makeDirectory } from "../moving/sample-store.ts";
import { answering, gate, pausing } from "./runs-agents.ts";
import { startTestServer, TOKENS, type TestServer, tokenOf } from "./server-support.ts";

/** How soon a change must take effect. */
const DEADLINE_MS = 1000;

const lineOf = (userId: string, more: object = {}): string =>
  `${JSON.stringify({ hash: hashToken(tokenOf(userId)), userId, ...more })}\n`;

/** A server with a token file for ann and bob, a session of ann, and the reported problems of the file. */
async function serveFile(options: Omit<TokenFileOptions, "onProblem"> = {}) {
  const path = join(await makeDirectory(), "tokens");
  await writeFile(path, lineOf("ann") + lineOf("bob"));
  const problems: string[] = [];
  const tokens = await openTokenFile(path, { ...options, onProblem: ({ message }) => problems.push(message) });
  onTestFinished(() => tokens[Symbol.dispose]());
  const server = await startTestServer({ tokens, limits: { rate: null } });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const { sessionId } = await server.manager.create({ userId: "ann" });
  const code = async (who: string): Promise<string | number> => {
    const { status, body } = await server.call("GET", "/api/me", undefined, { token: tokenOf(who) });
    return status === 200 ? 200 : body.code;
  };
  const within = async (who: string, expected: string | number): Promise<void> => {
    const [allowed, beganMs] = [measureLag(), performance.now()];
    await expect.poll(() => code(who), { interval: 20 }).toBe(expected);
    expect(performance.now() - beganMs).toBeLessThan(allowed(DEADLINE_MS));
  };
  return { path, problems, server, sessionId, code, within };
}

/** Opens a stream; `ended` resolves to the time of its end. */
async function openStream(
  { url }: TestServer,
  path: string,
  who: string,
): Promise<{ readonly ended: Promise<number> }> {
  const stream = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${tokenOf(who)}` } });
  expect(stream.status).toBe(200);
  return { ended: stream.text().then(() => performance.now()) };
}

test.for(["in place", "by a rename"])(
  "a token removed from a file written %s is refused within a second, and its streams end",
  async (how) => {
    const { path, server, sessionId, code, within } = await serveFile();
    const ends = await Promise.all([1, 2, 3].map(() => openStream(server, `/api/sessions/${sessionId}/watch`, "ann")));
    const replace = async (text: string): Promise<void> => {
      if (how === "in place") return writeFile(path, text);
      await writeFile(`${path}.new`, text);
      await rename(`${path}.new`, path);
    };
    const [allowed, beganMs] = [measureLag(), performance.now()];
    await replace(lineOf("bob"));
    for (const { ended } of ends) expect((await ended) - beganMs).toBeLessThan(allowed(DEADLINE_MS));
    expect(await code("ann")).toBe("UNAUTHORIZED");
    expect(await code("bob")).toBe(200);
    await replace(lineOf("bob") + lineOf("ann") + lineOf("eve"));
    await within("eve", 200);
    expect(await code("ann")).toBe(200);
  },
);

test("the stream of a run ends for a caller whose token was removed, and the run continues", async () => {
  const pause = gate();
  let tokens: readonly ApiToken[] = TOKENS;
  const source: TokenSource = { current: () => tokens };
  const agents = [answering([pausing(["One ", "two."], pause)], [], "helper")];
  await using server = await startTestServer({ tokens: source, agents, limits: { rate: null } });
  const { sessionId } = await server.manager.create({ userId: "ann" });
  const ann = { token: tokenOf("ann") };
  const started = await server.call("POST", `/api/sessions/${sessionId}/runs`, { input: "Count." }, ann);
  const path = `/api/sessions/${sessionId}/runs/${started.body.runId}`;
  const { ended } = await openStream(server, `${path}/events`, "ann");
  const kept = await openStream(server, `${path}/events`, "root");
  const [allowed, beganMs] = [measureLag(), performance.now()];
  tokens = TOKENS.filter(({ userId }) => userId !== "ann");
  expect((await ended) - beganMs).toBeLessThan(allowed(DEADLINE_MS));
  pause.open();
  await kept.ended;
  const run = await server.call("GET", path, undefined, { token: tokenOf("root") });
  expect(run.body.status).toBe("finished");
});

test("a stream ends when the rights of its token are reduced, and when it expires", async () => {
  const soon = new Date(Date.now() + 1500).toISOString();
  const root: ApiToken = { token: tokenOf("root"), userId: "root", admin: true };
  let tokens: readonly ApiToken[] = [root, { token: tokenOf("ann"), userId: "ann", expiresAt: soon }];
  await using server = await startTestServer({ tokens: { current: () => tokens } });
  const { sessionId } = await server.manager.create({ userId: "ann" });
  const path = `/api/sessions/${sessionId}/watch`;
  const [ann, admin] = [await openStream(server, path, "ann"), await openStream(server, path, "root")];
  const allowed = measureLag();
  await ann.ended;
  expect(Date.now() - Date.parse(soon)).toBeLessThan(allowed(DEADLINE_MS));
  const expired = await server.call("GET", "/api/me", undefined, { token: tokenOf("ann") });
  expect(expired.body.code).toBe("TOKEN_EXPIRED");
  const beganMs = performance.now();
  tokens = [{ ...root, admin: false }];
  expect((await admin.ended) - beganMs).toBeLessThan(allowed(DEADLINE_MS));
});

const spoil: [how: string, act: (path: string) => Promise<void>, said: RegExp][] = [
  ["broken", (path) => writeFile(path, `${lineOf("bob")}{"hash":`), /^Line 2 of the token file "[^"]+" was not made/],
  ["empty", (path) => writeFile(path, ""), /has no token/],
  ["gone", (path) => rm(path), /cannot be read/],
];

test.for(spoil)(
  "while the file is %s its last valid tokens are accepted for graceMs with reports, then none is until it is valid",
  async ([, act, said]) => {
    const { path, problems, server, sessionId, code, within } = await serveFile({ graceMs: 1500 });
    const { ended } = await openStream(server, `/api/sessions/${sessionId}/watch`, "ann");
    await act(path);
    await expect.poll(() => problems.length, { interval: 20 }).toBe(1);
    expect(problems[0]).toMatch(said);
    expect(problems[0]).toMatch(/ Its last valid tokens are accepted for 2 s more\.$/);
    expect(problems[0]).not.toContain(hashToken(tokenOf("bob")));
    expect([await code("ann"), await code("bob"), await code("eve")]).toEqual([200, 200, "UNAUTHORIZED"]);
    await ended;
    const closed = await server.call("GET", "/api/me", undefined, { token: tokenOf("bob") });
    expect(closed.body).toMatchObject({ status: 503, code: "TOKENS_UNAVAILABLE" });
    expect(await code("ann")).toBe("TOKENS_UNAVAILABLE");
    expect((await server.call("GET", "/api/health")).status).toBe(200);
    await writeFile(path, lineOf("bob"));
    await within("bob", 200);
    expect(await code("ann")).toBe("UNAUTHORIZED");
  },
);

test("by default the grace period is a minute, and the problem is reported again while the file is invalid", async () => {
  const { path, problems, code } = await serveFile();
  await rm(path);
  await expect.poll(() => problems.length, { interval: 20 }).toBe(1);
  expect(problems[0]).toMatch(/accepted for 60 s more\.$/);
  expect(await code("ann")).toBe(200);
  await expect.poll(() => problems.length, { interval: 200 }).toBe(2);
  expect(problems[1]).toMatch(/accepted for (?:4\d|50) s more\.$/);
});

test("a source that throws or returns invalid tokens authenticates nobody, and the error is in the log", async () => {
  const short = [{ token: "short", userId: "ann" }];
  const fail = (): never => {
    throw new Error("No vault.");
  };
  for (const [spoilt, told] of [
    [() => short, /The token of ann needs a hash/],
    [fail, /No vault/],
    [() => null, /cannot check tokens at the moment/],
  ] as const) {
    let current: TokenSource["current"] = () => TOKENS;
    await using server = await startTestServer({ tokens: { current: () => current() } });
    const { sessionId } = await server.manager.create({ userId: "ann" });
    const { ended } = await openStream(server, `/api/sessions/${sessionId}/watch`, "ann");
    current = spoilt;
    const refused = await server.call("GET", "/api/me", undefined, { token: tokenOf("ann") });
    expect(refused.body).toMatchObject({ status: 503, code: "TOKENS_UNAVAILABLE" });
    await ended;
    expect((await server.call("GET", "/api/me", undefined, { token: "short" })).status).toBe(503);
    expect(server.log.filter(({ level }) => level === "error").map(({ error }) => error)).toContainEqual(
      expect.stringMatching(told),
    );
    current = () => TOKENS;
    expect((await server.call("GET", "/api/me", undefined, { token: tokenOf("ann") })).status).toBe(200);
  }
});
