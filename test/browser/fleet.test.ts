import { hostname } from "node:os";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { createClient, type RunView } from "../../src/http/client/index.ts";
import { createServer } from "../../src/http/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { offline } from "../../src/models/index.ts";
import { blockedIdOf } from "../../src/session/log/open-runs.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { redisSkip } from "../redis-server.ts";
import { skipBecause } from "../skip.ts";
import { holderOf, openFleet } from "../workers/fleet-support.ts";
import { faultsOf } from "./axe.ts";
import { browserTest } from "./browser-test.ts";
import { type StudioServer, TOKENS } from "./studio-server.ts";

/** Its agent streams a hundred words, ten a second. */
const SLOW = { server: "slow" } as const;
const STUDIO = fileURLToPath(new URL("../../dist/studio", import.meta.url));

/** A session with an active run and several queued ones, for at least a minute unless the test ends before. */
async function busySession({ client }: StudioServer, userId = "local"): Promise<string> {
  const { id } = (await client.sessions.create({ userId })).header;
  const runs: RunView[] = [];
  for (let index = 0; index < 7; index++) {
    runs.push(await client.runs.start(id, { input: "Talk.", ifBusy: "enqueue" }));
  }
  onTestFinished(async () => {
    for (const { runId } of runs.reverse()) await client.runs.cancel(id, runId);
  });
  return id;
}

const worker = (page: Page, name: RegExp) => page.getByRole("article", { name });

browserTest(
  "a single server shows its one worker, its run and the waiting ones, and the keyboard leads to the session",
  async ({ open, server }) => {
    const page = await open();
    await page.getByRole("link", { name: "Fleet" }).press("Enter");
    await page.getByRole("heading", { name: "Fleet" }).waitFor();
    await page.getByText("No run that you may see is waiting.").waitFor();
    const own = worker(page, /:\d+$/);
    await own.getByText("0 of 1000 runs").waitFor();
    await own.getByText("newsroom").waitFor();
    await own.evaluate((card) => card.setAttribute("data-seen", "yes"));
    const id = await busySession(server);
    await own.getByText("1 of 1000 runs").waitFor();
    // Existing elements are kept, and only changes are rendered.
    expect(await own.getAttribute("data-seen")).toBe("yes");
    const waiting = page.getByRole("article", { name: "For talker" });
    await waiting
      .getByText(/for local since \d/)
      .first()
      .waitFor();
    expect(await waiting.getByText("No worker has").count()).toBe(0);
    await own.getByText(/talker for local since \d/).waitFor();
    await own.getByRole("link", { name: "Talk." }).press("Enter");
    await expect.poll(() => page.url()).toContain(`#/sessions/${id}/talk`);
  },
  SLOW,
);

browserTest(
  "axe finds nothing in the fleet, light and dark, and it fits a narrow window",
  async ({ open, server }) => {
    await busySession(server, "long".repeat(50));
    const page = await open({ at: "#/fleet" });
    await page.getByRole("article", { name: "For talker" }).waitFor();
    expect(await faultsOf(page)).toEqual([]);
  },
  SLOW,
);

browserTest(
  "a failed request of the fleet shows the error beside the earlier data, and recovers automatically",
  async ({ open }) => {
    const page = await open({ at: "#/fleet", mayFail: /500/ });
    const own = worker(page, /:\d+$/);
    await own.waitFor();
    const broken = { status: 500, contentType: "application/problem+json", body: '{"code":"INTERNAL","status":500}' };
    await page.route("**/api/fleet", (route) => route.fulfill(broken));
    const alert = page.getByRole("alert").filter({ hasText: "This may not be up to date" });
    await alert.evaluate((note) => note.setAttribute("data-seen", "yes"));
    // The error does not blink with every further attempt.
    for (let tries = 0; tries < 2; tries++) await page.waitForResponse("**/api/fleet");
    expect(await alert.getAttribute("data-seen")).toBe("yes");
    expect(await own.count()).toBe(1);
    await page.reload();
    await page.getByText("Could not load the fleet").waitFor();
    await page.unroute("**/api/fleet");
    await own.waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  },
  SLOW,
);

