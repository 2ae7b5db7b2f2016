import { expect } from "vitest";
import { browserTest } from "./browser-test.ts";
import { goTo, sampleIds } from "./places.ts";

const NARROW = { viewport: { width: 380, height: 800 } } as const;

/** The names of buttons and links in a part of the page that are not completely inside the window. */
const cutOff = (part: string): string => `[...document.querySelectorAll(${JSON.stringify(part)})]
  .flatMap((each) => [...each.querySelectorAll("button, a")])
  .filter((each) => each.checkVisibility())
  .filter((each) => each.getBoundingClientRect().left < 0 || each.getBoundingClientRect().right > window.innerWidth)
  .map((each) => each.textContent)`;

browserTest("in a narrow window no action of a turn is cut off", async ({ open, server }) => {
  const trip = (await sampleIds(server))("Plan a trip");
  const page = await open(NARROW);
  await goTo(page, server, `#/sessions/${trip}/talk`);
  await page.getByRole("button", { name: "Edit and try again" }).first().waitFor();
  expect(await page.evaluate(cutOff(".transcript-actions"))).toEqual([]);
  expect(await page.evaluate(cutOff(".session-header"))).toEqual([]);
  // The button to the end does not cover the form.
  await page.getByRole("button", { name: "Edit and try again" }).first().click();
  await page.getByRole("button", { name: "Send on a new branch" }).click({ trial: true });
});

browserTest("a file can be imported in a narrow window", async ({ open, server }) => {
  const trip = (await sampleIds(server))("Plan a trip");
  const file = Buffer.from(await (await server.client.sessions.exportFile(trip, { format: "jsonl" })).arrayBuffer());
  const page = await open({ ...NARROW, at: "#/" });
  await page.getByRole("button", { name: "Import a file" }).waitFor();
  const [chooser] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.getByRole("button", { name: "Import a file" }).click(),
  ]);
  await chooser.setFiles({ name: "trip.jsonl", mimeType: "application/jsonl", buffer: file });
  await page.getByRole("heading", { name: "Plan a trip" }).waitFor();
  expect(page.url()).not.toContain(trip);
});

browserTest("in a narrow window the name of the current view is visible", async ({ open, server }) => {
  const trip = (await sampleIds(server))("Plan a trip");
  const page = await open(NARROW);
  await goTo(page, server, `#/sessions/${trip}/group`);
  const inSight = `(() => {
    const { left, right } = document.querySelector(".session-views [aria-current=page]").getBoundingClientRect();
    return left >= 0 && right <= window.innerWidth;
  })()`;
  await expect.poll(() => page.evaluate(inSight)).toBe(true);
});

browserTest("in a narrow window the tree replaces the transcript, and leads back to it", async (given) => {
  const { open, server } = given;
  const trip = (await sampleIds(server))("Plan a trip");
  const page = await open(NARROW);
  await goTo(page, server, `#/sessions/${trip}/talk`);
  const message = page.getByRole("textbox", { name: "Message" });
  await message.waitFor();
  await page.getByRole("button", { name: "Show tree" }).click();
  await message.waitFor({ state: "hidden" });
  await page.getByRole("tree").focus();
  for (const key of ["Home", "ArrowDown"]) await page.keyboard.press(key);
  const selection = page.getByRole("region", { name: "Selected entry" });
  await selection.getByRole("button", { name: "Show in transcript" }).click();
  await message.waitFor();
  await page.locator(".transcript-row[aria-current=true]").waitFor();
  // A link opened later shows the turn, not the tree.
  await page.getByRole("button", { name: "Show tree" }).click();
  await page.reload();
  await page.locator(".transcript-row[aria-current=true]").waitFor();
});

browserTest(
  "in a narrow window the overview keeps its navigation whole, and a session has one line above its title",
  async (given) => {
    const { open, server } = given;
    const page = await open({ ...NARROW, at: "#/" });
    await page.getByRole("link", { name: /^Running/ }).waitFor();
    const cut = `[...document.querySelectorAll(".app-pages a")].map((each) => each.offsetHeight - each.parentElement.clientHeight)`;
    expect((await page.evaluate<number[]>(cut)).filter((pixels) => pixels > 0)).toEqual([]);
    await goTo(page, server, `#/sessions/${(await sampleIds(server))("Interrupted in the middle")}/talk`);
    const topOf = async (name: string): Promise<number> =>
      (await page.locator(".session-header").getByText(name, { exact: true }).boundingBox())?.y ?? Number.NaN;
    const [title, mark] = [await topOf("Interrupted in the middle"), await topOf("Interrupted")];
    const actions = ["Rename", "More actions"].map((name) => page.getByRole("button", { name }).boundingBox());
    const [rename, more] = await Promise.all(actions);
    expect(rename?.y).toBe(more?.y);
    expect(title).toBeGreaterThan(rename?.y ?? Number.NaN);
    expect(Math.abs(title - mark)).toBeLessThan(20);
  },
);
