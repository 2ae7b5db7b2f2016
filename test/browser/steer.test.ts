import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { browserTest } from "./browser-test.ts";
import type { StudioServer } from "./studio-server.ts";
import { say, view } from "./talk.ts";

/** The turn of the transcript with a text. */
function turnOf(page: Page, text: string): Locator {
  return page.getByRole("region", { name: "Transcript" }).getByRole("listitem").filter({ hasText: text }).last();
}

/** A session with some messages, one after the other; resolves to its id and those of the turns. */
async function sessionOf(
  { client }: StudioServer,
  name: string,
  said: readonly string[],
): Promise<{ readonly id: string; readonly turns: readonly string[] }> {
  const { header } = await client.sessions.create({ name });
  const entries = said.map((content, index) => {
    const message =
      index % 2 === 0
        ? ({ role: "user", content } as const)
        : ({ role: "assistant", content, provider: "offline", model: "offline" } as const);
    return { id: `${header.id}-${index}`, type: "message", message } as const;
  });
  await client.sessions.append(header.id, { entries });
  return { id: header.id, turns: entries.map(({ id }) => id) };
}

browserTest("a denied call does not run, and the model gets the reason", async ({ open, server }) => {
  const { header } = await server.client.sessions.create({ name: "Denied" });
  const page = await open({ at: `#/sessions/${header.id}/talk` });
  await say(page, "write secret to denied.txt");
  const asked = page.getByRole("form", { name: "Approval of write_workspace_file" });
  await asked.getByText("denied.txt").waitFor();
  await asked.getByLabel("Reason for denying").fill("Not in this folder.");
  await asked.getByRole("button", { name: "Deny" }).click();
  await turnOf(page, "Not in this folder.").waitFor();
  await expect.poll(async () => (await server.client.sessions.get(header.id)).running).toBe(null);
  expect(existsSync(join(server.workspace, "denied.txt"))).toBe(false);
});

browserTest(
  "another model can be chosen for a turn, and the turn names it",
  async ({ open, server }) => {
    const { header } = await server.client.sessions.create({ name: "Picked" });
    const page = await open({ at: `#/sessions/${header.id}/talk` });
    await page.getByLabel("Model").selectOption("offline/offline");
    await say(page, "Which one are you?");
    const answer = turnOf(page, "I am offline. You said: Which one are you?");
    await answer.getByText("offline/offline").waitFor();
  },
  { server: "slow" },
);

browserTest("a message to a run that has just ended starts the next run", async ({ open, server }) => {
  const { header } = await server.client.sessions.create({ name: "Late words" });
  // The browser logs the response RUN_ENDED.
  const page = await open({ mayFail: /status of 409/ });
  // The page is never notified that the run has ended.
  await page.route("**/runs/*/events", () => {});
  await page.goto(`${server.url}/#/sessions/${header.id}/talk`);
  await say(page, "First words.");
  await turnOf(page, "You said: First words.").waitFor();
  await expect.poll(async () => (await server.client.sessions.get(header.id)).running).toBe(null);
  await page.getByLabel("When it is delivered").waitFor();
  await say(page, "Late words.");
  await turnOf(page, "You said: Late words.").waitFor();
});

browserTest("a link to an early turn loads, marks and focuses it", async ({ open, server }) => {
  const said = Array.from({ length: 160 }, (_, index) => `Turn number ${index + 1}.`);
  const { id, turns } = await sessionOf(server, "Long", said);
  const page = await open({ at: `#/sessions/${id}/talk?entry=${turns[4]}` });
  const marked = page.locator(`#turn-${turns[4]}[aria-current=true]`);
  await marked.getByText("Turn number 5.", { exact: true }).waitFor();
  await expect.poll(() => page.evaluate("document.activeElement.id")).toBe(`turn-${turns[4]}`);
  await expect.poll(() => page.evaluate(IN_VIEW)).toBe(true);
});

