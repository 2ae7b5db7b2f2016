import { expect } from "vitest";
import { browserTest } from "./browser-test.ts";
import { say } from "./talk.ts";

browserTest("two tabs on one session see each other live", async ({ open, server }) => {
  const { header } = await server.client.sessions.create({ name: "Two tabs" });
  const at = `#/sessions/${header.id}/talk`;
  const [one, other] = [await open({ at }), await open({ at })];
  await say(one, "Said in the first tab.");
  const transcript = other.getByRole("main");
  await transcript.getByText("Said in the first tab.").first().waitFor();
  await transcript
    .getByText(/offline/i)
    .first()
    .waitFor();
  await say(other, "Said in the second tab.");
  await one.getByRole("main").getByText("Said in the second tab.").first().waitFor();
  await server.client.sessions.update(header.id, { name: "Renamed by a program" });
  for (const page of [one, other]) await page.getByRole("heading", { name: "Renamed by a program" }).waitFor();
});

browserTest(
  "an answer is shown as it streams, and can be stopped",
  async ({ open, server }) => {
    const { header } = await server.client.sessions.create({ name: "To be stopped" });
    const page = await open({ at: `#/sessions/${header.id}/talk` });
    await say(page, "Talk.");
    await page.getByText("word-5").first().waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await expect.poll(async () => (await server.client.sessions.get(header.id)).running).toBe(null);
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
    expect(await page.getByText("word-99").count()).toBe(0);
  },
  { server: "slow" },
);

browserTest(
  "a server that is killed during a stream and restarted is used again without a reload",
  async ({ open, server }) => {
    const { header } = await server.client.sessions.create({ name: "Killed" });
    const page = await open({
      at: `#/sessions/${header.id}/talk`,
      mayFail: /net::ERR_/,
    });
    await say(page, "Talk.");
    await page.getByText("word-5").first().waitFor();
    const lost = page.getByRole("status").filter({ hasText: "The connection to the server is lost." });
    await server.kill();
    await lost.waitFor();
    // Data loaded before are requested again as well.
    const askedAgain = page.waitForRequest(/\/api\/catalogue/, { timeout: 60_000 });
    await server.restart();
    await lost.waitFor({ state: "detached" });
    await askedAgain;
    // Stored entries are shown, and changes by others arrive again.
    await server.client.sessions.update(header.id, { name: "Alive again" });
    await page.getByRole("heading", { name: "Alive again" }).waitFor({ timeout: 60_000 });
    await page.getByRole("main").getByText("Talk.", { exact: true }).first().waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    // The interrupted run continues by itself, and its partial answer is discarded.
    await expect.poll(async () => (await server.client.sessions.get(header.id)).running).not.toBe(null);
    await page.getByText("word-3").first().waitFor();
    const said = await page.getByRole("main").innerText();
    expect(said.split("word-1 ")).toHaveLength(2);
    await page.getByRole("button", { name: "Stop" }).click();
    await expect.poll(async () => (await server.client.sessions.get(header.id)).running).toBe(null);
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
    await server.client.sessions.addTurn(header.id, { role: "user", content: "Said by a program." });
    await page.getByRole("main").getByText("Said by a program.").first().waitFor();
  },
  { server: "slow" },
);
