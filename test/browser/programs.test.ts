import { expect } from "vitest";
import { faultsOf } from "./axe.ts";
import { browserTest } from "./browser-test.ts";

browserTest(
  "the first page offers the sessions of other programs, reads them on request only, and filters the list by program",
  async ({ open, server }) => {
    const page = await open({ at: `${server.url}/#token=${server.token}` });
    const offer = page.getByRole("region", { name: "On this machine" });
    await offer.getByRole("heading", { name: "pi" }).waitFor();
    expect((await offer.getByRole("listitem").allInnerTexts()).map((text) => text.split("\n")[0])).toEqual([
      "Codex",
      "opencode",
      "pi",
    ]);
    expect(await offer.getByText("2 sessions, the last").count()).toBe(1);
    expect(await offer.getByText(/^opencode export <session>/).count()).toBe(1);
    expect((await server.client.sessions.list()).items).toEqual([]);
    expect(await faultsOf(page, ".programs")).toEqual([]);
    await offer.getByRole("button", { name: "Bring them in" }).click();
    await offer.getByText("Codex and pi: imported, and kept up to date until the server stops.").waitFor();
    expect(await offer.getByRole("button", { name: "Bring them in" }).count()).toBe(0);
    expect(await offer.getByText(/^opencode export <session>/).count()).toBe(1);
    expect(await faultsOf(page, ".programs")).toEqual([]);
    const list = page.getByRole("list", { name: "Sessions" });
    await expect.poll(() => list.getByRole("listitem").count()).toBe(3);
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByLabel("Program").selectOption({ label: "Codex" });
    await expect.poll(() => list.getByRole("listitem").count()).toBe(1);
  },
  { server: "programs" },
);

browserTest(
  "a server that is open to the machine, or has users with tokens, offers nothing",
  async ({ open, server }) => {
    const page = await open();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(await server.client.programs()).toEqual({ offered: false, programs: [] });
    expect(await page.getByRole("region", { name: "On this machine" }).count()).toBe(0);
  },
  { server: "serve" },
);