/** Whether the row that the URL names is visible. */
const IN_VIEW = `(() => {
  const { top, bottom } = document.querySelector("[aria-current=true].transcript-row").getBoundingClientRect();
  return top >= 0 && bottom <= window.innerHeight;
})()`;

browserTest("a user turn is edited and sent again on a branch, and the old one is kept", async ({ open, server }) => {
  const { id, turns } = await sessionOf(server, "Edited", ["First wording.", "An answer."]);
  const page = await open({ at: `#/sessions/${id}/talk` });
  const turn = turnOf(page, "First wording.");
  await turn.hover();
  await turn.getByRole("button", { name: "Edit and try again" }).click();
  await page.getByLabel("New message").fill("Better wording.");
  await page.getByRole("button", { name: "Send on a new branch" }).click();
  await turnOf(page, "I am offline. You said: Better wording.").waitFor();
  await turnOf(page, "First wording.").waitFor({ state: "detached" });
  const { nodes, activePath } = await server.client.sessions.tree(id);
  expect(nodes.map((node) => node.id)).toEqual(expect.arrayContaining([...turns]));
  expect(activePath).not.toContain(turns[0]);
});

browserTest("the tree is navigated, labelled and pruned by keyboard alone", async ({ open, server }) => {
  const { id, turns } = await sessionOf(server, "Branched", ["The root.", "A side branch."]);
  await server.client.sessions.moveLeaf(id, { entryId: turns[0] ?? "" });
  await server.client.sessions.addTurn(id, { role: "assistant", content: "The active branch." });
  const page = await open({ at: `#/sessions/${id}/talk?entry=${turns[1]}` });
  const selection = page.getByRole("region", { name: "Selected entry" });
  await selection.getByText("A side branch.").waitFor();
  const tree = page.getByRole("tree");
  await tree.focus();
  await page.keyboard.press("ArrowUp");
  await selection.getByText("The root.").waitFor();
  await page.keyboard.press("Enter");
  await selection.getByRole("button", { name: "Label" }).press("Enter");
  await page.keyboard.type("the beginning");
  await page.keyboard.press("Enter");
  await tree.getByText("the beginning").waitFor();
  const { nodes } = await server.client.sessions.tree(id);
  expect(nodes.find((node) => node.id === turns[0])?.label).toBe("the beginning");

  await tree.focus();
  await page.keyboard.press("ArrowDown");
  if ((await selection.getByText("A side branch.").count()) === 0) await page.keyboard.press("ArrowRight");
  await selection.getByText("A side branch.").waitFor();
  await selection.getByRole("button", { name: "Prune" }).press("Enter");
  await page.getByRole("button", { name: "Hide 1 entry" }).press("Enter");
  await tree.getByText("A side branch.").waitFor({ state: "detached" });
  expect((await server.client.sessions.tree(id)).nodes.map((node) => node.id)).not.toContain(turns[1]);
});

browserTest("a compaction is previewed and executed, and lists the replaced entries", async ({ open, server }) => {
  const said = Array.from({ length: 12 }, (_, index) => `Note ${index + 1} about the pond and the heron on it.`);
  const { id } = await sessionOf(server, "To compact", said);
  const page = await open({ at: `#/sessions/${id}/context` });
  const form = page.getByRole("region", { name: "Compact", exact: true });
  await form.getByRole("button", { name: "Compact" }).waitFor();
  expect(await form.getByRole("button", { name: "Compact" }).isDisabled()).toBe(true);
  await form.getByLabel("Recent tokens to keep, about").fill("40");
  await form.getByRole("button", { name: "Preview" }).click();
  await form.getByText(/a summary would replace \d+ entries and keep \d+ entries/).waitFor();
  expect((await server.client.sessions.context(id)).compaction).toBe(null);
  await form.getByRole("button", { name: "Compact" }).click();
  await form.getByText("The context is compacted.").waitFor();
  expect((await server.client.sessions.context(id)).compaction).not.toBe(null);
  await view(page, "Transcript");
  await turnOf(page, "Note 1 about the pond").first().waitFor();
});
