import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { browserTest } from "./browser-test.ts";
import { say, view } from "./talk.ts";

const row = (page: Page, name: string): Locator =>
  page.getByRole("region", { name: "Timeline of checkpoints" }).getByRole("listitem", { name, exact: true });

/** Asks the agent to write a file, and approves it. */
async function write(page: Page, what: string): Promise<void> {
  await say(page, what);
  const asked = page.getByRole("form", { name: "Approval of write_workspace_file" });
  await asked.getByRole("button", { name: "Approve" }).click();
  await asked.waitFor({ state: "hidden" });
}

/** Creates a checkpoint with files and this note. */
async function hold(page: Page, note: string): Promise<void> {
  await view(page, "Checkpoints");
  const form = page.getByRole("form", { name: "Create a checkpoint" });
  await form.getByRole("textbox").fill(note);
  await form.getByRole("checkbox", { name: /With the current files/ }).check();
  await form.getByRole("button", { name: "Create a checkpoint" }).click();
  await row(page, note).getByText("with files", { exact: true }).waitFor();
}

async function bringBack(page: Page, note: string): Promise<void> {
  const found = row(page, note);
  await found.getByRole("button", { name: "Restore", exact: true }).click();
  await found.getByRole("checkbox", { name: /Also restore its files/ }).check();
  await found.getByRole("button", { name: "Restore it" }).click();
  await found.getByRole("button", { name: "Restore it" }).waitFor({ state: "hidden" });
}

browserTest(
  "files that an agent writes between two checkpoints are shown as their difference, and are restored back and forth",
  async ({ open, server: { workspace, client } }) => {
    const page = await open();
    const plan = (): Promise<string> => readFile(join(workspace, "plan.txt"), "utf8");
    await page.getByRole("button", { name: "Start a session" }).click();
    await write(page, "write train to plan.txt");
    const [id = ""] = /(?<=sessions\/)[^/]+/.exec(page.url()) ?? [];
    const idle = () => expect.poll(async () => (await client.sessions.get(id)).running).toBe(null);
    await idle();
    await hold(page, "by train");
    await view(page, "Transcript");
    await write(page, "write boat to plan.txt");
    await idle();
    await hold(page, "by boat");

    await row(page, "by train").getByRole("checkbox", { name: "Compare" }).check();
    await row(page, "by boat").getByRole("checkbox", { name: "Compare" }).check();
    const files = page.getByRole("list", { name: "Files that differ" });
    await files.getByText("plan.txt").click();
    const lines = files.locator("pre");
    expect([await lines.locator("del").innerText(), await lines.locator("ins").innerText()]).toEqual([
      expect.stringContaining("train"),
      expect.stringContaining("boat"),
    ]);

    await bringBack(page, "by train");
    expect([await plan(), await readdir(workspace)]).toEqual(["train", ["plan.txt"]]);
    await page.getByRole("status").filter({ hasText: 'before going back to "by train"' }).waitFor();
    await bringBack(page, 'before going back to "by train"');
    expect(await plan()).toBe("boat");
  },
);

browserTest(
  "checkpoints without files are shown as such, and restoring one does not change files",
  async ({ open, server: { client } }) => {
    const { header } = await client.sessions.create({});
    for (const note of ["first", "second"]) await client.checkpoints.create(header.id, { metadata: { note } });
    const page = await open({ at: `#/sessions/${header.id}/checkpoints` });
    for (const note of ["first", "second"]) await row(page, note).getByRole("checkbox", { name: "Compare" }).check();
    await page.getByText("Neither checkpoint holds files.").waitFor();
    await row(page, "first").getByRole("button", { name: "Restore", exact: true }).click();
    await row(page, "first").getByText("Files are not changed: the checkpoint holds none.").waitFor();
    expect(
      await row(page, "first")
        .getByRole("checkbox", { name: /Also restore its files/ })
        .count(),
    ).toBe(0);
  },
);

browserTest(
  "without a directory for tools, the studio tells so and offers no files",
  async ({ open, server: { client } }) => {
    const { header } = await client.sessions.create({});
    const page = await open({ at: `#/sessions/${header.id}/checkpoints` });
    await page.getByText("neither the session nor the server has a directory where tools work").waitFor();
    expect(await page.getByRole("checkbox", { name: /files/i }).count()).toBe(0);
    await page.getByRole("button", { name: "Create a checkpoint" }).click();
    await page.getByRole("region", { name: "Timeline of checkpoints" }).getByRole("listitem").waitFor();
  },
  { server: "slow" },
);
