import { expect } from "vitest";
import { faultsOf } from "./axe.ts";
import { browserTest } from "./browser-test.ts";

browserTest(
  "a user sees how much of a budget is left, is warned before its end, and reads when runs are possible again",
  async ({ open, server }) => {
    const { header } = await server.client.sessions.create({ name: "Spends" });
    const at = `#/sessions/${header.id}/talk`;
    const page = await open({ at });
    const message = page.getByRole("textbox", { name: "Message" });
    const send = async (): Promise<void> => {
      await message.fill("Hello, who are you and what can you do?");
      await page.getByRole("button", { name: "Send" }).click();
    };
    await message.waitFor();
    expect(await page.getByText(/^Your budget/).count()).toBe(0);
    await send();
    const warning = page.getByText(/^Your budget will soon be used up: \d+ of 60 tokens in 24 hours\.$/);
    await warning.waitFor();
    expect(await faultsOf(page)).toEqual([]);
    const spent = async (): Promise<number> => (await server.client.users.budget("local")).levels[0]?.spent ?? 0;
    while ((await spent()) < 60) {
      const before = await spent();
      await send();
      await expect.poll(spent).toBeGreaterThan(before);
    }
    await page
      .getByText(/^Your budget is used up: \d+ of 60 tokens in 24 hours\. Runs are possible again at /)
      .waitFor();
    await send();
    await page.getByRole("alert").getByText("The message was not answered, because a budget is used up.").waitFor();
    expect(await faultsOf(page)).toEqual([]);

    await page.getByRole("link", { name: "Overview" }).click();
    const budget = page.getByRole("region", { name: "Your budget" });
    const day = budget.getByRole("meter", { name: "Budget of 24 hours" });
    expect(await day.getAttribute("aria-valuenow")).toBe("60");
    expect(await budget.getByRole("meter", { name: "Budget of 30 days" }).getAttribute("aria-valuetext")).toMatch(
      /^\d+ of 1M tokens$/,
    );
    await budget.getByText(/^Used up; runs are possible again at /).waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await page.setViewportSize({ width: 380, height: 800 });
    await day.waitFor();
  },
  { server: "budgets" },
);

browserTest("nothing is said about budgets by a server without them", async ({ open, server }) => {
  expect(await server.client.users.budget("local")).toEqual({ userId: "local", levels: [] });
  const page = await open({ at: "#/" });
  await page.getByRole("region", { name: "Last 7 days" }).waitFor();
  await page.getByRole("region", { name: "Agents" }).getByText("assistant").waitFor();
  expect(await page.getByRole("region", { name: "Your budget" }).count()).toBe(0);
});
