import { randomUUID } from "node:crypto";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { chromiumMissing, launchChromium } from "../../scripts/chromium.mjs";
import { postgresUrl } from "../postgres-server.ts";
import { skipBecause } from "../skip.ts";
import { type Asked, lastText, openChatModel } from "./chat-model.ts";
import { openProduct, type Product, type Program } from "./product.ts";

const PACKAGES = [
  "@hono/node-server",
  "hono",
  "zod",
  "openai",
  "postgres",
  "react",
  "react-dom",
  "ai",
  "@ai-sdk/react",
  "vite",
];

const ACTION_MS_MAX = 60_000;

/** A door that the test opens while an answer is given. */
let goOn = (): void => {};
const reached = new Promise<void>((resolve) => (goOn = resolve));

async function* story(): AsyncGenerator<string> {
  yield "Your order ";
  await reached;
  yield "is packed.";
}

function answer(asked: Asked) {
  const said = lastText(asked);
  if (asked.response_format !== undefined) {
    return JSON.stringify({ agent: /order|cancel/.test(said) ? "orders" : "shop", urgent: false });
  }
  const role = asked.messages.at(-1)?.role;
  if (role === "tool") return /cancelled/.test(said) ? "It is cancelled." : story();
  if (/^Where/.test(said)) return [{ name: "find_order", arguments: { number: "4711" } }];
  if (/^Please cancel/.test(said)) return [{ name: "cancel_order", arguments: { number: "4711" } }];
  return `${asked.tools === undefined ? "Shop" : "Orders"}: ${said}`;
}

async function startServer(product: Product, env: NodeJS.ProcessEnv): Promise<{ program: Program; url: string }> {
  const program = product.start(["server.mjs"], { env: { PORT: "0", ...env } });
  const printed = await program.until((text) => /^Listening on .*\n/m.test(text));
  return { program, url: `http://localhost:${/^Listening on (\d+)\n/m.exec(printed)?.[1]}` };
}

const lines = (page: Page): Promise<string[]> => page.getByRole("listitem").allTextContents();
const isReady = (page: Page): Promise<void> => page.getByText("ready", { exact: true }).waitFor();
async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

test("the support chat works as its documents say, on SQLite and then on PostgreSQL", async (context) => {
  const missing = chromiumMissing();
  if (missing !== null) skipBecause(context, missing);
  await using model = await openChatModel(answer);
  await using product = await openProduct("support-chat", PACKAGES, {
    OPENAI_API_KEY: "k",
    OPENAI_BASE_URL: model.url,
  });
  const postgres = await postgresUrl();
  await product.run(["node_modules/vite/bin/vite.js", "build", "--logLevel", "error"]);
  const browser = await launchChromium();
  try {
    const first = await startServer(product, {});
    const visitor = await browser.newContext();
    visitor.setDefaultTimeout(ACTION_MS_MAX);
    const page = await visitor.newPage();
    await page.goto(`${first.url}/sign-in/ann`);
    await isReady(page);

    // Triage chooses the agent; an answer survives a reload in the middle of it.
    await say(page, "Where is my order?");
    await expect.poll(() => lines(page)).toEqual(["Where is my order?", "[find_order: output-available]Your order "]);
    await page.reload();
    await expect.poll(() => lines(page)).toEqual(["Where is my order?", "[find_order: output-available]Your order "]);
    goOn();
    await expect
      .poll(() => lines(page))
      .toEqual(["Where is my order?", "[find_order: output-available]Your order is packed."]);
    await isReady(page);
    await say(page, "When do you open?");
    await expect.poll(async () => (await lines(page)).at(-1)).toBe("Shop: When do you open?");
    await isReady(page);

    // A question is still there after a reload, and after a move to another store.
    await say(page, "Please cancel my order.");
    await page.getByText('cancel_order {"number":"4711"}?').waitFor();
    await page.reload();
    await page.getByText('cancel_order {"number":"4711"}?').waitFor();
    const asked = await lines(page);
    first.program.child.kill("SIGTERM");
    expect(await first.program.ended).toBe(0);
    const copy = ["copy", "--from", "sqlite:./chats.db", "--to", postgres, "--trust-store"];
    await product.run(["node_modules/skein/dist/cli/skein.js", ...copy]);

    const second = await startServer(product, { STORE: postgres });
    const chat = page.url().slice(page.url().indexOf("#"));
    await page.goto(`${second.url}/${chat}`);
    await expect.poll(() => lines(page)).toEqual(asked);
    await isReady(page);
    await page.getByRole("button", { name: "Yes" }).click();
    await expect.poll(async () => (await lines(page)).at(-1)).toBe("[cancel_order: output-available]It is cancelled.");

    // Others see none of it, and no user has more than two open chats.
    const as = (user: string) => ({ cookie: `user=${user}`, "content-type": "application/json" });
    const id = chat.slice(1);
    expect((await fetch(`${second.url}/api/chat/${id}`, { headers: as("ben") })).status).toBe(404);
    expect((await fetch(`${second.url}/api/chat/${id}`)).status).toBe(401);
    const open = (user: string, id: string = randomUUID()) => {
      const message = { id: randomUUID(), role: "user", parts: [{ type: "text", text: "Hello?" }] };
      const body = JSON.stringify({ id, messages: [message], agent: "shop" });
      return fetch(`${second.url}/api/chat`, { method: "POST", headers: as(user), body });
    };
    expect(await (await open("ann")).text()).toContain("Hello?");
    const third = await visitor.newPage();
    await third.goto(`${second.url}/#${randomUUID()}`);
    await isReady(third);
    await say(third, "Hello?");
    await third.getByText("The limit of 2 open sessions of a user is reached.").waitFor();
    expect(await (await open("ben")).text()).toContain("Hello?");

    const requests = Array.from({ length: 80 }, () => fetch(`${second.url}/api/chat/${id}`, { headers: as("eve") }));
    expect((await Promise.all(requests)).map(({ status }) => status)).toContain(429);

    // A user's data are exported, and erased; the nightly job erases old sessions.
    const mine = await fetch(`${second.url}/my/data`, { headers: as("ann") });
    expect(await mine.text()).toContain("Please cancel my order.");
    const erased = await fetch(`${second.url}/my/data`, { method: "DELETE", headers: as("ann") });
    expect(await erased.json()).toMatchObject({ sessions: 2 });
    const empty = await fetch(`${second.url}/api/chat/${id}`, { headers: as("ann") });
    expect(await empty.json()).toEqual({ id, messages: [] });
    expect(await product.run(["nightly.mjs"], { env: { STORE: postgres } })).toBe("Erased 0 chats.\n");
    expect(await product.run(["nightly.mjs"], { env: { STORE: postgres, KEEP_DAYS: "0" } })).toBe("Erased 1 chats.\n");
  } finally {
    await browser.close();
  }
});
