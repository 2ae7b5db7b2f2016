import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { faultsOf } from "./axe.ts";
import { browserTest } from "./browser-test.ts";
import type { StudioServer } from "./studio-server.ts";
import { say } from "./talk.ts";

const PARKING = { server: "parking" } as const;

/** A session whose run asked for approval to write a file, and parked. */
async function parked(
  { client }: StudioServer,
  name: string,
): Promise<{ id: string; runId: string; question: string }> {
  const { header } = await client.sessions.create({ name });
  const { runId } = await client.runs.start(header.id, { input: `write hello to ${name}.txt` });
  await expect.poll(async () => (await client.runs.get(header.id, runId)).status).toBe("parked");
  const [asked] = (await client.runs.get(header.id, runId)).questions;
  return { id: header.id, runId, question: asked?.question as string };
}

function cardOn(page: Page) {
  return page.getByRole("form", { name: "Approval of write_workspace_file" });
}

browserTest(
  "a question survives a restart of a killed server, and its answer lets the run finish",
  async ({ open, server }) => {
    const { id, runId } = await parked(server, "kept");
    const page = await open({ at: `#/sessions/${id}/talk`, mayFail: /Failed to load resource|ERR_/ });
    await cardOn(page).getByText("kept.txt").waitFor();
    await page.getByText("The run continues after it").waitFor();
    await server.kill();
    await page.getByText("The connection to the server is lost").waitFor();
    await server.restart();
    await page.getByText("The connection to the server is lost").waitFor({ state: "detached" });
    await cardOn(page).waitFor();
    await page.reload();
    await cardOn(page).getByRole("textbox").fill("Looks right.");
    await cardOn(page).getByRole("button", { name: "Approve" }).click();
    await expect.poll(async () => (await server.client.runs.get(id, runId)).status).toBe("finished");
    expect(await readFile(join(server.workspace, "kept.txt"), "utf8")).toBe("hello");
    await cardOn(page).waitFor({ state: "detached" });
    const call = page.locator(".transcript-tool");
    await call.getByText("done", { exact: true }).waitFor();
    await call.locator("summary").click();
    await call.getByText(/^Approved by local, .*: Looks right\.$/).waitFor();
  },
  PARKING,
);

browserTest(
  "a message during an open question is rejected with the reason, and accepted after the run is cancelled",
  async ({ open, server }) => {
    const { id } = await parked(server, "busy");
    const page = await open({ at: `#/sessions/${id}/talk`, mayFail: /409/ });
    await cardOn(page).waitFor();
    expect(await page.getByRole("textbox", { name: "Message" }).getAttribute("placeholder")).toMatch(/question waits/);
    await say(page, "something else");
    await page
      .getByRole("alert")
      .getByText(/waits for an answer to/)
      .waitFor();
    await page.getByRole("button", { name: "Cancel the run" }).click();
    await cardOn(page).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("something else").first().waitFor();
    await expect.poll(async () => (await server.client.runs.ofSession(id))[0]?.status).toBe("finished");
    expect((await server.client.runs.ofSession(id))[1]).toMatchObject({ status: "cancelled", by: "local" });
  },
  PARKING,
);

browserTest(
  "all open questions are on one page, are answered there, and lead to their sessions",
  async ({ open, server }) => {
    const [first, second] = [await parked(server, "first"), await parked(server, "second")];
    const page = await open();
    await page.getByRole("link", { name: /^Questions 2/ }).click();
    const runs = page.getByRole("article");
    await expect.poll(() => runs.count()).toBe(2);
    const one = page.getByRole("article", { name: "first" });
    await one.getByText("in a session of local").waitFor();
    await one.getByRole("textbox").fill("Not today.");
    await one.getByRole("button", { name: "Deny" }).click();
    await one.waitFor({ state: "detached" });
    await page.getByRole("link", { name: /^Questions 1/ }).waitFor();
    const done = async (id: string, runId: string) => (await server.client.runs.get(id, runId)).status;
    await expect.poll(() => done(first.id, first.runId)).toBe("finished");
    await page.getByRole("article", { name: "second" }).getByRole("link").click();
    await cardOn(page).getByRole("button", { name: "Approve" }).click();
    await expect.poll(() => done(second.id, second.runId)).toBe("finished");
    await page.getByRole("link", { name: /^Questions/ }).click();
    await page.getByText("No run waits for an answer.").waitFor();
  },
  PARKING,
);

browserTest(
  "an answer that comes too late shows the earlier one",
  async ({ open, server }) => {
    const { id, question } = await parked(server, "late");
    const page = await open({ at: "#/questions", mayFail: /409/ });
    await cardOn(page).waitFor();
    await server.client.runs.approve(id, question, { note: "I was first." });
    await cardOn(page).getByRole("button", { name: "Deny" }).click();
    await page
      .getByRole("alert")
      .getByText(/^This was already answered\. Approved by local, .*: I was first\.$/)
      .waitFor();
  },
  PARKING,
);

browserTest(
  "axe finds nothing serious in the page of questions, light and dark, and it fits a narrow window",
  async ({ open, server }) => {
    const { id, runId } = await parked(server, "looks");
    const page = await open({ at: "#/questions" });
    await cardOn(page).waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await server.client.runs.cancel(id, runId);
  },
  PARKING,
);
