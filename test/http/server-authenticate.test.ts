import { readFileSync } from "node:fs";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import { expect, test } from "vitest";
import { type Authenticate, type CallerInit, createServer } from "../../src/http/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { measureLag } from "../measure-lag.ts";
import { startTestServer, TOKENS, tokenOf } from "./server-support.ts";
import { authenticateWith } from "./programs/jwt-sign-in.ts";

const { publicKey, privateKey } = await generateKeyPair("EdDSA");
const stranger = await generateKeyPair("EdDSA");
const jwk: JWK = await exportJWK(publicKey);

interface Claims {
  readonly sub?: string;
  readonly roles?: readonly string[];
  readonly issuer?: string;
  readonly audience?: string;
  readonly expiresAt?: Date;
  readonly key?: typeof privateKey;
}

function tokenWith({ sub = "ann", roles = [], ...claims }: Claims = {}): Promise<string> {
  return new SignJWT({ roles })
    .setProtectedHeader({ alg: "EdDSA" })
    .setSubject(sub)
    .setIssuer(claims.issuer ?? "https://id.example.org")
    .setAudience(claims.audience ?? "skein")
    .setExpirationTime(claims.expiresAt ?? new Date(Date.now() + 60_000))
    .sign(claims.key ?? privateKey);
}

const hour = new Date(Date.now() - 3_600_000);

test("a signed JWT authenticates its subject with the rights of its roles, and a forged, foreign or expired one is refused", async () => {
  const authenticate = await authenticateWith(jwk);
  await using server = await startTestServer({ authenticate, limits: { rate: null } });
  const me = async (token: string) => (await server.call("GET", "/api/me", undefined, { token })).body;
  expect(await me(await tokenWith({ roles: ["runner"] }))).toEqual({
    userId: "ann",
    admin: false,
    may: { run: true, approve: false, files: false },
  });
  expect(await me(await tokenWith({ sub: "root", roles: ["admin"] }))).toMatchObject({ userId: "root", admin: true });
  const bad = [
    tokenWith({ key: stranger.privateKey }),
    tokenWith({ issuer: "https://evil.example" }),
    tokenWith({ audience: "another" }),
    tokenWith({ expiresAt: hour }),
    `${btoa('{"alg":"none"}').replace(/=+$/, "")}.${btoa('{"sub":"root","roles":["admin"]}').replace(/=+$/, "")}.`,
    "not.a.jwt",
  ];
  for (const token of bad) expect(await me(await token)).toMatchObject({ status: 401, code: "UNAUTHORIZED" });
  expect((await server.call("GET", "/api/me")).status).toBe(401);
  expect((await server.call("GET", "/api/health")).status).toBe(200);
  expect(server.log.filter(({ level }) => level === "error")).toEqual([]);
});

test("a stream ends within a second after its caller's JWT has expired", async () => {
  const authenticate = await authenticateWith(jwk);
  await using server = await startTestServer({ authenticate });
  const { sessionId } = await server.manager.create({ userId: "ann" });
  // The times of a JWT are whole seconds, rounded down.
  const expiresAt = new Date(Math.floor(Date.now() / 1000) * 1000 + 2000);
  const headers = { authorization: `Bearer ${await tokenWith({ expiresAt })}` };
  const stream = await fetch(`${server.url}/api/sessions/${sessionId}/watch`, { headers });
  expect(stream.status).toBe(200);
  const allowed = measureLag();
  await stream.text();
  const lateMs = Date.now() - expiresAt.getTime();
  expect(lateMs).toBeGreaterThanOrEqual(0);
  expect(lateMs).toBeLessThan(allowed(1000));
});

test("a token of the table has priority over the application's sign-in, which is called for all others", async () => {
  const asked: string[] = [];
  const authenticate: Authenticate = ({ headers }) => {
    asked.push(headers.get("authorization") ?? "none");
    return headers.get("cookie") === "signed-in=eve" ? { userId: "eve" } : null;
  };
  await using server = await startTestServer({ tokens: TOKENS, authenticate });
  const me = (headers: Record<string, string>) => server.call("GET", "/api/me", undefined, { headers });
  const cookie = "signed-in=eve";
  expect((await me({ authorization: `Bearer ${tokenOf("ann")}`, cookie })).body.userId).toBe("ann");
  expect(asked).toEqual([]);
  expect((await me({ cookie })).body.userId).toBe("eve");
  expect((await me({ authorization: "Bearer guess" })).status).toBe(401);
  expect(asked).toEqual(["none", "Bearer guess"]);
});

// biome-ignore format: a table reads best with one mistake to a line.
const broken: [why: string, answer: () => unknown][] = [
  ["throws", () => { throw new Error("The directory of users is down: password=hunter2"); }],
  ["rejects", () => Promise.reject(new Error("hunter2"))],
  ["returns nothing", () => undefined],
  ["returns true", () => true],
  ["names nobody", () => ({})],
  ["names an empty user", () => ({ userId: "" })],
  ["names a number", () => ({ userId: 7, admin: true })],
  ["returns a text for admin", () => ({ userId: "ann", admin: "yes" })],
  ["misspells a right", () => ({ userId: "ann", may: { aprove: false } })],
  ["returns an invalid expiresAt", () => ({ userId: "ann", expiresAt: "tomorrow" })],
];

test.for(broken)(
  "a sign-in that %s authenticates nobody, and is an error of the server in the log",
  async ([, answer]) => {
    const authenticate = answer as Authenticate;
    await using server = await startTestServer({ authenticate });
    const refused = await server.call("GET", "/api/sessions");
    expect(refused.body).toMatchObject({ status: 500, code: "INTERNAL" });
    expect(refused.text).not.toContain("hunter2");
    expect(server.log).toMatchObject([{ level: "error", error: expect.stringContaining("authenticate failed") }]);
  },
);

test("a server with authenticate may listen on other hosts, and an authenticate that is not a function is refused", async () => {
  await using store = openMemoryStore();
  const authenticate = (): CallerInit | null => null;
  await using server = await createServer({ store, authenticate, host: "0.0.0.0" });
  const { port } = new URL(await server.listen());
  expect((await fetch(`http://127.0.0.1:${port}/api/me`)).status).toBe(401);
  const notOne = "yes" as unknown as Authenticate;
  await expect(createServer({ store, authenticate: notOne })).rejects.toMatchObject({ code: "INVALID_OPTION" });
});

test("the guide contains the sign-in tested here, word for word", () => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
  const region = /\/\/ #region jwt\n([\s\S]*?)\/\/ #endregion/.exec(read("test/http/programs/jwt-sign-in.ts"))?.[1];
  expect(region).toBeDefined();
  expect(read("docs/guides/server.md")).toContain(`\`\`\`ts\n${region}\`\`\``);
});
