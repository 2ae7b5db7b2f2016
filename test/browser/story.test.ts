import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { browserTest } from "./browser-test.ts";
import { say, view } from "./talk.ts";

/** The turn with a text, as a row of the transcript. */
function turnOf(page: Page, text: string | RegExp): Locator {
  return page.getByRole("listitem").filter({ hasText: text }).last();
}

browserTest(
  "a new user chats, lets a tool write a file, branches, compares, merges, restores a checkpoint and exports",
  async ({ open, server: { workspace, client } }) => {
    const page = await open();
    await page.getByRole("button", { name: "Start a session" }).click();
    await say(page, "Hello, who are you?");
    await page
      .getByText(/offline/i)
      .first()
      .waitFor();
    const [id = ""] = /(?<=sessions\/)[^/]+/.exec(page.url()) ?? [];

    // A tool writes a file after approval.
    await say(page, "write hello to a.txt");
    const asked = page.getByRole("form", { name: "Approval of write_workspace_file" });
    await asked.getByRole("button", { name: "Approve" }).waitFor();
    expect(existsSync(join(workspace, "a.txt"))).toBe(false);
    await asked.getByRole("button", { name: "Approve" }).click();
    await expect.poll(async () => readFile(join(workspace, "a.txt"), "utf8").catch(() => null)).toBe("hello");
    await expect.poll(async () => (await client.sessions.get(id)).running).toBe(null);

    // A checkpoint, to restore later.
    await view(page, "Checkpoints");
    await page.getByRole("button", { name: "Create a checkpoint" }).click();
    await expect.poll(async () => (await client.checkpoints.list(id)).length).toBe(1);
    const before = (await client.sessions.get(id)).leafId;

    // Another branch, from the first answer.
    await view(page, "Transcript");
    const first = turnOf(page, /Hello, who are you/);
    await first.hover();
    await first.getByRole("button", { name: "Branch here" }).click();
    await expect.poll(async () => (await client.sessions.get(id)).leafId).not.toBe(before);
    await say(page, "Another way, please.");
    await expect.poll(async () => (await client.sessions.get(id)).running).toBe(null);

    await view(page, "Compare and merge");
    const parted = page.getByRole("list", { name: "Turns after the common ancestor" });
    await parted.getByText("write hello to a.txt").first().waitFor();
    await parted.getByText("Another way, please.").first().waitFor();

    // A fork gets messages, which are merged back.
    await page.getByLabel("Name of the fork").fill("a try");
    await page.getByRole("button", { name: "Fork at the common ancestor" }).click();
    await expect.poll(() => page.url()).toMatch(/with=/);
    const [forkId = ""] = /(?<=with=)[^&]+/.exec(page.url()) ?? [];
    await client.sessions.addTurn(forkId, { role: "user", content: "Said in the fork." });
    await parted.getByText("Said in the fork.").first().waitFor();
    const merge = page.getByRole("region", { name: "Merge" });
    await merge.getByRole("button", { name: "Preview" }).click();
    await merge.getByRole("heading", { name: "Preview" }).waitFor();
    await merge.getByRole("button", { name: "Merge" }).click();
    await merge.getByRole("heading", { name: "Merged" }).waitFor();
    await merge.getByRole("link", { name: "Open the result" }).click();
    await turnOf(page, "Said in the fork.").waitFor();

    // Restores the checkpoint: the session has the turns before it again.
    await view(page, "Checkpoints");
    const timeline = page.getByRole("region", { name: "Timeline of checkpoints" });
    await timeline.getByRole("button", { name: "Restore", exact: true }).click();
    await timeline.getByRole("button", { name: "Restore it" }).click();
    await expect.poll(async () => (await client.sessions.path(id)).items.map((entry) => entry.id)).toContain(before);
    await view(page, "Transcript");
    await turnOf(page, "write hello to a.txt").waitFor();

    // The shared file opens offline.
    await page.getByRole("button", { name: "Share" }).click();
    const download = page.waitForEvent("download");
    await page
      .getByRole("dialog", { name: /share/i })
      .getByRole("button", { name: /download/i })
      .click();
    const file = await (await download).path();
    const exported = await readFile(file, "utf8");
    expect(exported).toContain("write hello to a.txt");
    const offline = await open({ at: `file://${file}` });
    await offline.getByText("write hello to a.txt").last().waitFor();
  },
);
