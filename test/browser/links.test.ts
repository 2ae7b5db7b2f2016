import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { expect, onTestFinished, type TestContext, test } from "vitest";
import { chromiumMissing, launchChromium } from "../../scripts/chromium.mjs";
import { sessionMiddleware } from "../../src/http/middleware/session-middleware.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { listen } from "../http/web-app.ts";
import { startTestServer, tokenOf } from "../http/server-support.ts";
import { skipBecause } from "../skip.ts";

/* Links of an attacker, followed in a real browser. */

async function openBrowser(context: TestContext, ...more: readonly string[]): Promise<Browser> {
  const missing = chromiumMissing();
  if (missing !== null) skipBecause(context, missing);
  const browser = await launchChromium(more);
  onTestFinished(() => browser.close());
  return browser;
}

test("a link does not put a visitor into the session of its author", async (context) => {
  const browser = await openBrowser(context);
  const manager = new SessionManager({ store: openMemoryStore() });
  const { handle } = sessionMiddleware({ manager });
  const app = await listen((request) =>
    handle(request, async (_request, session) => {
      await session.addTurn({ role: "user", content: "My secret." });
      return new Response(`in ${session.id}`, { headers: { "content-type": "text/html" } });
    }),
  );
  onTestFinished(() => app.close());
  const { url } = app;
  const theirs = /in (\S+)/.exec(await (await fetch(url)).text())?.[1] ?? "";
  const evil = createServer((_request, response) => {
    const link = `<!doctype html><a href="${url}/?session_id=${theirs}">A prize</a>`;
    response.writeHead(200, { "content-type": "text/html" }).end(link);
  });
  evil.listen(0, "127.0.0.1");
  onTestFinished(() => {
    evil.closeAllConnections();
    evil.close();
  });
  await once(evil, "listening");
  const page = await browser.newPage();
  await page.goto(`http://localhost:${(evil.address() as AddressInfo).port}/`);
  await page.click("a");
  await page.waitForURL(/session_id/);
  expect(await page.textContent("body")).toMatch(/^in \S+$/);
  expect(await page.textContent("body")).not.toContain(theirs);
  expect((await manager.getState(theirs))?.turnCount).toBe(1);
});

test("a token in the URL of another host is not accepted, so that no link signs a user in as someone else", async (context) => {
  const browser = await openBrowser(context, "--host-resolver-rules=MAP studio.example.org 127.0.0.1");
  const studioDirectory = fileURLToPath(new URL("../../dist/studio", import.meta.url));
  const server = await startTestServer({ studioDirectory, tokens: [{ token: tokenOf("eve"), userId: "eve" }] });
  await using _ = server;
  const page = await browser.newPage();
  const address = `http://studio.example.org:${new URL(server.url).port}/`;
  await page.goto(`${address}#token=${tokenOf("eve")}`);
  await page.getByLabel("API token").waitFor();
  expect(page.url()).toBe(`${address}#/`);
  expect(await page.evaluate("JSON.stringify(sessionStorage)")).toBe("{}");
});
