import type { Page } from "playwright-core";
import { expect } from "vitest";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { type BrowserTest, browserTest } from "./browser-test.ts";

const TURNS = 10_000;
const LAST = TURNS - 1;
/** More than a first view may ask for, and far less than there is. */
const ENTRIES_MAX = 100;

/** A session of many turns `t0`, `t1` and so on, created once for the tests of this file. */
let made: Promise<string> | null = null;

async function makeSession({ client }: BrowserTest["server"]): Promise<string> {
  const { header } = await client.sessions.create({ name: "Ten thousand turns" });
  await client.sessions.append(header.id, { entries: Array.from({ length: TURNS }, (_, index) => turn(index)) });
  return header.id;
}

function turn(index: number): EntryDraft {
  const role = index % 2 === 0 ? "user" : "assistant";
  const content = `Turn number ${index}.\n\n- a point\n- another point`;
  return { type: "message", id: `t${index}`, message: { role, content } };
}

/** A page without a session, so that a test can observe all later requests. */
async function openStudio(given: BrowserTest): Promise<{ page: Page; id: string; at: string; asked: URL[] }> {
  made ??= makeSession(given.server);
  const id = await made;
  const page = await given.open();
  const asked: URL[] = [];
  page.on("request", (request) => asked.push(new URL(request.url())));
  return { page, id, at: `${given.server.url}/#/sessions/${id}/talk`, asked };
}

const rowOf = (index: number): string => `#turn-t${index}`;

/** Whether an element is completely inside the transcript's viewport. */
async function isInView(page: Page, selector: string): Promise<boolean> {
  return page.evaluate<boolean>(`(() => {
    const box = document.querySelector(${JSON.stringify(selector)})?.getBoundingClientRect();
    const view = document.querySelector(".transcript-scroller").getBoundingClientRect();
    return box !== undefined && box.top >= view.top - 1 && box.bottom <= view.bottom + 1;
  })()`);
}

/** The position of a row on the screen, when it has stopped moving. */
async function restingTop(page: Page, selector: string): Promise<number> {
  let before = Number.NaN;
  await expect
    .poll(async () => {
      const { y = Number.NaN } = (await page.locator(selector).boundingBox()) ?? {};
      const moved = Math.abs(y - before);
      before = y;
      return moved;
    })
    .toBe(0);
  return before;
}

browserTest(
  "the end of a long session is shown before its tree is there, and with a few of its entries",
  async (given) => {
    const { page, at, asked } = await openStudio(given);
    // The whole tree takes a while to load; in this test it never arrives.
    await page.route(/\/tree\?/, () => {});
    await page.goto(at);
    await page.locator(rowOf(LAST)).waitFor();
    await expect.poll(() => isInView(page, rowOf(LAST))).toBe(true);
    const reads = asked.filter(({ pathname }) => /\/(?:path|entries|context|state)$/.test(pathname));
    const entries = reads.reduce((sum, { searchParams }) => sum + Number(searchParams.get("limit") ?? TURNS), 0);
    // One for the transcript, and one that looks for answers of several agents.
    const latest = reads.filter(({ searchParams }) => !searchParams.has("before"));
    expect(latest.map(({ searchParams }) => Number(searchParams.get("limit")) <= ENTRIES_MAX)).toEqual([true, true]);
    expect(entries).toBeLessThan(10 * ENTRIES_MAX);
    expect(Number(reads[0]?.searchParams.get("limit"))).toBeLessThanOrEqual(ENTRIES_MAX);
  },
);

browserTest("scrolling up loads earlier turns, and the visible rows stay in place", async (given) => {
  const { page, at } = await openStudio(given);
  let allow = (): void => {};
  const allowed = new Promise<void>((resolve) => {
    allow = resolve;
  });
  const older = /\/path\?.*before=/;
  await page.route(older, async (route) => {
    await allowed;
    await route.continue();
  });
  const asked = page.waitForRequest(older);
  await page.goto(at);
  await page.locator(rowOf(LAST)).waitFor();
  const count = await page.locator(".transcript-row").count();
  const first = TURNS - count;
  await page.locator(".transcript-scroller").hover();
  await expect
    .poll(async () => {
      await page.mouse.wheel(0, -4000);
      return isInView(page, rowOf(first));
    })
    .toBe(true);
  await asked;
  const before = await restingTop(page, rowOf(first));
  allow();
  await page.locator(rowOf(first - 1)).waitFor({ state: "attached" });
  expect(Math.abs((await restingTop(page, rowOf(first))) - before)).toBeLessThan(2);
  // Further and further, without a missing turn.
  for (let read = first; read > first - 200; ) {
    await page.mouse.wheel(0, -2000);
    const ids = await page.evaluate<string[]>(`[...document.querySelectorAll(".transcript-row")].map(({ id }) => id)`);
    expect(ids).toEqual(ids.map((_, index) => `turn-t${TURNS - ids.length + index}`));
    read = TURNS - ids.length;
  }
});

