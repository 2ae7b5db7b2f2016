import { expect } from "vitest";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import type { Message } from "../../src/session/message.ts";
import { seriousFindings } from "./axe.ts";
import { browserTest } from "./browser-test.ts";
import { goTo, sampleIds } from "./places.ts";

const said = (id: string, message: Message): EntryDraft => ({ type: "message", id, message });
const calls = (id: string, name: string, given: object): EntryDraft =>
  said(id, {
    role: "assistant",
    content: null,
    toolCalls: [{ id: `${id}-call`, name, arguments: JSON.stringify(given) }],
    usage: { inputTokens: 90, outputTokens: 10, totalTokens: 100 },
  });
const result = (of: string, name: string, content: string): EntryDraft =>
  said(`${of}-result`, { role: "tool", toolCallId: `${of}-call`, name, content });

const ENTRIES: readonly EntryDraft[] = [
  said("question", { role: "user", content: "Mend the sum." }),
  calls("look", "list_orders", {}),
  result("look", "list_orders", JSON.stringify([{ order: 7, total: "12 €" }])),
  { type: "custom", id: "noted", customType: "langgraph.checkpoint", data: { step: 1 } },
  calls("mend", "edit", { path: "sum.ts", old_text: "a - b", new_text: "a + b" }),
  result("mend", "edit", "Done."),
  calls("try", "bash", { command: "npm test" }),
  result("try", "bash", "1 passed\n2 passed\n3 passed\n4 passed\n5 passed\n6 passed"),
  said("answer", { role: "assistant", content: "The sum is right now." }),
];

browserTest("an answer of many rounds reads as one, and each round shows what it did", async ({ open, server }) => {
  const { header } = await server.client.sessions.create({ name: "Many rounds" });
  await server.client.sessions.append(header.id, { entries: ENTRIES });
  const page = await open({ at: `#/sessions/${header.id}/talk`, viewport: { width: 380, height: 800 } });
  const row = page.locator("#turn-look");
  await row.getByText("The sum is right now.").waitFor();
  expect(await page.locator(".transcript-row").count()).toBe(2);
  const rounds = row.getByText(/^3 rounds$/);
  await rounds.waitFor();
  expect(await row.getByText("300 tokens").count()).toBe(2);
  expect(await row.getByText("npm test").count()).toBe(0);
  await rounds.click();
  const list = row.getByRole("list", { name: "Rounds before the answer" });
  await expect.poll(() => list.getByText("100 tokens").count()).toBe(3);
  await list.getByRole("cell", { name: "12 €" }).waitFor();
  await list.locator("ins", { hasText: "a + b" }).waitFor();
  await list.getByText("$ npm test").waitFor();
  await list.getByText("… 1 more line").waitFor();
  expect(await page.getByText("langgraph.checkpoint").count()).toBe(0);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await seriousFindings(page)).toEqual([]);
  }
  const wide = "document.querySelector('.transcript-scroller').scrollWidth > document.documentElement.clientWidth";
  expect(await page.evaluate(wide)).toBe(false);
  // A link to a round opens it.
  await page.goto(`${server.url}/#/sessions/${header.id}/talk?entry=mend-result`);
  await page.reload();
  await page.locator("#turn-look[aria-current=true]").getByText("$ npm test").waitFor();
});

browserTest("a link to the result of a call shows the round of the call", async ({ open, server }) => {
  const fixed = (await sampleIds(server))("Fix what one day is called");
  const { items } = await server.client.sessions.path(fixed, { limit: 100 });
  const results = items.filter((entry) => entry.type === "message" && entry.message.role === "tool");
  const page = await open();
  for (const { id } of [results[4], results[0]].filter((each) => each !== undefined)) {
    await goTo(page, server, `#/sessions/${fixed}/talk?entry=${encodeURIComponent(id)}`);
    const seen = `(() => {
      const view = document.querySelector(".transcript-scroller").getBoundingClientRect();
      const round = document.querySelector('[data-entries~="${id}"]')?.getBoundingClientRect();
      return round !== undefined && Math.max(round.top, view.top) < Math.min(round.bottom, view.bottom) - 60;
    })()`;
    await expect.poll(() => page.evaluate(seen)).toBe(true);
  }
});
