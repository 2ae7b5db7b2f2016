import { expect } from "vitest";
import { faultsOf } from "./axe.ts";
import { browserTest } from "./browser-test.ts";
import { goTo, sampleIds } from "./places.ts";

browserTest(
  "the first page shows what waits, what is interrupted, what was said lately and the week",
  async (given) => {
    const { open, server } = given;
    const { client } = server;
    const { header } = await client.sessions.create({ name: "Waits for a word" });
    const run = await client.runs.start(header.id, { input: "write hello to c.txt" });
    const page = await open({ at: "#/" });
    await page.getByRole("link", { name: /^Waiting for you 1$/ }).waitFor();
    await page.getByRole("link", { name: /^Interrupted 1$/ }).waitFor();
    await page.getByRole("link", { name: /^Cost of the week \$0\.0/ }).waitFor();
    const now = page.getByRole("region", { name: "Going on" }).getByRole("link");
    expect((await now.allInnerTexts()).map((text) => text.split("\n")[0])).toEqual([
      "Waits for a word",
      "Interrupted in the middle",
    ]);
    const recent = page.getByRole("region", { name: "Recent" });
    expect(await recent.getByText("Waits for a word").count()).toBe(0);
    await recent.getByRole("link", { name: /^Plan a trip/ }).waitFor();
    expect(await page.getByRole("list", { name: "Tokens by day" }).getByRole("listitem").count()).toBe(7);
    await client.runs.cancel(run.sessionId, run.runId);
  },
);

browserTest("the palette opens with a key and goes to sessions, views and pages without a mouse", async (given) => {
  const { open, server } = given;
  const trip = (await sampleIds(server))("Plan a trip");
  const page = await open({ at: "#/fleet" });
  await page.getByRole("heading", { name: "Fleet" }).waitFor();
  await page.keyboard.press("Control+k");
  const field = page.getByRole("combobox", { name: "Page, session or action" });
  await field.fill("Plan a");
  await page.getByRole("option", { name: "Plan a trip" }).waitFor();
  expect(await faultsOf(page, "dialog")).toEqual([]);
  await field.press("Enter");
  await page.getByRole("heading", { name: "Plan a trip" }).waitFor();
  expect(page.url()).toContain(`${trip}/talk`);
  await page.getByRole("textbox", { name: "Message" }).press("Control+k");
  await field.fill("see");
  await field.press("Enter");
  await page.getByRole("region", { name: "Size of the context" }).waitFor();
  await page.keyboard.press("Control+k");
  await field.fill("no such thing");
  await page.getByText("Nothing of that name was found.").waitFor();
  await field.press("Escape");
  await field.waitFor({ state: "detached" });
});

browserTest(
  "a turn with several answers says which one is shown, and switches to the end of another",
  async (given) => {
    const { open, server } = given;
    const trip = (await sampleIds(server))("Plan a trip");
    const page = await open();
    await goTo(page, server, `#/sessions/${trip}/talk`);
    const answers = page.getByRole("group", { name: "Other answers in this place" });
    await answers.getByText("2 of 2").waitFor();
    await page.getByText("Then Oslo. What do I pack?").first().waitFor();
    await answers.getByRole("button", { name: "Previous answer" }).click();
    await page.locator(".transcript-row-marked").getByText("the jacarandas are in bloom").waitFor();
    await answers.getByText("1 of 2").waitFor();
    expect(await page.locator(".transcript-row").count()).toBe(2);
    await answers.getByRole("button", { name: "Next answer" }).click();
    await page.locator(".transcript-row").getByText("walking shoes").waitFor();
  },
);

browserTest("results of our own tools are shown as what they are", async ({ open, server }) => {
  const fixed = (await sampleIds(server))("Fix what one day is called");
  const page = await open();
  await goTo(page, server, `#/sessions/${fixed}/talk`);
  await page.getByText(/^7 rounds$/).click();
  const rounds = page.getByRole("list", { name: "Rounds before the answer" });
  await rounds.getByRole("row", { name: "src/duration.js" }).waitFor();
  await rounds.getByText("$ node --test").first().waitFor();
  await rounds.getByText("Exit code 1").waitFor();
  await rounds.getByText("src/duration.js").first().waitFor();
  expect(await rounds.getByText("exit_code").count()).toBe(0);
});

browserTest("a part of the program that cannot be loaded says so, and is loaded again on request", async (given) => {
  const { open, server } = given;
  const page = await open({ mayFail: /Failed to load resource|dynamically imported module/ });
  const part = "**/session-page-*.js";
  await page.route(part, (route) => route.abort());
  await page.goto(`${server.url}/#/sessions/${(await sampleIds(server))("Plan a trip")}/talk`);
  await page.reload();
  await page.getByRole("alert").getByText("This page could not be loaded.").waitFor();
  await page.unroute(part);
  await page.getByRole("button", { name: "Load it again" }).click();
  await page.getByRole("heading", { name: "Plan a trip" }).waitFor();
});
