import type { Page } from "playwright-core";
import { expect } from "vitest";
import type { Client } from "../../src/http/client/index.ts";
import type { ContentPart } from "../../src/session/message.ts";
import { seriousFindings } from "./axe.ts";
import { browserTest } from "./browser-test.ts";
import { pictureWidth, samplePicture } from "./sample-picture.ts";

browserTest(
  "files are attached with their progress, sent, and shown again after a reload",
  async ({ open, server }) => {
    const { header } = await server.client.sessions.create({ name: "Files" });
    const page = await open({ at: `#/sessions/${header.id}/talk` });
    const form = page.getByRole("form", { name: "Message" });
    await form.getByLabel("Files", { exact: true }).setInputFiles([
      { name: "stripes.png", mimeType: "image/png", buffer: samplePicture() },
      {
        name: "notes.svg",
        mimeType: "image/svg+xml",
        buffer: Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>"),
      },
    ]);
    const list = form.getByRole("list", { name: "Files to send" });
    await list.getByRole("button", { name: "Remove notes.svg" }).waitFor();
    await list.getByRole("progressbar").waitFor({ state: "detached" });
    await form.getByRole("textbox", { name: "Message" }).fill("Look at these.");
    expect(await seriousFindings(page)).toEqual([]);
    await form.getByRole("button", { name: "Send" }).click();
    await page.locator(".transcript-row").getByText("Look at these.").first().waitFor();
    await expect.poll(() => pictureWidth(page, "stripes.png")).toBe(64);
    expect(await list.count()).toBe(0);
    await page.reload();
    await expect.poll(() => pictureWidth(page, "stripes.png")).toBe(64);
    // An SVG could contain scripts, so it is only offered for saving.
    const file = page.getByRole("button", { name: /notes.svg/ });
    const [download] = await Promise.all([page.waitForEvent("download"), file.click()]);
    expect(download.suggestedFilename()).toBe("notes.svg");
  },
);

interface GivenFile {
  readonly name: string;
  readonly mimeType: string;
  readonly base64: string;
}

/** Runs in the page, whose types the tests do not have. */
const GIVE = `(element, type, files) => {
  const transfer = new DataTransfer();
  for (const { name, mimeType, base64 } of files) {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    transfer.items.add(new File([bytes], name, { type: mimeType }));
  }
  const options = { bubbles: true, cancelable: true };
  element.dispatchEvent(
    type === "drop"
      ? new DragEvent("drop", { ...options, dataTransfer: transfer })
      : new ClipboardEvent("paste", { ...options, clipboardData: transfer }),
  );
}`;

/** Gives files to an element as a browser does when a user drops or pastes them. */
async function give(page: Page, selector: string, event: "drop" | "paste", files: readonly GivenFile[]) {
  await page.evaluate(
    `(${GIVE})(document.querySelector(${JSON.stringify(selector)}), "${event}", ${JSON.stringify(files)})`,
  );
}

async function idsOf(client: Client): Promise<readonly string[]> {
  const { items } = await client.sessions.list();
  return items.map(({ header }) => header.id).sort();
}

browserTest(
  "files that are dropped on the message or pasted into it are attached, and none is imported as a session",
  async ({ open, server }) => {
    const { header } = await server.client.sessions.create({ name: "Dropped" });
    const before = await idsOf(server.client);
    const page = await open({ at: `#/sessions/${header.id}/talk` });
    const form = page.getByRole("form", { name: "Message" });
    const list = form.getByRole("list", { name: "Files to send" });
    const [dropped, pasted] = [samplePicture(), samplePicture()];
    const picture = (name: string, bytes: Buffer) => ({
      name,
      mimeType: "image/png",
      base64: bytes.toString("base64"),
    });
    const session = `${JSON.stringify({ type: "session", version: 3, id: "pi-session", timestamp: header.createdAt, cwd: "/" })}\n`;
    const log = {
      name: "session.jsonl",
      mimeType: "application/jsonl",
      base64: Buffer.from(session).toString("base64"),
    };
    await form.waitFor();
    await give(page, "form.run-composer", "drop", [picture("dropped.png", dropped), log]);
    await list.getByRole("button", { name: "Remove session.jsonl" }).waitFor();
    await give(page, "textarea.run-field", "paste", [picture("pasted.png", pasted)]);
    await list.getByRole("button", { name: "Remove pasted.png" }).waitFor();
    await list.getByRole("progressbar").first().waitFor({ state: "detached" });
    await form.getByRole("textbox", { name: "Message" }).fill("Look at these.");
    await form.getByRole("button", { name: "Send" }).click();
    for (const name of ["dropped.png", "pasted.png"]) await expect.poll(() => pictureWidth(page, name)).toBe(64);
    expect(await idsOf(server.client)).toEqual(before);
    const { items: entries } = await server.client.sessions.entries(header.id);
    const contents = entries.flatMap((entry) => (entry.type === "message" ? [entry.message.content] : []));
    const parts = contents.flatMap((content) => (Array.isArray(content) ? (content as readonly ContentPart[]) : []));
    const names = parts.flatMap((part) => ("name" in part ? [part.name] : []));
    expect(names).toEqual(["dropped.png", "session.jsonl", "pasted.png"]);
  },
);
