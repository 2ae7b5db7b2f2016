import type { Page } from "playwright-core";
import { expect } from "vitest";
import { createClient } from "../../src/http/client/index.ts";
import { browserTest } from "./browser-test.ts";
import { TOKENS } from "./studio-server.ts";
import { say } from "./talk.ts";

/** The console logs every 401 as an error. */
const mayFail = /401/;

async function enter(page: Page, token: string): Promise<void> {
  await page.getByLabel("API token").fill(token);
  await page.getByRole("button", { name: "Enter" }).click();
}

browserTest(
  "a server with tokens asks for one, rejects a wrong one, and shows each user their own sessions",
  async ({ open, server }) => {
    const ben = createClient({ url: server.url, token: TOKENS.ben });
    const { header } = await ben.sessions.create({ name: "Ben's plans" });
    const page = await open({ mayFail: /401|403|404/ });
    await page.getByLabel("API token").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    await enter(page, "not-one-of-its-tokens");
    await page.getByRole("alert").filter({ hasText: "The server does not know this token." }).waitFor();
    // A token that is not allowed in a header must not look like a lost connection.
    await enter(page, "ключ");
    await page.getByRole("alert").filter({ hasText: "no special characters" }).waitFor();
    await enter(page, TOKENS.ann);
    await page.getByText("There are no sessions yet.").waitFor();
    await page.getByRole("button", { name: "Start a session" }).click();
    await say(page, "Ann was here.");
    await page.getByRole("list", { name: "Sessions" }).getByText("Ann was here.").waitFor();
    expect(await page.getByText("Ben's plans").count()).toBe(0);
    // Its URL does not grant access either.
    await page.goto(`${server.url}/#/sessions/${header.id}/talk`);
    await page.getByRole("alert").filter({ hasText: "Could not load the session" }).waitFor();
  },
  { server: "tokens" },
);

browserTest(
  "the token survives a reload, is deleted on sign-out, and is unknown to another tab",
  async ({ open, server }) => {
    const ann = createClient({ url: server.url, token: TOKENS.ann });
    const { header } = await ann.sessions.create({ name: "Ann's notes" });
    const page = await open({ mayFail });
    await enter(page, TOKENS.ann);
    const list = page.getByRole("list", { name: "Sessions" });
    await list.getByText("Ann's notes").click();
    await page.getByRole("textbox", { name: "Message" }).fill("Not sent yet.");
    await page.reload();
    await page.getByRole("heading", { name: "Ann's notes" }).waitFor();
    const other = await page.context().newPage();
    await other.goto(`${server.url}/#/sessions/${header.id}/talk`);
    await other.getByLabel("API token").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("API token").waitFor();
    expect(await page.getByText("Ann's notes").count()).toBe(0);
    expect(await page.evaluate("JSON.stringify(sessionStorage)")).toBe("{}");
    await enter(page, TOKENS.ben);
    await page.getByRole("button", { name: "Start a session" }).waitFor();
    await page.reload();
    await page.getByRole("list", { name: "Sessions" }).getByText("Ben's plans").waitFor();
    expect(await page.getByText("Ann's notes").count()).toBe(0);
  },
  { server: "tokens" },
);

browserTest(
  "a token in the URL signs the tab in, is removed from the URL, and is unknown to another tab",
  async ({ open, server }) => {
    const sent: string[] = [];
    const page = await open({ mayFail, at: "about:blank" });
    page.on("request", (request) => void sent.push(`${request.url()} ${request.headers()["referer"] ?? ""}`));
    await page.goto(`${server.url}/#token=${server.token}`);
    const list = page.getByRole("list", { name: "Sessions" });
    await list.getByText("Plan a trip").waitFor();
    expect(page.url()).toBe(`${server.url}/#/`);
    expect(sent.filter((url) => url.includes(server.token ?? ""))).toEqual([]);
    expect(sent.filter((url) => !url.startsWith(server.url))).toEqual([]);
    await page.reload();
    await list.getByText("Plan a trip").click();
    await page.getByRole("heading", { name: "Plan a trip" }).waitFor();
    // Going back does not show it either.
    await page.goBack();
    expect(page.url()).not.toContain("token");
    const other = await page.context().newPage();
    await other.goto(server.url);
    await other.getByLabel("API token").waitFor();
    // Typed into a tab with the open studio.
    await other.goto(`${server.url}/#token=${server.token}`);
    await other.getByRole("list", { name: "Sessions" }).getByText("Plan a trip").waitFor();
    expect(other.url()).toBe(`${server.url}/#/`);
    await other.getByRole("button", { name: "Sign out" }).click();
    await other.getByLabel("API token").waitFor();
  },
  { server: "own" },
);

browserTest(
  "an invalid token in the URL is rejected and removed from the URL",
  async ({ open, server }) => {
    const page = await open({ mayFail, at: "#token=skein_not-one-of-its-tokens" });
    await page.getByRole("alert").filter({ hasText: "The server does not know this token." }).waitFor();
    expect(page.url()).toBe(`${server.url}/#/`);
  },
  { server: "own" },
);

browserTest(
  "a user who may only read and write sees why they cannot run agents or access files",
  async ({ open, server }) => {
    const guest = createClient({ url: server.url, token: TOKENS.guest });
    const { header } = await guest.sessions.create({ name: "A guest's notes" });
    await guest.sessions.addTurn(header.id, { turnId: "t", role: "user", content: "Note this." });
    const page = await open({ mayFail });
    await enter(page, TOKENS.guest);
    await page.getByRole("list", { name: "Sessions" }).getByText("A guest's notes").click();
    await page.getByText("Note this.").first().waitFor();
    await page.getByText("You may read and write sessions, but not run agents or models.").waitFor();
    expect(await page.getByRole("textbox", { name: "Message" }).isDisabled()).toBe(true);
    expect(await page.getByRole("button", { name: "Edit and try again" }).count()).toBe(0);
    await page.goto(`${server.url}/#/sessions/${header.id}/checkpoints`);
    await page.getByText("It holds no files: You may not access the files of sessions.").waitFor();
    await page.getByRole("button", { name: "Create a checkpoint" }).click();
    await page.getByRole("list").getByText("Checkpoint at position").waitFor();
    await page.goto(`${server.url}/#/sessions/${header.id}/context`);
    expect(await page.getByRole("button", { name: "Compact", exact: true }).isDisabled()).toBe(true);
  },
  { server: "tokens" },
);
