import { goldenText } from "../formats/foreign-samples.ts";
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { browserTest } from "./browser-test.ts";

/** The row of a session in the list. */
function rowOf(page: Page, name: string): Locator {
  return page.getByRole("list", { name: "Sessions" }).getByRole("listitem").filter({ hasText: name });
}

/** Waits until the list has exactly these sessions of some names. */
async function expectListed(page: Page, listed: readonly string[], missing: readonly string[]): Promise<void> {
  for (const name of missing) await rowOf(page, name).waitFor({ state: "detached" });
  for (const name of listed) await rowOf(page, name).waitFor();
}

browserTest("sessions are found by words, by a phrase and by a pattern", async ({ open, server: { client } }) => {
  for (const [name, content] of [
    ["Herons", "The grey heron stands in the pond."],
    ["Ponds", "A pond where the heron never stands."],
    ["Bills", "The invoice of the pond is number 4711."],
  ] as const) {
    const { header } = await client.sessions.create({ name });
    await client.sessions.addTurn(header.id, { role: "user", content });
  }
  const page = await open();
  const search = page.getByRole("searchbox", { name: "Search sessions" });
  await search.fill("heron pond");
  await expectListed(page, ["Herons", "Ponds"], ["Bills", "Plan a trip"]);
  await search.fill('"heron stands"');
  await expectListed(page, ["Herons"], ["Ponds", "Bills"]);
  await search.fill("re:number \\d{4}");
  await expectListed(page, ["Bills"], ["Herons", "Ponds"]);
  await search.fill("re:(");
  await page.getByRole("alert").filter({ hasText: "not a valid regular expression" }).waitFor();
  await search.fill("nobody ever said this");
  await page.getByText("No session matches.").waitFor();
  // A match leads to its turn.
  await search.fill('"number 4711"');
  await rowOf(page, "Bills").getByRole("link", { name: "The invoice of the pond" }).click();
  await page.locator("[aria-current=true]").getByText("The invoice of the pond").waitFor();
});

browserTest("sessions are filtered by status, run, project and user", async ({ open, server: { client } }) => {
  await client.sessions.create({ name: "In a project", cwd: "/projects/heron" });
  await client.sessions.create({ name: "Of another user", userId: "zoe" });
  const { header } = await client.sessions.create({ name: "Asleep" });
  await client.sessions.suspend(header.id);
  const working = await client.sessions.create({ name: "At work" });
  const run = await client.runs.start(working.header.id, { input: "write hello to b.txt" });
  const page = await open();
  await page.getByRole("button", { name: "Filter" }).click();
  const status = page.getByLabel("Status");
  await status.selectOption("Suspended");
  await expectListed(page, ["Asleep"], ["At work", "Plan a trip"]);
  await status.selectOption("Running");
  await expectListed(page, ["At work"], ["Asleep"]);
  await client.runs.cancel(run.sessionId, run.runId);
  await page.getByText("No session matches the filter.").waitFor();
  await status.selectOption("Interrupted");
  await expectListed(page, ["Interrupted in the middle"], ["At work", "Asleep"]);
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.getByLabel("Project").fill("/projects/heron");
  await expectListed(page, ["In a project"], ["Asleep", "Plan a trip"]);
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.getByLabel("User").fill("zoe");
  await expectListed(page, ["Of another user"], ["In a project", "Plan a trip"]);
});

browserTest("a session is renamed, suspended, resumed, closed, deleted and restored", async ({ open, server }) => {
  const { header } = await server.client.sessions.create({ name: "Born as this" });
  // A deleted session may be requested once more before the page is left.
  const page = await open({ at: `#/sessions/${header.id}/talk`, mayFail: /404/ });
  const more = async (item: string): Promise<void> => {
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name: item }).click();
  };
  await page.getByRole("button", { name: "Rename" }).click();
  await page.getByLabel("Name of the session").fill("Called this now");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Called this now" }).waitFor();
  await rowOf(page, "Called this now").waitFor();

  await more("Suspend");
  await page.getByText("This session is suspended.").waitFor();
  await more("Resume");
  await page.getByPlaceholder("Write a message").waitFor();
  await more("Close …");
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await page.getByText("This session is closed.").waitFor();
  expect((await server.client.sessions.get(header.id)).status).toBe("closed");

  await more("Delete");
  await page.getByText("Deleted “Called this now”.").last().waitFor();
  await rowOf(page, "Called this now").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await rowOf(page, "Called this now").waitFor();
  expect((await server.client.sessions.get(header.id)).name).toBe("Called this now");
});

