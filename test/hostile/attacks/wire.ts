import { type Attack, at, attacks, must } from "../attack.ts";
import { madeNone, sent } from "../refusals.ts";

type Row = Omit<Attack, "kind">;

const got = (
  name: string,
  path: string,
  status: number | readonly number[],
  code?: string | readonly string[],
  ...headers: string[]
): Row => ({
  name,
  who: "user",
  send: (attacker) => attacker.raw(attacker.head("GET", path, ...headers)),
  expect: { status, ...(code === undefined ? {} : { code }) },
});

export const longAddresses: readonly Attack[] = attacks(
  "addresses and headers that are too long",
  got("asks for a path of 20,000 characters", `/api/sessions/${"x".repeat(20_000)}`, 414, "URL_TOO_LONG"),
  got("asks with a query of 64 KB", `/api/sessions?cursor=${"x".repeat(64 * 1024)}`, 414, "URL_TOO_LONG"),
  got("asks with 4,000 parts of a query", `/api/sessions?${"a=1&".repeat(4000)}`, 400),
  got("sends a header of 256 KB", "/api/me", 431, undefined, `X-A: ${"x".repeat(256 * 1024)}`),
  got("sends 3,000 headers", "/api/me", 200, undefined, ...Array.from({ length: 3000 }, (_, index) => `X-${index}: y`)),
  got("searches for 15,000 characters", `/api/search?q=${"x".repeat(15_000)}`, 400),
);

export const badEncoding: readonly Attack[] = attacks(
  "paths that are badly encoded",
  ...["%", "%zz", "%c0%ae%c0%ae", "%ff", "%ed%a0%80", "%00", "%0d%0aSet-Cookie:%20a=b", "%u002e"].map(
    (segment): Row => ({
      name: `names an entry ${segment}`,
      who: "user",
      send: async (attacker) => {
        const id = await attacker.session();
        return attacker.raw(attacker.head("GET", at(id, `/entries/${segment}`)));
      },
      expect: {
        status: 400,
        never: (_attacker, { headers }) => must(headers.get("set-cookie") === null, "A path has set a header."),
      },
    }),
  ),
);

/** A path without a file extension that is no route is a client-side route of the studio. */
const IS_PAGE = /^\/(?:api\/(?:%2e%2e|\.)\/.*passwd|\.\.\/\.\.\/etc\/passwd|API\/me|tokens)$/;

export const climbingPaths: readonly Attack[] = attacks(
  "paths that climb",
  ...[
    "/api/%2e%2e/%2e%2e/etc/passwd",
    "/../../etc/passwd",
    "/..%2f..%2fetc%2fpasswd",
    "/%2e%2e%5c%2e%2e%5cetc%5cpasswd",
    "/api/sessions/..%2f..%2f..%2fetc%2fpasswd/export",
    "//evil.example/api/me",
    "/api//sessions",
    "/api/me/",
    "/api/me;admin=true",
    "/API/me",
    "/api/./me/../../etc/passwd",
    "/tokens",
    "/..%2ftokens",
    "/%2e%2e%2fsessions.db",
    "/x%2f..%2f..%2ftokens",
    "/sessions.db",
    "/.env",
  ].map((path): Row => {
    const row = got(`asks for ${path}`, path, IS_PAGE.test(path) ? 200 : path.endsWith("/export") ? 400 : 404);
    const isPage = (text: string) => text === "<!doctype html><title>The page</title>";
    return {
      ...row,
      expect: {
        ...row.expect,
        never: (_attacker, { status, text }) => must(status !== 200 || isPage(text), "It shows another file."),
      },
    };
  }),
);

export const repeatedQueries: readonly Attack[] = attacks(
  "queries that nobody asked for",
  got("gives a limit twice", "/api/sessions?limit=1&limit=1000", 400),
  got("gives a limit of a billion", "/api/sessions?limit=1000000000", 400),
  got("gives a limit that is negative", "/api/sessions?limit=-1", 400),
  got("gives 1,000 times a status", `/api/sessions?${"status=active&".repeat(1000)}`, 400),
  got("gives a prototype", "/api/sessions?__proto__=1", 400),
  got("gives a part of a prototype", "/api/sessions?constructor[prototype]=1", 400),
  got("gives something that nobody knows", "/api/me?admin=true", 400),
  got("gives a position beyond what can be counted", "/api/sessions?cursor=99999999999999999999", 400),
  got("gives a cursor that is not ours", "/api/sessions?cursor=eyJhIjoxfQ", 400),
  got("gives a period that is none", "/api/analytics?from=yesterday", 400),
);

export const methods: readonly Attack[] = attacks(
  "methods that a route does not take",
  ...["DELETE", "PUT", "PATCH"].map(
    (method): Row => ({
      name: `sends ${method} to all sessions`,
      who: "user",
      send: (attacker) => attacker.call(method, "/api/sessions", {}),
      expect: { status: 405, code: "METHOD_NOT_ALLOWED" },
    }),
  ),
  sent("sends TRACE", ({ head }) => [head("TRACE", "/api/me")], 405),
  sent("sends CONNECT", ({ head }) => [head("CONNECT", "evil.example:443")], 0),
  sent("sends a method that there is not", ({ head }) => [head("EVIL", "/api/me")], 400),
  ...["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"].map(
    (name): Row => ({
      name: `deletes someone's session by ${name}`,
      who: "another user",
      send: (attacker) => attacker.call("POST", at(attacker.canary.sessionId), {}, { headers: { [name]: "DELETE" } }),
      expect: { status: 405, code: "METHOD_NOT_ALLOWED" },
    }),
  ),
  {
    name: "deletes someone's session by a query",
    who: "another user",
    send: (attacker) => attacker.call("GET", `${at(attacker.canary.sessionId)}?_method=DELETE`),
    expect: { status: 400, code: "INVALID_REQUEST" },
  },
);