browserTest(
  "a user sees the number of runs and their own, but neither those of others nor the names of workers",
  async ({ open, server }) => {
    const notBefore = new Date(Date.now() + 3_600_000).toISOString();
    const waiting: Record<string, string> = {};
    for (const name of ["ann", "ben"] as const) {
      const client = createClient({ url: server.url, token: TOKENS[name] });
      waiting[name] = (await client.sessions.create()).header.id;
      await client.runs.start(waiting[name], { input: "Later.", notBefore });
    }
    const page = await open({ at: "#/fleet", mayFail: /401/ });
    await page.getByLabel("API token").fill(TOKENS.ann);
    await page.getByRole("button", { name: "Enter" }).click();
    await page.getByRole("article", { name: "Worker 1" }).getByText("0 of 1000 runs").waitFor();
    const own = page.getByRole("article", { name: "For assistant" });
    await own.getByText(/for ann not before .*\d/).waitFor();
    expect(await own.getByRole("link").allTextContents()).toEqual([waiting.ann]);
    expect(await page.getByRole("main").innerText()).not.toContain(`on ${hostname()}`);
  },
  { server: "tokens" },
);

browserTest(
  "when one of two workers dies, the page removes it, and shows who has its run now and which runs have no worker",
  async ({ open, context }) => {
    if (redisSkip !== null) skipBecause(context, redisSkip);
    const fleet = await openFleet("redis");
    const agents = ["helper", "painter"].map((name) => createAgent({ name, prompt: "", model: offline() }));
    const server = await createServer({ manager: fleet.manager, queue: fleet.queue, agents, studioDirectory: STUDIO });
    onTestFinished(() => server.close({ drainMs: 0 }));
    const page = await open({ at: `${await server.listen()}/#/fleet` });
    await page.getByText("No worker is active.").waitFor();
    const workers = [await fleet.startWorker(), await fleet.startWorker()];
    for (const { child } of workers) await worker(page, new RegExp(`:${child.pid}$`)).waitFor();
    await fleet.ask("rounds=2 ms=60000");
    const [holder, other] = await holderOf(workers, /^round /);
    const [dying, living] = [holder, other].map(({ child }) => worker(page, new RegExp(`:${child.pid}$`)));
    await dying?.getByText("1 of 32 runs").waitFor();
    await dying?.getByText(/helper for ann since \d/).waitFor();
    expect(await living?.getByRole("link").count()).toBe(0);
    holder.child.kill("SIGKILL");
    await dying?.waitFor({ state: "detached" });
    await living?.getByRole("link", { name: "rounds=2 ms=60000" }).waitFor();
    const { sessionId: unpainted } = await fleet.manager.create({ userId: "bob" });
    await fleet.manager.request(unpainted, { agent: "painter", input: "Paint." });
    const waiting = page.getByRole("article", { name: "For painter" });
    await waiting.getByText("No worker has this agent").waitFor();
    await waiting.getByText(/for bob since \d/).waitFor();
    await waiting.getByRole("link", { name: unpainted }).waitFor();
  },
  SLOW,
);

browserTest("a run that no worker could start says why, also beside one that only waits", async ({ open }) => {
  const store = openMemoryStore();
  const manager = new SessionManager({ store });
  const agents = [createAgent({ name: "painter", prompt: "", model: offline() })];
  const server = await createServer({ manager, agents, studioDirectory: STUDIO });
  onTestFinished(() => server.close({ drainMs: 0 }));
  const notBefore = new Date(Date.now() + 3_600_000).toISOString();
  const message = "The tool brush of an open call is not there.";
  for (const input of ["Paint a cat.", "Paint a dog."]) {
    const { sessionId } = await manager.create({ userId: "local" });
    await (await manager.open(sessionId)).setName(input);
    const { runId } = await manager.request(sessionId, { agent: "painter", input, notBefore });
    if (input.includes("dog")) continue;
    const id = blockedIdOf(runId, "TOOL_NOT_FOUND");
    await store.append(sessionId, [{ type: "run_blocked", id, runId, code: "TOOL_NOT_FOUND", message }]);
  }
  const page = await open({ at: `${await server.listen()}/#/fleet` });
  const waiting = page.getByRole("article", { name: "For painter" });
  await waiting.getByRole("listitem").filter({ hasText: "Paint a cat." }).getByText(message).waitFor();
  expect(await waiting.getByText(message).count()).toBe(1);
  expect(await waiting.getByRole("link").allTextContents()).toEqual(["Paint a cat.", "Paint a dog."]);
});
