import { expect } from "vitest";
import { browserTest } from "./browser-test.ts";
import { goTo, sampleIds } from "./places.ts";

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

browserTest(
  "only a session of several agents, or an empty one where a group could answer, has the view of a group",
  async ({ open, server }) => {
    const idOf = await sampleIds(server);
    const page = await open();
    const views = page.getByRole("navigation", { name: "Views of the session" });
    const group = views.getByRole("link", { name: "Group" });
    await goTo(page, server, `#/sessions/${idOf("A sentence about a cat")}/talk`);
    await group.waitFor();
    const { header } = await server.client.sessions.create({ name: "Nothing yet" });
    await goTo(page, server, `#/sessions/${header.id}/talk`);
    await group.waitFor();
    // It goes as soon as a single agent has answered.
    await page.getByRole("textbox", { name: "Message" }).fill("Hello.");
    await page.getByRole("button", { name: "Send" }).click();
    await group.waitFor({ state: "detached" });
    await goTo(page, server, `#/sessions/${idOf("Plan a trip")}/talk`);
    await views.getByRole("link", { name: "Lineage" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: "Lineage" }).waitFor();
    const found = page.getByRole("listbox", { name: "What is found" });
    expect([await group.count(), await found.getByRole("option", { name: /^Group/ }).count()]).toEqual([0, 0]);
  },
);