export const headerTricks: readonly Attack[] = attacks(
  "headers that say two things",
  sent("has a line break in a header", ({ head }) => [head("GET", "/api/me", "X-A: a\rb")]),
  sent("has a NUL in a header", ({ head }) => [head("GET", "/api/me", "X-A: a\0b")]),
  sent("has a space in the name of a header", ({ head }) => [head("GET", "/api/me", "X A: b")]),
  sent("folds a header over two lines", ({ head }) => [head("GET", "/api/me", "X-A: a", " b")], 400),
  sent("has no host", () => ["GET /api/me HTTP/1.1\r\nConnection: close\r\n\r\n"]),
  sent("has two hosts and a token", ({ head }) => [head("GET", "/api/me", "Host: evil.example")], 400),
  sent("has two tokens", ({ head }) => [head("GET", "/api/me", "Authorization: Bearer x")], 401),
  sent("has a host that is none", () => ["GET /api/me HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n"], 400),
  sent(
    "asks for another host's address",
    () => ["GET http://evil.example/api/me HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"],
    401,
  ),
  sent(
    "says that it comes from this machine",
    () => [
      "GET /api/me HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 127.0.0.1\r\nForwarded: for=127.0.0.1\r\nX-Real-IP: 127.0.0.1\r\nConnection: close\r\n\r\n",
    ],
    401,
  ),
  sent(
    "says who it is in headers of a proxy",
    () => [
      "GET /api/me HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-User: root\r\nRemote-User: root\r\nX-Remote-User: root\r\nConnection: close\r\n\r\n",
    ],
    401,
  ),
  sent("is HTTP/2 without asking", () => ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]),
  sent("is TLS", () => ["\x16\x03\x01\x02\x00\x01\x00\x01\xfchello\r\n\r\n"]),
  sent("is HTTP/0.9", () => ["GET /api/me\r\n\r\n"]),
);

const page = (
  name: string,
  method: string,
  headers: Record<string, string>,
  status: number | readonly number[],
): Row => ({
  name,
  who: "user",
  send: (attacker) => attacker.call(method, "/api/sessions", {}, { headers }),
  expect: {
    status,
    async never(attacker, answer) {
      must(answer.headers.get("access-control-allow-origin") === null, "Another site may read the answer.");
      if (answer.status >= 400) await madeNone(attacker);
    },
  },
});
const CROSS = { "sec-fetch-site": "cross-site" };

export const otherSites: readonly Attack[] = attacks(
  "pages of other sites",
  page("has another site's page make a session", "POST", CROSS, 403),
  page("has another site's page read", "GET", { ...CROSS, "sec-fetch-mode": "cors" }, 403),
  page(
    "has another site's picture read",
    "GET",
    { ...CROSS, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" },
    403,
  ),
  page(
    "has another site's page with its origin make a session",
    "POST",
    { ...CROSS, origin: "https://evil.example" },
    403,
  ),
  page("has another site's page with no origin make a session", "POST", { ...CROSS, origin: "null" }, 403),
  page("reads as another site, whose page gets nothing", "GET", { origin: "https://evil.example" }, 200),
  {
    name: "asks beforehand whether another site may",
    who: "no token",
    send: (attacker) =>
      attacker.raw(
        attacker.head(
          "OPTIONS",
          "/api/sessions",
          "Origin: https://evil.example",
          "Access-Control-Request-Method: POST",
        ),
      ),
    expect: {
      status: 401,
      never: (_attacker, { headers }) => must(headers.get("access-control-allow-origin") === null, "Another site may."),
    },
  },
);

export const slowSenders: readonly Attack[] = attacks(
  "slow senders and many at once",
  sent("never ends its headers", () => ["GET /api/me HTTP/1.1\r\nHost: localhost\r\nX-Slow: "], 408),
  {
    name: "holds 200 connections that say nothing",
    who: "user",
    async send(attacker) {
      const slow = Array.from({ length: 200 }, () => attacker.raw("GET /api/me HTTP/1.1\r\nHost: localhost\r\n"));
      const served = await attacker.call("GET", "/api/me");
      await Promise.all(slow);
      return served;
    },
    expect: { status: 200 },
  },
  {
    name: "sends 300 requests at once on one connection",
    who: "user",
    send: (attacker) => {
      const one = attacker.head("GET", "/api/me").replace("Connection: close\r\n", "");
      return attacker.raw(one.repeat(300), attacker.head("GET", "/api/me"));
    },
    expect: { status: 200 },
  },
  {
    name: "hides a second request in the body of the first",
    who: "user",
    send: (attacker) => {
      const hidden = attacker.head("DELETE", at(attacker.canary.sessionId));
      return attacker.raw(
        attacker.head(
          "POST",
          "/api/sessions",
          "Content-Type: application/json",
          `Content-Length: ${Buffer.byteLength(hidden)}`,
        ),
        hidden,
      );
    },
    expect: { status: 400, never: madeNone },
  },
);
