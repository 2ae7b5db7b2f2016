import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { importSession } from "../../src/export/index.ts";
import { copyStore } from "../../src/stores/copy/copy-store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { holds } from "../../src/testing/store/blob-cases.ts";
import { backends } from "../store-backends.ts";
import { type BrowserTest, browserTest } from "./browser-test.ts";
import { pictureWidth, samplePicture } from "./sample-picture.ts";

const CHAT = { server: "chat" } as const;

/** A page with a new chat. */
async function openChat({ open, server }: Pick<BrowserTest, "open" | "server">, stock = false) {
  const id = crypto.randomUUID();
  // The AI SDK tests whether the page's policy allows compiling its checks.
  const page = await open({ at: `${server.url}/${stock ? "?stock" : ""}#${id}`, mayFail: /script-src/ });
  await page.getByText("ready", { exact: true }).waitFor();
  return { id, page };
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

const lines = (page: Page): Promise<string[]> => page.getByRole("listitem").allTextContents();
const isReady = (page: Page): Promise<void> => page.getByText("ready", { exact: true }).waitFor();
const press = (page: Page, name: string): Promise<void> => page.getByRole("button", { name }).click();

browserTest(
  "useChat with its default transport streams text and reasoning, shows tools, and asks for approval, also after a reload",
  async (given) => {
    const { page } = await openChat(given, true);
    await say(page, "look");
    await expect.poll(() => lines(page)).toEqual(["look", "I should look.[look: a garden]It is done."]);
    await isReady(page);
    await say(page, "pay");
    await page.getByText('pay {"euros":5}?').waitFor();
    await page.reload();
    await press(page, "Approve");
    await expect.poll(async () => (await lines(page)).at(-1)).toBe("I should pay.[pay: paid]It is done.");
    await isReady(page);
    await say(page, "pay");
    await press(page, "Deny");
    await expect.poll(async () => (await lines(page)).at(-1)).toBe("I should pay.[pay: output-denied]It is done.");
    const all = await lines(page);
    await isReady(page);
    await page.reload();
    await expect.poll(() => lines(page)).toEqual(all);
  },
  CHAT,
);

browserTest(
  "a page that is reloaded during an answer has every word once, and the run has continued",
  async (given) => {
    const { id, page } = await openChat(given, true);
    await say(page, "count 30");
    await expect.poll(async () => (await lines(page))[1]).toContain("word-5 ");
    await page.reload();
    await expect.poll(async () => (await lines(page))[1]).toContain("word-12 ");
    await page.reload();
    const words = Array.from({ length: 30 }, (_, index) => `word-${index + 1} `).join("");
    await expect.poll(() => lines(page)).toEqual(["count 30", words]);
    await isReady(page);
    const [run, ...others] = await given.server.client.runs.ofSession(id);
    expect([run?.status, others]).toEqual(["finished", []]);
  },
  CHAT,
);

browserTest(
  "stop cancels the run, and another answer is a branch beside the first",
  async (given) => {
    const { id, page } = await openChat(given);
    const { client } = given.server;
    await say(page, "count 100");
    await expect.poll(async () => (await lines(page))[1]).toContain("word-3 ");
    await press(page, "Stop");
    await expect.poll(async () => (await client.runs.ofSession(id))[0]?.status).toBe("cancelled");
    await isReady(page);
    await say(page, "Hello?");
    await expect.poll(async () => (await lines(page)).at(-1)).toMatch(/^Answer \d+\.$/);
    await isReady(page);
    const first = (await lines(page)).at(-1);
    await press(page, "Again");
    await expect.poll(async () => (await lines(page)).at(-1)).not.toBe(first);
    await isReady(page);
    const second = (await lines(page)).at(-1);
    const { items } = await client.sessions.entries(id);
    const said = items.flatMap((entry) => (entry.type === "message" ? [entry] : []));
    const answers = said.filter(({ message }) => message.content === first || message.content === second);
    expect(answers.map(({ parentId }) => parentId)).toEqual([answers[0]?.parentId, answers[0]?.parentId]);
    expect((await lines(page)).filter((line) => line === "Hello?")).toHaveLength(1);
  },
  CHAT,
);

browserTest(
  "a picture given to useChat is seen by the model byte for byte, shown after a reload, and survives a fork, an export, an import and a copy to every store",
  async (given) => {
    const { id, page } = await openChat(given);
    const picture = samplePicture();
    await page.getByLabel("Files").setInputFiles({ name: "stripes.png", mimeType: "image/png", buffer: picture });
    await say(page, "What is this?");
    const answer = `I see ${createHash("sha256").update(picture).digest("hex")}.`;
    await expect.poll(async () => (await lines(page)).at(-1)).toBe(answer);
    await isReady(page);
    await page.reload();
    await expect.poll(async () => (await lines(page)).at(-1)).toBe(answer);
    await expect.poll(() => pictureWidth(page, "shown")).toBe(64);
    const { client } = given.server;
    const fork = await client.sessions.fork(id, { branchName: "copy" });
    const file = await client.sessions.exportFile(fork.header.id, { format: "jsonl" });
    await using imported = openMemoryStore();
    await importSession(imported, (await file.text()).trimEnd().split("\n"));
    await holds(imported, fork.header.id, picture);
    const directory = await mkdtemp(join(tmpdir(), "skein-use-chat-"));
    try {
      await using own = await openSqliteStore({ path: given.server.databasePath });
      for (const backend of backends) {
        await using store = await backend.open(join(directory, backend.name));
        expect((await copyStore(own, store)).failures).toEqual([]);
        for (const each of [id, fork.header.id]) await holds(store, each, picture);
      }
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  },
  CHAT,
);
