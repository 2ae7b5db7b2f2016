import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import type { RunView } from "../../src/http/client/index.ts";
import { faultsOf } from "./axe.ts";
import { type BrowserTest, browserTest, type PageOptions } from "./browser-test.ts";

const ASKING = { server: "asking" } as const;
const PRE = `document.querySelector(".run-approval-text")`;
const NARROW = { viewport: { width: 380, height: 800 } } as const;

/** Lets the agent call a tool, and opens the page that asks for approval. */
async function asked(
  { open, server }: Pick<BrowserTest, "open" | "server">,
  call: { readonly name: string; readonly arguments: object },
  options: PageOptions & { readonly group?: string } = {},
): Promise<{ page: Page; card: Locator; run: RunView }> {
  const { group, ...rest } = options;
  const { header } = await server.client.sessions.create({ name: "Asks" });
  const input = JSON.stringify(call);
  const run = await server.client.runs.start(header.id, { input, ...(group === undefined ? {} : { group }) });
  const page = await open({ at: `#/sessions/${header.id}/${group === undefined ? "talk" : "group"}`, ...rest });
  const card = page.getByRole("form", { name: /^Approval of / });
  await card.waitFor();
  return { page, card, run };
}

function command(text: string, more: object = {}): { name: string; arguments: object } {
  return { name: "run_shell_command", arguments: { command: text, ...more } };
}

browserTest(
  "a command is shown as text and not as JSON, with its directory and reach",
  async (given) => {
    const { card, page } = await asked(given, command('rm -rf "a b"/*', { cwd: "deep" }));
    expect(await card.locator("pre").first().textContent()).toBe('rm -rf "a b"/*');
    expect(await page.evaluate(`getComputedStyle(${PRE}).fontFamily`)).toContain("mono");
    expect(await card.locator("pre").nth(1).textContent()).toBe('{\n  "cwd": "deep"\n}');
    const reach = card.getByRole("list", { name: "What it can reach" }).getByRole("listitem");
    expect(await reach.allTextContents()).toEqual(["in /srv/work", "not isolated", "network"]);
  },
  ASKING,
);

browserTest(
  "nothing in a command is hidden: control characters, bidirectional marks, spaces and length are visible, and the end can be scrolled to",
  async (given) => {
    const hostile = `ls \u202e\u001b[8m${"\n".repeat(400)}echo ${"a".repeat(30_000)}\nשלום; rm -rf /end`;
    const { page, card } = await asked(given, command(hostile), NARROW);
    const text = card.locator("pre").first();
    const shown = (await text.textContent()) ?? "";
    expect(shown).toContain("ls [U+202E][U+001B][8m\n[399 empty lines]\necho a");
    expect(shown).toContain("a".repeat(30_000));
    expect(shown.endsWith("\nשלום; rm -rf /end")).toBe(true);
    await card.getByText("402 lines, 30,").waitFor();
    // It scrolls inside, so that the buttons stay in reach, and nothing is cut off at the side.
    const { scrollHeight, clientHeight, scrollWidth, clientWidth, order } = await page.evaluate<Measures>(MEASURE);
    expect(scrollHeight).toBeGreaterThan(clientHeight);
    expect(scrollWidth).toBe(clientWidth);
    expect(order).toBe("bidi-override");
    await text.focus();
    await page.keyboard.press("End");
    await expect.poll(() => page.evaluate(AT_END)).toBe(true);
    expect(await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")).toBe(true);
  },
  ASKING,
);

interface Measures {
  readonly scrollHeight: number;
  readonly clientHeight: number;
  readonly scrollWidth: number;
  readonly clientWidth: number;
  readonly order: string;
}

const MEASURE = `(({ scrollHeight, clientHeight, scrollWidth, clientWidth }) => ({
  scrollHeight, clientHeight, scrollWidth, clientWidth, order: getComputedStyle(${PRE}).unicodeBidi,
}))(${PRE})`;
const AT_END = `((pre) => pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 2)(${PRE})`;

browserTest(
  "a file write is shown with its path and the beginning of the text, and without the reach of commands",
  async (given) => {
    const { card } = await asked(given, {
      name: "write_workspace_file",
      arguments: { path: "notes/a\u202e.txt", content: `first line\n${"x".repeat(5000)}` },
    });
    await card.getByText("notes/a[U+202E].txt").waitFor();
    const text = (await card.locator("pre").first().textContent()) ?? "";
    expect(text.startsWith("first line\nxxx")).toBe(true);
    expect(text.length).toBeLessThan(2100);
    await card.getByText("2 lines, 5,011 characters; only the beginning is shown").waitFor();
    const reach = card.getByRole("list", { name: "What it can reach" }).getByRole("listitem");
    expect(await reach.allTextContents()).toEqual(["in /srv/work"]);
  },
  ASKING,
);

browserTest(
  "questions of an agent inside a tool, and of an agent in a group, can be answered like any other",
  async (given) => {
    const { card, page } = await asked(given, { name: "ask_helper", arguments: { command: "echo inside" } });
    expect(await card.locator("pre").first().textContent()).toBe("echo inside");
    await card.getByText("It is unknown what it can reach.").waitFor();
    await card.getByRole("button", { name: "Deny" }).click();
    // The tree shows the text as well, a moment later.
    await page.getByText("It is done.", { exact: true }).first().waitFor();
    await card.waitFor({ state: "detached" });

    const group = await asked(given, command("echo together"), { group: "crew" });
    expect(await group.card.locator("pre").first().textContent()).toBe("echo together");
    await group.card.getByText("of caller").waitFor();
    await group.card.getByRole("button", { name: "Deny" }).click();
    await group.card.waitFor({ state: "detached" });
  },
  ASKING,
);

browserTest(
  "axe finds nothing serious in the card, light and dark, wide and narrow",
  async (given) => {
    const { page, card, run } = await asked(given, command("rm -rf build && npm publish", { cwd: "a" }), NARROW);
    await card.scrollIntoViewIfNeeded();
    expect(await faultsOf(page, ".run-approval")).toEqual([]);
    await given.server.client.runs.cancel(run.sessionId, run.runId);
  },
  ASKING,
);