browserTest(
  "a session deleted elsewhere can be restored, and an unknown one leads back to the list",
  async ({ open, server }) => {
    const { header } = await server.client.sessions.create({ name: "Deleted elsewhere" });
    const page = await open({
      at: `#/sessions/${header.id}/talk`,
      viewport: { width: 380, height: 800 },
      mayFail: /404/,
    });
    await page.getByRole("heading", { name: "Deleted elsewhere" }).waitFor();
    await server.client.sessions.delete(header.id);
    await page.getByText("This session was deleted.").waitFor();
    await page.getByRole("button", { name: "Restore it" }).click();
    await page.getByText("This session was deleted.").waitFor({ state: "detached" });
    await page.getByRole("textbox", { name: "Message" }).waitFor();

    await page.goto(`${server.url}/#/sessions/never-was/talk`);
    await page.getByRole("alert").filter({ hasText: "Could not load the session" }).waitFor();
    await page.getByRole("link", { name: "Sessions", exact: true }).click();
    await rowOf(page, "Deleted elsewhere").waitFor();
  },
);

browserTest("a double click makes one session, and the tab is named after it", async ({ open, server }) => {
  const page = await open();
  const count = async (): Promise<number> => (await server.client.sessions.list({ limit: 1000 })).items.length;
  const before = await count();
  // The delay of a real double click: the first click is handled when the second comes.
  await page.getByRole("button", { name: "New session" }).dblclick({ delay: 80 });
  await page.getByRole("heading", { name: "New session" }).waitFor();
  await expect.poll(() => page.title()).toBe("New session – Skein studio");
  expect(await count()).toBe(before + 1);
  await page.goBack();
  await page.getByRole("button", { name: "Start a session" }).waitFor();
  expect(await page.title()).toBe("Skein studio");
});

browserTest("Escape closes a form and returns the focus", async ({ open, server }) => {
  const { header } = await server.client.sessions.create({ name: "By keyboard" });
  await server.client.sessions.addTurn(header.id, { role: "user", content: "One turn." });
  const page = await open({ at: `#/sessions/${header.id}/talk` });
  const focused = (): Promise<string> =>
    page.evaluate<string>("document.activeElement.ariaLabel ?? document.activeElement.textContent");
  for (const name of ["Rename", "Label"]) {
    await page.getByRole("button", { name, exact: true }).first().press("Enter");
    await expect.poll(() => page.evaluate("document.activeElement.tagName")).toBe("INPUT");
    await page.keyboard.press("Escape");
    await expect.poll(focused).toBe(name);
  }
  await page.getByRole("button", { name: "More actions" }).press("Enter");
  await page.getByRole("menuitem", { name: "Close …" }).press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await expect.poll(focused).toMatch(/^More/);
});

browserTest("administrators delete everything of a user, with a report before and after", async ({ open, server }) => {
  const { client } = server;
  const { header } = await client.sessions.create({ name: "Of Zora alone", userId: "zora" });
  await client.sessions.addTurn(header.id, { role: "user", content: "quetzalcoatlus" });
  const page = await open();
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByLabel("User").fill("zora");
  await rowOf(page, "Of Zora alone").waitFor();
  await page.getByRole("button", { name: "Delete everything of zora" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("list", { name: "What would be deleted" }).getByText("sessions 1,").waitFor();
  await dialog.getByRole("button", { name: "Delete everything" }).click();
  await dialog.getByRole("list", { name: "What was deleted" }).getByText("sessions 1,").waitFor();
  await dialog.getByRole("button", { name: "Done" }).click();
  await rowOf(page, "Of Zora alone").waitFor({ state: "detached" });
  expect((await client.search("quetzalcoatlus")).items).toEqual([]);
});

browserTest("a dropped file of another program is imported, and the page shows the result", async ({ open }) => {
  const page = await open({ at: "#/" });
  await page.getByRole("button", { name: "Import a file" }).first().waitFor();
  const drop = (text: string) => `(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([${JSON.stringify(text)}], "talk.jsonl"));
    window.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
  })()`;
  await page.evaluate(drop(goldenText("pi-0.73.1.jsonl")));
  await page.getByText("1 session imported (1 of pi).").waitFor();
  await page.getByText("One note, and it says hello.").first().waitFor();
});