/** The bytes of the responses for a session's pages. */
function countBytes(page: Page): { readonly parts: string[]; bytes: number } {
  const read = { parts: [] as string[], bytes: 0 };
  page.on("response", async (response) => {
    const part = /\/api\/sessions\/[^/]+\/(path|tree|comparison|timeline|entries|checkpoints)/.exec(
      response.url(),
    )?.[1];
    if (part === undefined) return;
    read.parts.push(part);
    read.bytes += (await response.body().catch(() => Buffer.alloc(0))).length;
  });
  return read;
}

browserTest("a link into the middle of a long session leads there, without what lies between", async (given) => {
  const { page, at, id } = await openStudio(given);
  const read = countBytes(page);
  await page.goto(`${at}?entry=t2500`);
  await expect.poll(() => isInView(page, rowOf(2500))).toBe(true);
  await restingTop(page, rowOf(2500));
  expect(await isInView(page, rowOf(2500))).toBe(true);
  expect(await page.locator(rowOf(2500)).getAttribute("aria-current")).toBe("true");
  expect(await page.evaluate("document.activeElement.id")).toBe("turn-t2500");
  await page.locator(rowOf(2500)).getByText("another point").waitFor();
  await page.getByRole("tree", { name: "Branches of the session" }).getByText("Turn number 2500.").waitFor();
  expect(read.parts.length).toBeLessThan(12);
  expect(read.bytes).toBeLessThan(400_000);
  // Later turns load when the user scrolls there, without gaps.
  const rows = page.locator(".transcript-row");
  const before = await rows.count();
  await page.locator(".transcript-scroller").hover();
  while ((await rows.count()) <= before + 150) await page.mouse.wheel(0, 4000);
  const ids = await page.evaluate<string[]>(`[...document.querySelectorAll(".transcript-row")].map(({ id }) => id)`);
  const first = Number(ids[0]?.slice("turn-t".length));
  expect(ids).toEqual(ids.map((_, index) => `turn-t${first + index}`));
  await page.getByRole("button", { name: "Go to the end" }).click();
  await expect.poll(() => isInView(page, rowOf(LAST))).toBe(true);
  await page.goto(`${given.server.url}/#/sessions/${id}/talk?entry=t9990`);
  await expect.poll(() => isInView(page, rowOf(9990))).toBe(true);
});

browserTest("a long session is compared, and its checkpoints are listed, page by page", async (given) => {
  const { page, id } = await openStudio(given);
  const { client, url } = given.server;
  const message = { role: "user", content: "Another way." } as const;
  await client.sessions.append(id, { entries: [{ type: "message", id: "side", message }], onto: "t5000" });
  await client.checkpoints.create(id, { metadata: { note: "before more" } });
  const read = countBytes(page);
  await page.goto(`${url}/#/sessions/${id}/compare`);
  await page.getByRole("list", { name: "Turns after the common ancestor" }).getByText("Another way.").waitFor();
  await page.getByRole("button", { name: "5001 turns in common" }).waitFor();
  await page.goto(`${url}/#/sessions/${id}/checkpoints`);
  await page.getByRole("listitem", { name: "before more" }).getByText("at the session's current position").waitFor();
  expect(read.parts.length).toBeLessThan(12);
  expect(read.bytes).toBeLessThan(200_000);
});

browserTest("the rows of a fast scroll are rendered in the frame that shows them", async (given) => {
  const { page, at } = await openStudio(given);
  await page.goto(`${at}?entry=t9700`);
  await expect.poll(() => isInView(page, rowOf(9700))).toBe(true);
  for (let jump = 0; jump < 5; jump++) {
    await restingTop(page, rowOf(9700));
    const undrawn = await page.evaluate<string[]>(`new Promise((resolve) => {
      const scroller = document.querySelector(".transcript-scroller");
      const view = scroller.getBoundingClientRect();
      scroller.scrollTop += 2500;
      // A message sent in a frame arrives after the frame was painted.
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => {
          const rows = [...document.querySelectorAll(".transcript-row")].filter((row) => {
            const { top, bottom } = row.getBoundingClientRect();
            return bottom > view.top && top < view.bottom;
          });
          const isDrawn = (row) => row.firstElementChild?.checkVisibility({ contentVisibilityAuto: true }) === true;
          resolve(rows.length === 0 ? ["none"] : rows.filter((row) => !isDrawn(row)).map(({ id }) => id));
        };
        port2.postMessage(null);
      });
    })`);
    expect(undrawn).toEqual([]);
  }
});

browserTest("a new message in a long session is shown without loading its tree again", async (given) => {
  const { page, at, id, asked } = await openStudio(given);
  await page.goto(at);
  const tree = page.getByRole("tree", { name: "Branches of the session" });
  await tree.getByText(`Turn number ${LAST}.`).waitFor();
  for (const said of ["Said first.", "Said second."]) {
    await given.server.client.sessions.addTurn(id, { role: "user", content: said });
    await page.getByRole("listitem").filter({ hasText: said }).waitFor();
    await tree.getByText(said).waitFor();
  }
  expect(asked.filter(({ pathname }) => pathname.endsWith("/tree"))).toHaveLength(1);
});
