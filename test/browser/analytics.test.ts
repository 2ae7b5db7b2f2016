import { expect } from "vitest";
import { browserTest } from "./browser-test.ts";

browserTest("latency and tools are shown as charts, each with its numbers as a table", async ({ open, server }) => {
  const { latency, byDay, tools } = await server.client.callAnalytics();
  expect(latency?.answers).toBeGreaterThan(0);
  const page = await open({ at: "#/analytics" });
  await page.getByRole("radio", { name: "Latency" }).check({ force: true });
  await page.getByRole("heading", { name: "Latency by day" }).waitFor();
  const drawing = page.getByRole("img", { name: /^Latency by day from .* The table below has every day\.$/ });
  await drawing.waitFor();
  expect(
    await drawing
      .locator("title")
      .filter({ hasText: byDay[0]?.day ?? "" })
      .count(),
  ).toBe(1);
  await page.getByText("As a table").click();
  const row = page.getByRole("row").filter({ has: page.getByRole("rowheader", { name: byDay[0]?.day ?? "" }) });
  await row.getByText(/ m?s$/).first().waitFor();
  for (const name of ["Latency by model", "Latency by user"]) await page.getByRole("table", { name }).waitFor();
  const byTool = page.getByRole("table", { name: "Calls by tool" });
  await byTool.getByRole("rowheader", { name: tools[0]?.tool ?? "" }).waitFor();
});
