import { expect } from "vitest";
import { browserTest } from "./browser-test.ts";

browserTest(
  "a group is started and followed live, and each agent's view shows only what it may see",
  async ({ open, server }) => {
    const { header } = await server.client.sessions.create({ name: "A newsroom" });
    const page = await open({ at: `#/sessions/${header.id}/group` });
    await page.getByRole("heading", { name: "No named agents have answered here" }).waitFor();
    await page.getByLabel("Message to the group").fill("A sentence, please.");
    await page.getByRole("button", { name: "Start" }).click();
    const run = page.getByRole("region", { name: "Run a group" });
    const moves = run.getByRole("list", { name: "What newsroom did" });
    for (const [agent, word] of [
      ["writer", "draft"],
      ["critic", "secret"],
      ["editor", "printed"],
    ] as const) {
      await run.getByRole("status").getByText(`${agent} is speaking`).waitFor();
      await moves.getByText(`${word}-3`).waitFor();
    }
    await run.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
    const said = page.getByRole("listitem").filter({ hasText: "secret-10" });
    await said.first().waitFor();

    await page.getByLabel("See as").selectOption("writer");
    await page.getByRole("list", { name: "What writer sees" }).getByText("draft-10").waitFor();
    expect(await page.getByText("secret-").count()).toBe(0);
    await page.getByText("1 turn is hidden from it.").waitFor();
    await page.getByLabel("See as").selectOption("editor");
    await page.getByRole("list", { name: "What editor sees" }).getByText("secret-10").waitFor();
    // The URL keeps the chosen agent.
    await page.goBack();
    await page.getByRole("list", { name: "What writer sees" }).waitFor();
  },
  { server: "slow" },
);
