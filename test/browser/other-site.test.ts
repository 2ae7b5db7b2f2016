import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { chromiumMissing, launchChromium } from "../../scripts/chromium.mjs";
import type { ServerInit } from "../../src/http/index.ts";
import { skipBecause } from "../skip.ts";
import { startTestServer, type TestServer, tokenOf } from "../http/server-support.ts";

/*
 * A page of another origin is the attacker, in a real browser. `localhost` and `127.0.0.1` are two sites to it, and two ports
 * of one name are one site and two origins.
 */

let browser: Browser | null = null;
let attacker: Server;

beforeAll(async () => {
  attacker = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>Evil</title><body></body>");
  });
  attacker.listen(0, "127.0.0.1");
  await once(attacker, "listening");
});
afterAll(async () => {
  await browser?.close();
  attacker.closeAllConnections();
  attacker.close();
});

/** The attempts of the page; each returns what it could read, and never throws. */
const ATTACK = `async (url) => {
  const seen = [];
  const tell = async (name, work) => { try { seen.push([name, await work()]); } catch { seen.push([name, "refused"]); } };
  const body = '{"name":"Planted"}';
  await tell("no-cors post", async () => (await fetch(url + "/api/sessions", { method: "POST", mode: "no-cors", body })).type);
  await tell("cors post", async () => (await fetch(url + "/api/sessions", { method: "POST", body, headers: { "content-type": "application/json" } })).text());
  await tell("cors get", async () => (await fetch(url + "/api/sessions")).text());
  await tell("credentialed get", async () => (await fetch(url + "/api/sessions", { credentials: "include" })).text());
  const element = (name, attributes, heard) => tell(name, () => new Promise((resolve, reject) => {
    const made = document.createElement(name);
    for (const event of heard) made["on" + event] = () => (event === "error" ? reject(new Error()) : resolve(event));
    Object.assign(made, attributes);
    document.body.append(made);
  }));
  await element("img", { src: url + "/api/sessions" }, ["load", "error"]);
  await element("script", { src: url + "/api/sessions" }, ["load", "error"]);
  await tell("event source", () => new Promise((resolve, reject) => {
    const source = new EventSource(url + "/api/sessions/s/watch");
    source.onopen = () => resolve("open");
    source.onerror = () => { source.close(); reject(new Error()); };
  }));
  // The page cannot see the response to a form; the server's log shows whether it arrived.
  for (const enctype of ["text/plain", "application/x-www-form-urlencoded"]) {
    const form = Object.assign(document.createElement("form"), { action: url + "/api/sessions", method: "post", enctype });
    form.target = "frame-" + enctype;
    form.append(Object.assign(document.createElement("input"), { name: body, value: "" }));
    document.body.append(Object.assign(document.createElement("iframe"), { name: form.target }), form);
    form.submit();
  }
  return seen;
}`;

/** The requests that reached the server's routes, by the headers of the browser. */
async function attack(
  init: Partial<ServerInit>,
  hosts: { readonly page: string; readonly server: string },
): Promise<{ seen: [string, string][]; server: TestServer; page: Page }> {
  const server = await startTestServer({ limits: { rate: null }, ...init });
  await server.manager.create({ userId: "local", id: "s" });
  browser ??= await launchChromium();
  const page = await (await browser.newContext()).newPage();
  await page.goto(`http://${hosts.page}:${(attacker.address() as AddressInfo).port}/`);
  const url = `http://${hosts.server}:${new URL(server.url).port}`;
  const seen = (await page.evaluate(`(${ATTACK})(${JSON.stringify(url)})`)) as [string, string][];
  return { seen, server, page };
}

const places = [
  { page: "localhost", server: "localhost" },
  { page: "127.0.0.1", server: "127.0.0.1" },
  { page: "localhost", server: "127.0.0.1" },
  { page: "127.0.0.1", server: "localhost" },
];
const doors: [name: string, init: Partial<ServerInit>][] = [
  ["without tokens", {}],
  ["whose sign-in knows the browser", { authenticate: () => ({ userId: "local", admin: true }) }],
  ["with tokens", { tokens: [{ token: tokenOf("ann"), userId: "local" }] }],
];

test.for(doors.flatMap(([name, init]) => places.map((hosts) => ({ name, init, ...hosts }))))(
  "a page of $page on another port gets nothing from a server at $server $name, and changes nothing there",
  async ({ init, ...hosts }, context) => {
    const missing = chromiumMissing();
    if (missing !== null) skipBecause(context, missing);
    const { seen, server, page } = await attack(init, hosts);
    await using _ = server;
    for (const [name, what] of seen) expect([name, what]).toEqual([name, name === "no-cors post" ? what : "refused"]);
    expect(seen).toHaveLength(7);
    // The POST without CORS, the one with a preflight, and the two forms.
    const posts = (): number => server.log.filter(({ method }) => method === "POST" || method === "OPTIONS").length;
    await expect.poll(posts).toBe(4);
    // None of them reached a route.
    expect(new Set(server.log.map(({ status }) => status))).toEqual(new Set([403]));
    expect((await server.manager.list()).items.map(({ header }) => header.id)).toEqual(["s"]);
    // Following a link to the studio is allowed; following one to a route is not.
    const url = `http://${hosts.server}:${new URL(server.url).port}`;
    const [from, statuses] = [page.url(), [] as number[]];
    for (const path of ["/", "/api/sessions"]) {
      await page.goto(from);
      const answered = page.waitForResponse((response) => response.url() === url + path);
      // Delayed, as the navigation closes the page that is asked to do it.
      await page.evaluate(`void setTimeout(() => { location.href = ${JSON.stringify(url + path)}; }, 0)`);
      statuses.push((await answered).status());
      // A page that is closed during a navigation may never close.
      await page.waitForURL(url + path);
    }
    expect(statuses).toEqual([200, 403]);
    await page.context().close();
  },
);
