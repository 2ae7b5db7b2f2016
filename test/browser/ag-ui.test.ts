import type { Page } from "playwright-core";
import { expect } from "vitest";
import { type BrowserTest, browserTest } from "./browser-test.ts";

const AG_UI = { server: "ag-ui" } as const;

/** A page with a new thread. */
async function openThread({ open, server }: Pick<BrowserTest, "open" | "server">) {
  const id = crypto.randomUUID();
  const page = await open({ at: `${server.url}/#${id}`, mayFail: /script-src/ });
  await isReady(page);
  return { id, page };
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

const lines = (page: Page): Promise<string[]> => page.getByRole("listitem").allTextContents();
const isReady = (page: Page): Promise<void> => page.getByText("ready", { exact: true }).waitFor();
const press = (page: Page, name: string | RegExp): Promise<void> => page.getByRole("button", { name }).click();

browserTest(
  "@ag-ui/client streams text and reasoning, shows tools and the state, and asks for approval, once more after a reload",
  async (given) => {
    const { id, page } = await openThread(given);
    await page.locator("pre").click();
    await say(page, "look");
    const looked = ["user: look", "reasoning: I should look.", "assistant: [look]", "tool: a garden"];
    await expect.poll(() => lines(page)).toEqual([...looked, "assistant: It is done."]);
    await isReady(page);
    expect((await given.server.client.sessions.state(id)).variables).toEqual({ count: 1 });
    await say(page, "pay");
    await page.getByText('Approve: May pay run? {"euros":5}').waitFor();
    await page.reload();
    await expect.poll(() => page.locator("pre").textContent()).toBe('{"count":1}');
    await press(page, /^Approve/);
    await expect.poll(() => lines(page)).toHaveLength(10);
    expect((await lines(page)).slice(-2)).toEqual(["tool: paid", "assistant: It is done."]);
    await isReady(page);
    await say(page, "pay");
    await press(page, /^Deny/);
    await expect.poll(async () => (await lines(page)).at(-1)).toBe("assistant: It is done.");
    await expect.poll(async () => (await lines(page)).at(-2)).toContain("denied");
    await isReady(page);
    const all = await lines(page);
    await page.reload();
    await expect.poll(() => lines(page)).toEqual(all);
  },
  AG_UI,
);

browserTest(
  "an AG-UI page that is reloaded during an answer has every word once, and the run has continued",
  async (given) => {
    const { id, page } = await openThread(given);
    await say(page, "count 30");
    await expect.poll(async () => (await lines(page))[1]).toContain("word-5 ");
    await page.reload();
    await expect.poll(async () => (await lines(page))[1]).toContain("word-12 ");
    await page.reload();
    const words = Array.from({ length: 30 }, (_, index) => `word-${index + 1} `).join("");
    await expect.poll(() => lines(page)).toEqual(["user: count 30", `assistant: ${words}`]);
    await isReady(page);
    const [run, ...others] = await given.server.client.runs.ofSession(id);
    expect([run?.status, others]).toEqual(["finished", []]);
  },
  AG_UI,
);
